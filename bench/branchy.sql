-- SPDX-License-Identifier: MIT
-- A table, an index, a join and an update, in memory.
create table t(a integer primary key, b integer, c text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 240000)
    insert into t select i, (i * 7919) % 10007, 'row ' || i from n;
create index tb on t(b);
select count(*), sum(b), max(c) from t where b between 100 and 5000;
select b % 10, count(*), avg(a) from t group by 1 order by 2 desc, 1 limit 3;
select count(*) from t x join t y on x.b = y.a where y.b < 3000;
update t set c = upper(c) where b % 3 = 0;
select sum(length(c)) from t where c like 'ROW 1%';

-- What the shell of SQLite is asked while it is profiled: rows that are put in, an index, a join.
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
    INSERT INTO t SELECT i, (i * 7919) % 10007, printf('text %05d', (i * 31) % 977) FROM n;
CREATE INDEX by_a ON t (a);
SELECT count(*) FROM t x JOIN t y ON x.a = y.id WHERE y.b LIKE '%7';
SELECT b, count(*), sum(a) FROM t GROUP BY b ORDER BY 3 DESC, 1 LIMIT 3;

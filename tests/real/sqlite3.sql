-- What the shell of SQLite is asked while it is recorded: indices, joins, windows, recursion, full text, JSON, rollback.
PRAGMA journal_mode = wal;
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
    INSERT INTO t SELECT i, (i * 7919) % 10007, printf('text %05d', (i * 31) % 977) FROM n;
CREATE INDEX by_a ON t (a);
CREATE INDEX by_b ON t (b, a);
SELECT count(*), sum(a), min(b), max(b) FROM t;
SELECT b, count(*), sum(a) FROM t GROUP BY b ORDER BY 3 DESC, 1 LIMIT 3;
SELECT count(*) FROM t x JOIN t y ON x.a = y.id WHERE x.id < 5000 AND y.b LIKE '%7';
SELECT id, a, rank() OVER (ORDER BY a DESC, id) FROM t WHERE id % 5000 = 0 ORDER BY id;
BEGIN;
DELETE FROM t WHERE a % 3 = 0;
SELECT count(*) FROM t;
ROLLBACK;
SELECT count(*) FROM t;
UPDATE t SET b = upper(b) WHERE a < 100;
SELECT count(DISTINCT b) FROM t;
SELECT json_extract('{"a": [1, {"b": 2.5}]}', '$.a[1].b'), json_array(1, 'x', NULL);
WITH RECURSIVE
    x(v, s) AS (VALUES (1, '1') UNION ALL SELECT v + 1, s || ',' || (v + 1) FROM x WHERE v < 12)
    SELECT s FROM x ORDER BY v DESC LIMIT 1;
PRAGMA integrity_check;
VACUUM;
SELECT count(*) FROM t WHERE a BETWEEN 100 AND 200;

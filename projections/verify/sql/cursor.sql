-- The cursor rows that do not cancel each other, each with its seq and its number of copies.
SELECT toString(list) AS name, seq, sum(sign) AS live
FROM lists
WHERE list IN ('cursor', 'cursor_end')
GROUP BY list, seq, block, ts, rewrites, writer
HAVING live != 0
ORDER BY list, seq

-- The cursor rows that do not cancel, each with its seq and how often it is there.
SELECT toString(list), seq, sum(sign) AS live
FROM lists
WHERE list IN ('cursor', 'cursor_end')
GROUP BY list, seq, block, ts, rewrites, writer
HAVING live != 0
ORDER BY list, seq

-- The cursor, and what units after a seq touched. Rows that collapse may still lie there as pairs: what is live adds up to 1.
SELECT list, seq, block, ts, rewrites, id, touched
FROM lists
WHERE list = 'cursor' OR (list = 'touched' AND key > {after:UInt64})
GROUP BY list, seq, block, ts, rewrites, id, touched
HAVING sum(sign) > 0

-- The cursor, and what units after a seq touched. Rows that cancel each other may still be stored as pairs; the signs
-- of a live row add up to 1.
SELECT list, seq, block, ts, rewrites, id, touched
FROM lists
WHERE list = 'cursor' OR (list = 'touched' AND key > {after:UInt64})
GROUP BY list, seq, block, ts, rewrites, id, touched
HAVING sum(sign) > 0

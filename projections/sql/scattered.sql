-- Tables that are worth merging into one part: large, and no part holds three
-- quarters of them.
SELECT table, sum(rows) AS total
FROM system.parts
WHERE database = {database:String} AND active
GROUP BY table
HAVING total >= {least:UInt64} AND max(rows) * 4 < total * 3
ORDER BY total

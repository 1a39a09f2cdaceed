-- Tables that are worth merging into one part: large ones in which no part holds three quarters of the rows.
SELECT table, sum(rows) AS total
FROM system.parts
WHERE database = {database:String} AND active
GROUP BY table
HAVING total >= {least:UInt64} AND max(rows) * 4 < total * 3
ORDER BY total

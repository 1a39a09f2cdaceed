-- Live deposits of partners: how many, and their sum.
SELECT concatWithSeparator(' ', toString(partner), toString(sum(sign)), toString(sum(sign * assets)))
FROM deposits
WHERE seq <= {seq:UInt64} AND partner > 0 AND {both}
GROUP BY partner
ORDER BY partner

-- Totals of partners.
SELECT partner, sum(sign), toString(sum(sign * assets)), sum(partner_user)
FROM {database}.deposits
WHERE seq <= {seq:UInt64} AND sign != 0 AND partner != 0
GROUP BY partner
HAVING sum(sign) != 0 OR sum(sign * assets) != 0 OR sum(partner_user) != 0
ORDER BY partner

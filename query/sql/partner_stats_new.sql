-- What the rows after a seq, up to another, add to some partners' deposits.
SELECT partner, vault, sum(sign) AS deposits, count() AS said, sum(sign * assets) AS volume, sum(partner_user) AS users
FROM {db:Identifier}.deposits
WHERE partner {partners:OneOf(UInt32)} AND seq > {after:UInt64} AND seq <= {last:UInt64}
GROUP BY partner, vault
{{template "by_row"}}

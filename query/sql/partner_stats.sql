-- A partner's deposits by vault, and how many rows say so, out of all its rows.
SELECT vault, sum(sign) AS deposits, count() AS said, sum(sign * assets) AS volume
FROM {db:Identifier}.deposits
WHERE partner = {partner:UInt32} AND seq <= {lastLog:UInt64} AND block <= {block:UInt64}
GROUP BY vault

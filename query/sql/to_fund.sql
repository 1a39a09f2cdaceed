-- Withdrawals that are queued and not funded, by vault. States that were left
-- cancel out in the sums.
SELECT vault, sum(sign) AS total, sum(sign * estimate) AS amount
FROM {db:Identifier}.requests
WHERE sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND requested > 0 AND funded = 0 AND {{template "status"}} = 'queued'
GROUP BY vault

-- A partner's deposits by vault, and its users, who are counted where they
-- became users of the partner: the sum over the vaults is their number. From
-- the projection totals, with the last seq that is in it.
SELECT vault, sum(sign) AS deposits, count() AS said, sum(sign * assets) AS volume, sum(partner_user) AS users, max(seq) AS last
FROM {db:Identifier}.deposits
WHERE partner = {partner:UInt32}
GROUP BY vault

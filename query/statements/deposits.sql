-- The next rows about a partner's deposits after a place of the chain, in its order: by_partner of deposits is read
-- from there to the last of them. A retraction stands behind the row that it cancels.
SELECT seq, sign, vault, user, assets, shares, toUInt64(0) AS request_index, block, ts, tx, log_index
FROM deposits
WHERE partner = {partner:UInt32} AND seq <= {seq:UInt64} AND block >= {after_block:UInt64} AND block <= {until:UInt64}
  AND (block > {after_block:UInt64} OR log_index > {after_log:UInt32})
ORDER BY partner, block, log_index, seq
LIMIT {few:UInt64}
SETTINGS max_block_size = 1024

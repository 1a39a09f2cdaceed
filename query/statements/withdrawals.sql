-- The next rows about a partner's requests in one vault after a request, in the order of the table: it is read from
-- there to the last of them. A vault numbers its requests, so this is the order of the chain too. A retraction stands
-- behind the row that it cancels.
SELECT seq, sign, vault, user, assets, shares, request_index, block, ts, tx, log_index
FROM withdrawal_events
WHERE vault = {vault:FixedString(20)} AND request_index >= {after_index:UInt64}
  AND kind = 'requested' AND partner = {partner:UInt32}
  AND seq <= {seq:UInt64} AND block >= {from_block:UInt64} AND block <= {until:UInt64}
  AND (request_index > {after_index:UInt64}
    OR block > {after_block:UInt64} OR block = {after_block:UInt64} AND log_index > {after_log:UInt32})
ORDER BY vault, request_index, block, log_index, seq
LIMIT {few:UInt64}
SETTINGS max_block_size = 1024

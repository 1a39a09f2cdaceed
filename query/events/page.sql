-- A page of the logs, newest first: of the rows at one place, the newest one shows whether a log is live. The query
-- reads in the order of the table and stops at the end of the page. If retracted logs are requested too, each log has
-- its own rows, live or retracted.
SELECT {columns}
FROM (
  SELECT seq, sub, event, effect, quarantined, vault, user, tx, block, ts, log_index, partner, id, id_to, assets, shares, grouped, nav, sign
  FROM events
  WHERE record = 'log' AND NOT passed AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND block <= {before_block:UInt64}
    AND (block < {before_block:UInt64} OR log_index < {before_index:UInt64}
      OR log_index = {before_index:UInt64} AND (seq * {retracted:Bool}, sub) < ({before_seq:UInt64}, {before_sub:UInt8}))
    AND (effect != 'none' OR quarantined) AND ts >= {from:Int64} AND ts <= {to:Int64}
    AND event IN ({kinds}) -- if kinds
    AND vault = {vault:FixedString(20)} -- if vault
    AND user = {user:FixedString(20)} -- if user
    AND tx = {tx:FixedString(32)} -- if tx
    AND sign = 1 -- if retracted
  ORDER BY record DESC, block DESC, log_index DESC, seq DESC, sub DESC
  LIMIT 1 BY block, log_index, sub, seq * {retracted:Bool}
)
WHERE sign = 1
LIMIT {limit:UInt64}
SETTINGS max_block_size = 512, read_in_order_use_buffering = 0

-- A page of the logs, newest first: of the rows at a place the newest one says whether there is a live log. It is read in
-- the order of the spine and stops at the end of the page. Where retracted ones are asked for too, each log is a row,
-- whatever became of it.
SELECT seq, event AS kind, quarantined, vault, user, tx, block, ts, log_index, payload
FROM (
  SELECT seq, toString(event) AS event, quarantined, vault, user, tx, block, ts, log_index, payload, sign
  FROM records
  WHERE kind = 'log' AND NOT passed AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND block <= {before_block:UInt64}
    AND (block < {before_block:UInt64} OR log_index < {before_index:UInt64} OR log_index = {before_index:UInt64} AND seq < {before_seq:UInt64})
    AND has({kinds:Array(UInt64)}, toUInt64(records.event))
    AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
    AND ({user:FixedString(20)} = toFixedString('', 20) OR user = {user:FixedString(20)})
    AND ({tx:FixedString(32)} = toFixedString('', 32) OR tx = {tx:FixedString(32)})
    AND ts >= {from:Int64} AND ts <= {to:Int64}
    AND (sign = 1 OR {retracted:UInt64} = 0)
  ORDER BY kind DESC, block DESC, log_index DESC, seq DESC
  LIMIT 1 BY block, log_index, seq * {retracted:UInt64}
)
WHERE sign = 1
LIMIT {limit:UInt64}
SETTINGS max_block_size = 512, read_in_order_use_buffering = 0

-- The next deposits and withdrawal requests of a partner after a place of the chain, in its order. Each kind gives as many
-- as are wanted, so that what comes first of both is among them.
SELECT seq, withdrawal, vault, user, assets, shares, request_index, block, ts, tx, log_index
FROM (
  SELECT seq, 0 AS withdrawal, vault, user, assets, shares, toUInt64(0) AS request_index, block, ts, tx, log_index
  FROM deposits
  WHERE partner = {partner:UInt32} AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND (block > {at:UInt64} OR block = {at:UInt64} AND log_index > {log:UInt32}) AND ts >= {from:Int64} AND ts <= {to:Int64}
    AND seq NOT IN (SELECT retracts FROM deposits WHERE partner = {partner:UInt32} AND sign = -1 AND seq <= {seq:UInt64})
  ORDER BY partner, block, log_index
  LIMIT {limit:UInt64}
  UNION ALL
  SELECT seq, 1, vault, user, assets, shares, request_index, block, ts, tx, log_index
  FROM withdrawal_events
  WHERE kind = 'requested' AND partner = {partner:UInt32} AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND (block > {at:UInt64} OR block = {at:UInt64} AND log_index > {log:UInt32}) AND ts >= {from:Int64} AND ts <= {to:Int64}
    AND seq NOT IN (SELECT retracts FROM withdrawal_events WHERE partner = {partner:UInt32} AND sign = -1 AND seq <= {seq:UInt64})
  ORDER BY block, log_index
  LIMIT {limit:UInt64}
)
ORDER BY block, log_index
LIMIT {limit:UInt64}

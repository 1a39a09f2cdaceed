-- The sweeps that hold some deposits, and what took sweeps back; oldest first.
SELECT seq, sign, retracts, vault, from_id, to_id, ts
FROM {db:Identifier}.sweeps
WHERE ({{.}}) AND sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
ORDER BY block, log_index, seq

-- The sweeps after a seq, and what took sweeps back.
SELECT seq, sign, retracts, vault, from_id, to_id, block, ts
FROM {db:Identifier}.sweeps
WHERE sign != 0 AND seq > {since:UInt64} AND seq <= {seq:UInt64}
ORDER BY seq
{{template "by_row"}}

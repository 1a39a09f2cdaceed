-- The highest deposit id that was swept, by vault, and the highest of a sweep
-- that was taken back: where that is not lower, swept_live.sql has to tell.
SELECT vault, maxIf(to_id, sign = 1) AS last, maxIf(to_id, sign = -1) AS lost
FROM {db:Identifier}.sweeps
WHERE sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
GROUP BY vault
{{template "by_row"}}

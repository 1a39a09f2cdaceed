-- When a vault was swept last; 0 for never.
SELECT max(time) AS total
FROM (
  SELECT toInt64(ts) AS time
  FROM {db:Identifier}.sweeps
  WHERE vault = toFixedString(unhex({vault:String}), 20) AND sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  GROUP BY time HAVING sum(sign) > 0
)
{{template "by_row"}}

-- The last few block records up to a block, taken back or not.
SELECT block, ts, sign
FROM {db:Identifier}.records
WHERE kind = 'block' AND sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
ORDER BY kind DESC, block DESC, seq DESC LIMIT {few:UInt64}
{{template "whole_rows"}}

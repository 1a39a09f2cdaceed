-- All rows about deposits in some ranges of vaults' numbers, where these are few.
SELECT {{if .Whole}}{{template "deposit"}}{{else}}vault, assets, block, log_index{{end}}, seq, sign, retracts
FROM {db:Identifier}.deposits
WHERE ({{.Ranges}}) AND seq <= {seq:UInt64} AND block <= {block:UInt64}
LIMIT {few:UInt64}
{{template "whole_rows"}}

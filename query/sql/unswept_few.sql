-- All rows about deposits in some ranges of vaults' numbers, where these are few.
SELECT {{template "deposit"}}, seq, sign, retracts
FROM {db:Identifier}.deposits
WHERE ({{.}}) AND seq <= {lastLog:UInt64} AND block <= {block:UInt64}
LIMIT {few:UInt64}
{{template "whole_rows"}}

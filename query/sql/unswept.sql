-- All rows about deposits of some blocks that no sweep has reached, where these are few.
SELECT {{template "deposit"}}, seq, sign, retracts
FROM {db:Identifier}.deposits
WHERE block >= {from:UInt64} AND {{.}} AND seq <= {lastLog:UInt64} AND block <= {to:UInt64}
LIMIT {few:UInt64}
{{template "whole_rows"}}

-- All rows about a vault's deposits after the last one that was swept, where these
-- are few.
SELECT {{template "deposit"}}, seq, sign, retracts
FROM {db:Identifier}.deposits
WHERE vault = {vault:FixedString(20)} AND deposit_id > {swept:UInt64} AND deposit_id <= {newest:UInt64}
  AND seq <= {seq:UInt64} AND block <= {block:UInt64}
LIMIT {few:UInt64}
{{template "whole_rows"}}

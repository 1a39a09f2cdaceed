-- The last few NAVs of a vault up to a block, taken back or not.
SELECT {{template "nav"}}
FROM {db:Identifier}.navs
WHERE vault = {vault:FixedString(20)} AND seq <= {lastLog:UInt64} AND block <= {block:UInt64}
ORDER BY vault DESC, block DESC, log_index DESC, seq DESC LIMIT {few:UInt64}
{{template "whole_rows"}}

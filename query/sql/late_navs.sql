-- The NAVs of all vaults from a block on, taken back or not.
SELECT {{template "nav"}}
FROM {db:Identifier}.navs
WHERE sign != 0 AND seq <= {lastLog:UInt64} AND block <= {block:UInt64} AND block >= {from:UInt64}
ORDER BY block DESC, log_index DESC, seq DESC
{{template "whole_rows"}}

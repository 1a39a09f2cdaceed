-- The newest NAV of every vault that has one from a block on.
SELECT {{template "nav"}}
FROM {db:Identifier}.navs AS r
WHERE sign != 0 AND seq <= {seq:UInt64} AND r.block <= {block:UInt64} AND r.block >= {from:UInt64}
GROUP BY vault, block, log_index HAVING sum(sign) > 0
ORDER BY block DESC, log_index DESC LIMIT 1 BY vault
{{template "by_row"}}

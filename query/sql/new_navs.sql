-- The NAVs after a seq, and what took some back. Of a vault the order of the log
-- is that of the chain.
SELECT {{template "nav"}}
FROM {db:Identifier}.navs
WHERE sign != 0 AND seq > {since:UInt64} AND seq <= {seq:UInt64}
ORDER BY seq
{{template "by_row"}}

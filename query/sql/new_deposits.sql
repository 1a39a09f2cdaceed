-- The deposits after a seq, and what took some back.
SELECT {{template "deposit"}}, sign, partner_user
FROM {db:Identifier}.deposits
WHERE sign != 0 AND seq > {since:UInt64} AND seq <= {seq:UInt64}
{{template "by_row"}}

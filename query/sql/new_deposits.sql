-- The deposits after a seq, and what took some back.
SELECT sign, vault, deposit_id, partner, partner_user, assets
FROM {db:Identifier}.deposits
WHERE sign != 0 AND seq > {since:UInt64} AND seq <= {seq:UInt64}
{{template "by_row"}}

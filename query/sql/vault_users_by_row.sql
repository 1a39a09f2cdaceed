-- The same out of the rows themselves.
SELECT vault, sum(vault_user) AS users, max(seq) AS last FROM {db:Identifier}.flows
WHERE ({vault:String} = '' OR vault = toFixedString(unhex({vault:String}), 20)) AND seq <= {seq:UInt64} AND block <= {block:UInt64}
GROUP BY vault
{{template "by_row"}}

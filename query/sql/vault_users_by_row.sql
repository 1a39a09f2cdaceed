-- The same out of all rows of the vault.
SELECT sum(vault_user) AS total FROM {db:Identifier}.flows
WHERE vault = toFixedString(unhex({vault:String}), 20) AND seq <= {seq:UInt64} AND block <= {block:UInt64}

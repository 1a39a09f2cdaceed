-- From the projection totals.
SELECT sum(vault_user) AS total FROM {db:Identifier}.flows
WHERE vault = toFixedString(unhex({vault:String}), 20)

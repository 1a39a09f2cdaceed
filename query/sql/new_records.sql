-- The records of blocks and vaults after a seq, and what took some back.
SELECT seq, sign, retracts, payload, toBool(kind = 'vault') AS of_vault, block, ts
FROM {db:Identifier}.records
WHERE kind IN ('block', 'vault') AND sign != 0 AND seq > {since:UInt64} AND seq <= {seq:UInt64}
ORDER BY seq
{{template "by_row"}}

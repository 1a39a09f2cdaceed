-- Every vault record, to be folded by seq.
SELECT seq, sign, retracts, payload
FROM {db:Identifier}.records
WHERE kind = 'vault' AND sign != 0 AND seq <= {seq:UInt64}
ORDER BY seq
{{template "by_row"}}

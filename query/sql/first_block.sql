-- The first live block record, found like the newest (indexed_block.sql).
SELECT block
FROM (
  SELECT block, seq, sign
  FROM {db:Identifier}.records
  WHERE kind = 'block' AND sign != 0 AND seq <= {seq:UInt64}
  ORDER BY block, seq DESC LIMIT {scan:UInt64}
)
GROUP BY block HAVING sum(sign) > 0
ORDER BY block LIMIT 1
{{template "by_row"}}

-- Between which blocks the first of a vault's deposits are that no sweep has reached. A
-- vault numbers them in the order of the chain.
SELECT min(block) AS low, max(block) AS high
FROM (
  SELECT block
  FROM {db:Identifier}.deposits
  WHERE vault = {vault:FixedString(20)} AND deposit_id > {swept:UInt64} AND deposit_id <= {newest:UInt64}
    AND seq <= {lastLog:UInt64} AND block <= {block:UInt64}
  ORDER BY vault, deposit_id LIMIT {scan:UInt64}
)
{{template "by_number"}}

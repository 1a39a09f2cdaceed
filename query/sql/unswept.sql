-- A vault's deposits after the last one that was swept, oldest first. Of one
-- place in the chain the newest row decides, for what a reorganisation takes
-- back it takes back newest first.
SELECT {{template "deposit"}}
FROM (
  SELECT {{template "deposit"}}, sign
  FROM {db:Identifier}.deposits
  WHERE vault = toFixedString(unhex({vault:String}), 20) AND deposit_id > {swept:UInt64}
    AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  ORDER BY block, log_index, seq DESC LIMIT 1 BY block, log_index
)
WHERE sign = 1
ORDER BY block, log_index LIMIT {limit:UInt64}
{{template "by_row"}}

-- A vault's deposits after the last one that was swept, oldest first. They are
-- found by their numbers, which a vault counts in the order of the chain, so that
-- of a long queue no more is read than is shown, and of a past one nothing that
-- came later (newest is the last of its numbers). Of one log the newest row
-- decides. Where many rows of the scan were taken back, the caller asks again
-- with a larger one.
SELECT {{template "deposit"}}
FROM (
  SELECT {{template "deposit"}}, sign
  FROM {db:Identifier}.deposits
  WHERE vault = {vault:FixedString(20)} AND deposit_id > {swept:UInt64} AND deposit_id <= {newest:UInt64}
    AND seq <= {lastLog:UInt64} AND block <= {block:UInt64}
  ORDER BY vault, deposit_id, seq DESC LIMIT 1 BY deposit_id, block, log_index LIMIT {scan:UInt64}
)
WHERE sign = 1
ORDER BY block, log_index LIMIT {limit:UInt64}
{{template "by_row"}}

-- What a record says, and what its users and requests did up to it, newest first.
SELECT line FROM (
  SELECT seq, concat('flows: seq ', toString(seq), ', sign ', toString(sign), ', vault ', lower(hex(vault)), ', user ', lower(hex(user)), ', block ', toString(block),
    ', deposited ', toString(deposited), ', requests ', toString(requests), ', withdrawn ', toString(withdrawn)) AS line
  FROM {database}.flows
  WHERE sign != 0 AND seq <= {seq:UInt64} AND user IN (SELECT user FROM {database}.flows WHERE seq = {seq:UInt64} AND sign != 0)
  UNION ALL
  SELECT seq, concat('requests: seq ', toString(seq), ', sign ', toString(sign), ', vault ', lower(hex(vault)), ', request ', toString(request_index), ', block ', toString(block),
    ', ', toString(kind), ', estimate ', toString(estimate), ', assets ', toString(assets), ', open ', toString(open), ', waiting ', toString(waiting)) AS line
  FROM {database}.requests
  WHERE sign != 0 AND seq <= {seq:UInt64} AND (vault, request_index) IN (SELECT vault, request_index FROM {database}.requests WHERE seq = {seq:UInt64} AND sign != 0)
  UNION ALL
  SELECT seq, concat('deposits: seq ', toString(seq), ', sign ', toString(sign), ', deposit ', toString(deposit_id), ', partner ', toString(partner), ', assets ', toString(assets)) AS line
  FROM {database}.deposits WHERE sign != 0 AND seq = {seq:UInt64}
  UNION ALL
  SELECT seq, concat('navs: seq ', toString(seq), ', sign ', toString(sign), ', vault ', lower(hex(vault)), ', ', toString(nav_per_share), ' a share, ', toString(total_assets), ' of ', toString(total_supply)) AS line
  FROM {database}.navs WHERE sign != 0 AND seq = {seq:UInt64}
  UNION ALL
  SELECT seq, concat('sweeps: seq ', toString(seq), ', sign ', toString(sign), ', vault ', lower(hex(vault)), ', deposits ', toString(from_id), ' to ', toString(to_id), ', ', toString(assets)) AS line
  FROM {database}.sweeps WHERE sign != 0 AND seq = {seq:UInt64}
)
ORDER BY seq DESC, line
LIMIT 20

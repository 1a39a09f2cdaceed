-- What the log of a record says, and what its user, and the logs of its request, said up to it, newest first.
SELECT line FROM (
  SELECT seq, concat('deposits: seq ', toString(seq), ', sign ', toString(sign), ', vault ', lower(hex(vault)), ', deposit ', toString(deposit_id), ', user ', lower(hex(user)),
    ', block ', toString(block), ', partner ', toString(partner), ', assets ', toString(assets)) AS line
  FROM deposits
  WHERE seq = {seq:UInt64} OR seq < {seq:UInt64} AND user IN (
    SELECT user FROM deposits WHERE seq = {seq:UInt64} UNION ALL SELECT user FROM withdrawal_events WHERE seq = {seq:UInt64})
  UNION ALL
  SELECT seq, concat('withdrawal_events: seq ', toString(seq), ', sign ', toString(sign), ', vault ', lower(hex(vault)), ', request ', toString(request_index), ', ', toString(kind),
    ', user ', lower(hex(user)), ', block ', toString(block), ', assets ', toString(assets)) AS line
  FROM withdrawal_events
  WHERE seq = {seq:UInt64} OR seq < {seq:UInt64} AND (
    (vault, request_index) IN (SELECT vault, request_index FROM withdrawal_events WHERE seq = {seq:UInt64})
    OR user IN (SELECT user FROM deposits WHERE seq = {seq:UInt64} UNION ALL SELECT user FROM withdrawal_events WHERE seq = {seq:UInt64}))
  UNION ALL
  SELECT seq, concat('navs: seq ', toString(seq), ', sign ', toString(sign), ', vault ', lower(hex(vault)), ', ', toString(nav_per_share), ' a share, ', toString(total_assets), ' of ', toString(total_supply)) AS line
  FROM navs WHERE seq = {seq:UInt64}
  UNION ALL
  SELECT seq, concat('sweeps: seq ', toString(seq), ', sign ', toString(sign), ', vault ', lower(hex(vault)), ', deposits ', toString(from_id), ' to ', toString(to_id), ', ', toString(assets)) AS line
  FROM sweeps WHERE seq = {seq:UInt64}
)
ORDER BY seq DESC, line
LIMIT 20

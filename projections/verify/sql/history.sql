-- The effects of a record, and earlier effects of its user and of its request, newest first.
SELECT concat('events: seq ', toString(seq), ', sign ', toString(sign), ', ', toString(effect),
  ', vault ', lower(hex(vault)),
  if(effect = 'sweep', concat(', deposits ', toString(id), ' to ', toString(id_to)), concat(', number ', toString(id))),
  ', user ', lower(hex(user)), ', block ', toString(block), ', partner ', toString(partner),
  ', assets ', toString(assets), ', shares ', toString(shares), ', nav ', toString(nav)) AS line
FROM events
WHERE effect != 'none' AND (seq = {seq:UInt64} OR seq < {seq:UInt64} AND (
  effect IN ('requested', 'funded', 'claimed', 'cancelled', 'expired') AND (vault, id) IN (
    SELECT vault, id FROM events
    WHERE seq = {seq:UInt64} AND effect IN ('requested', 'funded', 'claimed', 'cancelled', 'expired'))
  OR user IN (SELECT user FROM events WHERE seq = {seq:UInt64} AND user != toFixedString('', 20))))
ORDER BY seq DESC, line
LIMIT 20

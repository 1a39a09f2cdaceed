-- Payments to users: claims and instant withdrawals. A claim that does not give assets pays the amount that its
-- request was funded with, or else the estimate; a claim that names only its request pays the owner of the request.
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, partner_owner, id, shares, assets, tx
FROM live
WHERE effect = 'claimed' AND NOT no_assets AND NOT (by IN ('id', 'source') AND user = toFixedString('', 20))
  OR effect = 'instant'
UNION ALL
SELECT c.effect, c.block, c.log_index, c.sub, c.ts, c.vault,
  if((c.by != 'none' AND q.block > 0 AND (q.block, q.log_index, q.sub) < (c.block, c.log_index, c.sub) AS of_request)
    AND c.user = toFixedString('', 20), q.user, c.user),
  c.other, c.partner, c.partner_owner, c.given, c.shares,
  multiIf(NOT c.no_assets, c.assets, NOT of_request, 0, q.funded_block = {never:UInt64}, q.assets, q.funded_assets), c.tx
FROM (
  SELECT *, if(by = 'id', id, 0) AS given
  FROM about
  WHERE effect = 'claimed' AND (no_assets OR user = toFixedString('', 20))
) AS c
LEFT JOIN request AS q ON c.vault = q.vault AND c.id = q.id

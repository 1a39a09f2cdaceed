-- What was paid to users: claims and instant withdrawals. A claim that gives no assets pays the estimate of its request.
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, partner_owner, id, shares, assets, tx
FROM live
WHERE effect = 'claimed' AND NOT no_assets OR effect = 'instant'
UNION ALL
SELECT c.effect, c.block, c.log_index, c.sub, c.ts, c.vault, c.user, c.other, c.partner, c.partner_owner, c.given, c.shares,
  if(c.by != 'none' AND q.asked.1 > 0 AND q.asked.1 < c.place, q.asked.2, 0), c.tx
FROM (SELECT *, if(by = 'id', id, 0) AS given FROM about WHERE effect = 'claimed' AND no_assets) AS c
LEFT JOIN (
  SELECT vault, id, argMin((place, assets), place) AS asked
  FROM live
  WHERE effect = 'requested' AND vault IN (SELECT vault FROM live WHERE effect = 'claimed' AND no_assets)
  GROUP BY vault, id
) AS q ON c.vault = q.vault AND c.id = q.id

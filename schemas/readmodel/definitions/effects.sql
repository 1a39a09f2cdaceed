-- Effects that no later effect changes: sweeps, valuations and instant withdrawals of a vault, payments to a user,
-- and requests that name a partner.
SELECT entry.1 AS list, entry.2 AS owner, effect AS kind, block, log_index, sub, user, vault, other, partner, id, id_to,
  shares, assets, nav, expires, ts, tx AS hash, matures, by, grouped, group_id, source_id
FROM (
  SELECT effect, block, log_index, sub, user, vault, other, partner, id, id_to, shares, assets, nav, expires, ts, tx,
    if(effect = 'requested', matures, 0) AS matures, if(effect = 'requested', toString(by), 'none') AS by,
    grouped, if(effect = 'requested', group_id, 0) AS group_id,
    if(effect = 'requested', source_id, toFixedString('', 32)) AS source_id,
    if(effect = 'requested', ('partner_events', partner_owner), ('vault_events', vault)) AS entry
  FROM live
  WHERE effect = 'sweep' OR effect = 'requested' AND partner > 0
  UNION ALL
  SELECT 'valuation', block, log_index, sub, user, vault, other, partner, id, id_to, all_shares, all_assets, all_nav,
    expires, ts, tx, 0, 'none', false, 0, toFixedString('', 32), ('vault_events', vault)
  FROM valued
  UNION ALL
  SELECT toString(effect), block, log_index, sub, user, vault, other, partner, id, 0, shares, assets, 0,
    0, ts, tx, 0, 'none', false, 0, toFixedString('', 32),
    arrayJoin(if(effect = 'instant', [('user_events', user), ('vault_events', vault)], [('user_events', user)]))
  FROM paid
)

-- Effects that nothing after them changes: the sweeps and valuations of a vault, the claims of a user, and the requests
-- that a partner brought.
SELECT entry.1 AS list, entry.2 AS owner, effect AS kind, block, log_index, sub, user, vault, other, partner, id, id_to,
  shares, assets, nav, expires, ts, tx AS hash
FROM (
  SELECT *, multiIf(effect = 'claimed', ('user_events', user), effect = 'requested', ('partner_events', partner_owner),
    ('vault_events', vault)) AS entry
  FROM live
  WHERE effect IN ('sweep', 'valuation', 'claimed') OR effect = 'requested' AND partner > 0
)

-- The deposits of a vault by their number, and those of a user and of a partner.
SELECT entry.1 AS list, entry.2 AS owner, 'deposit' AS kind, entry.3 AS key, block, log_index, sub, user, vault, other,
  partner, id, shares, assets, ts, tx AS hash, closed_block, closed_ts, if(swept, 'sweep', 'none') AS closed_by
FROM (
  SELECT *, arrayJoin(arrayConcat([('vault_events', vault, toInt256(id)), ('user_events', user, 0)],
    if(partner = 0, [], [('partner_events', partner_owner, 0)]))) AS entry
  FROM deposit
)

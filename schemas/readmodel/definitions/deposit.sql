-- The deposits, with the block in which a sweep reached each: the block of the deposit itself if the sweep came
-- first. Deposits of groups become priced or void, and no sweep reaches them.
SELECT d.block, d.log_index, d.sub, d.ts, d.vault, d.user, d.other, d.partner, d.partner_owner, d.id, d.shares, d.assets,
  d.tx, d.grouped, d.group_id, toUInt64(0) AS priced_block,
  s.place > 0 AS swept,
  if(swept, greatest(d.block, s.block), {never:UInt64}) AS closed_block,
  multiIf(NOT swept, 0, s.block > d.block, s.ts, d.ts) AS closed_ts,
  if(swept, 'sweep', 'none') AS closed_by
FROM (SELECT * FROM live WHERE effect = 'deposit' AND NOT grouped) AS d
ASOF LEFT JOIN reached AS s ON d.vault = s.vault AND d.id <= s.id_to
UNION ALL
SELECT block, log_index, sub, ts, vault, user, other, partner, partner_owner, id, shares, assets, tx, grouped, group_id,
  priced_block, false, closed_block, closed_ts, if(is_void, 'void', 'none')
FROM grouped_deposit

-- The deposits, and when a sweep reached each: in its own block if that came after the sweep.
SELECT d.* EXCEPT (place, effect),
  s.place > 0 AS swept,
  if(swept, greatest(d.block, s.block), {never:UInt64}) AS closed_block,
  multiIf(NOT swept, 0, s.block > d.block, s.ts, d.ts) AS closed_ts
FROM (SELECT * FROM live WHERE effect = 'deposit') AS d
ASOF LEFT JOIN reached AS s ON d.vault = s.vault AND d.id <= s.id_to

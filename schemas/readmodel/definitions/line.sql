-- The rows of all lines. The claim with the smallest taken that is at least cum_to closes a request. A hash join would
-- hold all claims in memory.
SELECT row.*, if(in_line, (claim.place, claim.block, claim.ts, claim.effect),
  (toUInt128(0), toUInt64(0), toUInt32(0), last.5)) AS paid
FROM counted AS row
ASOF LEFT JOIN (SELECT vault, user, taken, place, block, ts, last.5 AS effect FROM counted WHERE raises) AS claim
  ON row.vault = claim.vault AND row.user = claim.user AND row.cum_to <= claim.taken
SETTINGS join_algorithm = 'full_sorting_merge'

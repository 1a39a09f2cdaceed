-- The running totals of some owners and users in each scope, at one block: for each, the row whose interval
-- contains the block; and when some users were first seen in a vault, or (for a zero address) in any vault. Rows that
-- cancel each other are included. At a past block the index of blocks skips granules of later rows, but not the
-- cursor, whose block is one of the newest.
SELECT list, seq, rewrites, sign, owner, scope, block, key, deposits, deposited, requests, estimated, claims, claimed
  , users, swept, swept_assets, swept_to, valuations -- if owners
  , valued_block, valued_log, valued_ts, nav, assets, shares, swept_ts -- if owners
  , user, ts -- if members
FROM lists
WHERE (list = 'cursor'
  OR (list = 'totals' AND owner IN ({owners}) AND key > {at:UInt64} AND block <= {at:UInt64}) -- if owners
  OR (list = 'user_totals' AND owner IN ({users}) AND key > {at:UInt64} AND block <= {at:UInt64}) -- if users
  OR (list = 'members' AND (owner, key) IN ({members}) AND scope = toFixedString('', 20) AND block <= {at:UInt64}) -- if members
  )
  AND (block <= {at:UInt64} OR block >= {lately:UInt64}) -- if past
SETTINGS optimize_move_to_prewhere = 0
  , use_skip_indexes = 0 -- unless past

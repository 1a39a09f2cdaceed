-- The users of each scope by address and by first block; those of all vaults and of each vault also by deposits and
-- by claims.
SELECT entry.1 AS list, owner, scope, entry.2 AS key, entry.3 AS block, user, ts
FROM (
  SELECT owner, scope, user, ts,
    arrayJoin(arrayConcat(
      [('members', reinterpretAsInt256(reverse(user)), block), ('first_seen', toInt256(block), block)],
      if(ranked, [('deposited', deposited, 0), ('withdrawn', withdrawn, 0)], []))) AS entry
  FROM member
)

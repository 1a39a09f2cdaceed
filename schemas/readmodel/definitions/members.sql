-- The users by themselves and by their first block in each scope; those of all vaults and of each by what they
-- deposited and by what they claimed.
SELECT entry.1 AS list, owner, scope, entry.2 AS key, entry.3 AS block, user, ts
FROM (
  SELECT owner, scope, user, ts,
    arrayJoin(arrayConcat(
      [('members', reinterpretAsInt256(reverse(user)), block), ('first_seen', toInt256(block), block)],
      if(ranked, [('deposited', deposited, 0), ('withdrawn', withdrawn, 0)], []))) AS entry
  FROM member
)

-- The number of deposits of an owner from before a block range that became void within it. One more row is the cursor.
SELECT list, toUInt64(sum(sign)) AS total, toUInt64(sum(sign * seq)) AS seq, toUInt64(sum(sign * rewrites)) AS rewrites
FROM lists
WHERE (list = 'groups' AND owner = {owner:FixedString(20)} AND scope IN ({scopes}) AND kind = 'deposit'
    AND key >= {first:UInt64} AND key <= {last:UInt64} AND block < {first:UInt64} AND closed_by = 'void')
  OR list = 'cursor'
GROUP BY list
SETTINGS optimize_move_to_prewhere = 0, use_skip_indexes = 0

-- The prices of single groups.
SELECT effect, vault, arrayJoin(arrayMap(x -> toUInt64(group_id + x), range(toUInt64(group_to - group_id + 1)))) AS group_id,
  place, block, assets, shares
FROM live
WHERE by = 'group'

-- The number of rows of events up to a seq, the number of their records, the newest seq, the number of distinct pairs
-- of record and effect, and the number of pairs that are missing or too many: a record has one row for each effect,
-- or one row if it has none. Bitmaps count exactly and need little memory.
SELECT count(), groupBitmap(seq), max(seq), groupBitmap(place) AS found,
  toUInt64(abs(2 * toInt64(groupBitmapArray(arrayPushBack(places,
    place))) - toInt64(found) - toInt64(sum(length(places)))))
FROM (
  SELECT seq, bitShiftLeft(toUInt64(sub), 48) + seq AS place,
    if(sub = 0, arrayMap(i -> bitShiftLeft(toUInt64(i), 48) + seq, range(greatest(effects, 1))), []) AS places
  FROM events
  WHERE seq <= {seq:UInt64}
)

-- The rows of events up to a seq, how many records they are of, the newest of these, how many rows are told apart by
-- record and effect, and how many of these there are more or less than the records say: a record has a row for each
-- effect, and one if it has none. Bitmaps are exact, and their memory is no limit.
SELECT count(), groupBitmap(seq), max(seq), groupBitmap(place) AS found,
  toUInt64(abs(2 * toInt64(groupBitmapArray(arrayPushBack(places,
    place))) - toInt64(found) - toInt64(sum(length(places)))))
FROM (
  SELECT seq, bitShiftLeft(toUInt64(sub), 48) + seq AS place,
    if(sub = 0, arrayMap(i -> bitShiftLeft(toUInt64(i), 48) + seq, range(greatest(effects, 1))), []) AS places
  FROM events
  WHERE seq <= {seq:UInt64}
)

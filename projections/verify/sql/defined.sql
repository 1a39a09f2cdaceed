-- Some lists against their definitions: the seq up to which they are written, how many rows the definitions give, how
-- many slices differ, and the first that does. What the rows of a slice hash to is added up (the sum wraps), so that
-- no row is held.
SELECT max(written), toUInt64(sum(wanted)), countIf(differs), minIf(slice, differs)
FROM (
  SELECT print % {pieces:UInt64} AS slice, maxIf(seq, is_cursor) AS written, sum(given) AS wanted,
    sumIf(held, compared) AS found,
    found != wanted OR sumIf((held - given) * reinterpretAsInt64(print), compared) != 0 AS differs
  FROM ({sides})
  GROUP BY slice
)

-- The live rows of a derived table against those of its definition: the seq up to which the table is written, how many live
-- cursor rows it has, the highest fence that stands elsewhere, how many rows the definition gives, how many slices of them differ,
-- and the first that does. What the rows of a slice hash to is added up (the sum wraps), so that no row is held.
SELECT max(written), sum(cursors), max(stray), toUInt64(sum(wanted)), countIf(differs), minIf(slice, differs)
FROM (
  SELECT print % {slices:UInt64} AS slice, maxIf(seq, is_cursor) AS written, sumIf(held, is_cursor) AS cursors, maxIf(fence, NOT is_cursor) AS stray,
    sumIf(held, NOT is_cursor) AS found, sum(given) AS wanted,
    found != wanted OR sumIf((held - given) * reinterpretAsInt64(print), NOT is_cursor) != 0 AS differs
  FROM ({sides})
  GROUP BY slice
)

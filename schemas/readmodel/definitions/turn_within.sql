-- The lines, divided into buckets of consecutive rows: ClickHouse keeps all rows of a window's partition in memory, and
-- an owner may have millions. claimed and funded are the sums of shares within the bucket up to a row, beyond is the
-- most that claims had exceeded the funded shares by, and beyond_before is the same before the row. A window over the
-- current row keeps no others.
SELECT *, max(claimed - funded) OVER so_far AS beyond, max(claimed - funded) OVER before AS beyond_before
FROM (
  SELECT *, sumIf(shares, is_claim) OVER so_far AS claimed, sumIf(shares, in_line) OVER so_far AS funded
  FROM (
    SELECT *, intDiv(row_number() OVER (PARTITION BY vault, user ORDER BY line_place, place
      ROWS BETWEEN CURRENT ROW AND CURRENT ROW), {bucket:UInt64}) AS bucket
    FROM turn
  )
  WINDOW so_far AS (PARTITION BY vault, user, bucket ORDER BY line_place, place ROWS UNBOUNDED PRECEDING)
)
WINDOW so_far AS (PARTITION BY vault, user, bucket ORDER BY line_place, place ROWS UNBOUNDED PRECEDING),
  before AS (PARTITION BY vault, user, bucket ORDER BY line_place, place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)

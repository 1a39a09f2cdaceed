-- The live rows of partner_totals against those of its definition: cursor rows and the seq up to which the table is written, the highest fence
-- that stands elsewhere, how many rows are equal and different, and the first of those, with how often it is in the table and in the definition.
-- Of one piece of so many, for all rows are held side by side.
SELECT cursors, written, stray, equal, different,
  if(different = 0, '', concatWithSeparator(' ', toString(first.1), lower(hex(first.2)), toString(first.3), toString(first.4),
    toString(first.5), toString(first.6))), first.7, first.8
FROM (
  SELECT sumIf(found, is_cursor) AS cursors, maxIf(seqs, is_cursor) AS written, maxIf(fences, NOT is_cursor) AS stray,
    countIf(NOT is_cursor AND found = 1 AND wanted = 1) AS equal, countIf(NOT is_cursor AND found != wanted) AS different,
    minIf((partner, vault, from_block, until_block, deposits, volume, found, wanted), NOT is_cursor AND found != wanted) AS first
  FROM (
    SELECT partner, vault, from_block, until_block, deposits, volume, is_cursor,
      sum(held) AS found, sum(given) AS wanted, max(seq) AS seqs, max(fence) AS fences
    FROM (
      SELECT partner, vault, from_block, until_block, deposits, volume,
        partner = 0 AS is_cursor, toInt64(sign) AS held, toInt64(0) AS given, seq, fence_seq AS fence
      FROM partner_totals
      WHERE is_cursor OR cityHash64(partner, vault, from_block) % {pieces:UInt64} = {piece:UInt64}
      UNION ALL
      SELECT partner, vault, from_block, until_block, deposits, volume, 0, 0, 1, 0, 0
      FROM ({definition})
      WHERE cityHash64(partner, vault, from_block) % {pieces:UInt64} = {piece:UInt64}
    )
    GROUP BY partner, vault, from_block, until_block, deposits, volume, is_cursor
  )
)

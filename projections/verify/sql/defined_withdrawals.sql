-- The live rows of withdrawals against those of its definition: cursor rows and the seq up to which the table is written, the highest fence
-- that stands elsewhere, how many rows are equal and different, and the first of those, with how often it is in the table and in the definition.
-- Of one piece of so many, for all rows are held side by side.
SELECT cursors, written, stray, equal, different,
  if(different = 0, '', concatWithSeparator(' ', toString(first.1), lower(hex(first.2)), toString(first.3), toString(first.4), lower(hex(first.5)), toString(first.6), lower(hex(first.7)), toString(first.8), toString(first.9), toString(first.10), toString(first.11), toString(first.12), toString(first.13))),
  first.14, first.15
FROM (
  SELECT sumIf(found, is_cursor) AS cursors, maxIf(seqs, is_cursor) AS written, maxIf(fences, NOT is_cursor) AS stray,
    countIf(NOT is_cursor AND found = 1 AND wanted = 1) AS equal, countIf(NOT is_cursor AND found != wanted) AS different,
    minIf((list, user, key, requested_log, vault, request_index, owner, estimate, expires_ts, requested_block, funded_block, closed_block, closed_by, found, wanted), NOT is_cursor AND found != wanted) AS first
  FROM (
    SELECT list, user, key, requested_log, vault, request_index, owner, estimate, expires_ts, requested_block, funded_block, closed_block, closed_by, is_cursor,
      sum(held) AS found, sum(given) AS wanted, max(seq) AS seqs, max(fence) AS fences
    FROM (
      SELECT toLowCardinality(toString(list)) AS list, user, key, requested_log, vault, request_index, owner, estimate, expires_ts, requested_block, funded_block,
        closed_block, toLowCardinality(toString(closed_by)) AS closed_by, list = 'cursor' AS is_cursor, toInt64(sign) AS held, toInt64(0) AS given, seq, fence_seq AS fence
      FROM withdrawals
      WHERE is_cursor OR cityHash64(vault, request_index) % {pieces:UInt64} = {piece:UInt64}
      UNION ALL
      SELECT toLowCardinality(toString(list)), user, key, requested_log, vault, request_index, owner, estimate, expires_ts, requested_block, funded_block,
        closed_block, toLowCardinality(toString(closed_by)), 0, 0, 1, 0, 0
      FROM ({definition})
      WHERE cityHash64(vault, request_index) % {pieces:UInt64} = {piece:UInt64}
    )
    GROUP BY list, user, key, requested_log, vault, request_index, owner, estimate, expires_ts, requested_block, funded_block, closed_block, closed_by, is_cursor
  )
)

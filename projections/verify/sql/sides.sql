-- The rows of a derived table and those of its definition: a hash of what a row says, how often the table holds it, by its
-- sign, and how often the definition gives it. The cursor row is in no definition.
SELECT cityHash64(* EXCEPT (is_cursor, held, given, seq, fence)) AS print, *
FROM (
  SELECT {columns}, {cursor} AS is_cursor, toInt64(sign) AS held, toInt64(0) AS given, seq, fence_seq AS fence
  FROM {table}
  UNION ALL
  SELECT {columns}, 0, 0, 1, 0, 0
  FROM ({definition})
)

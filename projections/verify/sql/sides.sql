-- The rows of some lists and those of their definitions: a hash of what a row says, how often the table holds it, by
-- its sign, and how often the definitions give it. The cursor comes along with each question, and says as of which
-- seq it is.
SELECT cityHash64({columns}) AS print, *
FROM (
  SELECT {columns}, toInt64(sign) AS held, toInt64(0) AS given, list = 'cursor' AS is_cursor,
    list IN ({lists}) AS compared
  FROM lists
  WHERE list IN ({lists}) OR list = 'cursor'
  UNION ALL
  SELECT {columns}, 0, 1, false, true
  FROM ({definitions})
)

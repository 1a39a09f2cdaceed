-- A page of the users of now in the order in which they came, out of the buckets
-- that it lies in, from the projection came_first. A place that has rows later than
-- the pin is late, and the first of all.
SELECT if(list = 'first', user, toFixedString('', 20)) AS user, if(list = 'first', toUInt32(key), 0) AS first_ts,
  sum(r.deposited) AS deposited, sum(r.withdrawn) AS withdrawn, max(seq) > {seq:UInt64} AS late
FROM {db:Identifier}.rankings AS r
WHERE list = 'first' AND bucket {buckets:OneOf(UInt32)}
GROUP BY first_ts, user HAVING sum(users) > 0 OR late
ORDER BY late DESC, first_ts {{if .Descending}}DESC{{else}}ASC{{end}}, user LIMIT {limit:UInt64}
SETTINGS preferred_optimize_projection_name = 'came_first', optimize_use_projection_filtering = 0, optimize_move_to_prewhere = 0

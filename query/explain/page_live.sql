-- A page of some logs of which only the live ones that count are given, oldest first, with how many they are in all and what
-- they change together: to find them is what costs, and so they are found once.
SELECT seq, block, log_index, event, vault, id, change, toUInt64(0) AS retracted_by, toInt64(count() OVER ()) AS live, sum(change) OVER () AS sum
FROM ({logs})
ORDER BY block, log_index
LIMIT {limit:UInt64} OFFSET {offset:UInt64}

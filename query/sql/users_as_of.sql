-- A page of the users as of a block, summed anew, and how many users there are.
SELECT user, deposited, withdrawn, first_ts, count() OVER () AS total
FROM ({{template "users" "AND block <= {block:UInt64}"}})
ORDER BY {{template "user_order" .}} LIMIT {limit:UInt64} OFFSET {offset:UInt64}
SETTINGS max_threads = 2

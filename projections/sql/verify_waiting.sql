-- The requests in the queue as of a block, and what those that are not funded ask
-- for and until when. A request that left the queue adds up to nothing.
SELECT lower(hex(vault)), request_index, sum(open), sum(waiting), toString(sum(waiting * estimate)), sum(waiting * expires_ts)
FROM {database}.requests
WHERE seq <= {seq:UInt64} AND block <= {block:UInt64} AND sign != 0
GROUP BY vault, request_index
HAVING sum(open) != 0 OR sum(waiting) != 0 OR sum(waiting * estimate) != 0 OR sum(waiting * expires_ts) != 0
ORDER BY vault, request_index
SETTINGS optimize_aggregation_in_order = 1

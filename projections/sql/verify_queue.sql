-- How many requests of each vault are in the queue as of a block, how many of
-- them are not funded, and what those ask for.
SELECT lower(hex(vault)), sum(open), sum(waiting), toString(sum(waiting * estimate))
FROM {database}.requests
WHERE seq <= {seq:UInt64} AND block <= {block:UInt64} AND sign != 0
GROUP BY vault
HAVING sum(open) != 0 OR sum(waiting) != 0 OR sum(waiting * estimate) != 0
ORDER BY vault

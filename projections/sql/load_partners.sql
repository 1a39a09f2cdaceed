-- How many live deposits tie each user of a batch to each partner, as of a seq.
SELECT partner, user, sum(sign)
FROM {database}.deposits
WHERE user IN (SELECT user FROM wanted) AND seq <= {seq:UInt64} AND sign != 0 AND partner != 0
GROUP BY partner, user

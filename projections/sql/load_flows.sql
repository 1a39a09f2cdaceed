-- What each user of a batch has in each vault, as of a seq.
SELECT user, vault, sum(deposits) + sum(requests), sum(first_ts), sum(deposited), sum(withdrawn)
FROM {database}.flows
WHERE user IN (SELECT user FROM wanted) AND seq <= {seq:UInt64} AND sign != 0
GROUP BY user, vault

-- How many of some logs are live, how many are retracted, and the sum of the changes of the live ones.
SELECT sum(sign) AS live, toInt64(countIf(sign = -1)) AS retracted, toString(sum(sign * change)) AS amount
FROM ({logs})

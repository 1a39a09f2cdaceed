-- How many of some logs are live and how many retracted, and what the live ones change together.
SELECT sum(sign) AS live, toInt64(countIf(sign = -1)) AS retracted, toString(sum(sign * change)) AS amount
FROM ({logs})

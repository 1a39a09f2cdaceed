-- The number of live and of retracted ones of some logs, and the sum of the changes of the live ones.
SELECT sum(sign) AS live, toInt64(countIf(sign = -1)) AS retracted, toString(sum(sign * change)) AS amount
FROM ({logs})

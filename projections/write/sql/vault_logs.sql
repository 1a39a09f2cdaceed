-- How many live logs of each vault are of a known event, and how many are not. It reads two narrow columns of all logs, once
-- when a generation is opened; afterwards the writer counts what it writes.
SELECT vault, sumIf(toInt64(sign), event != 'Unknown') AS known, sumIf(toInt64(sign), event = 'Unknown') AS unknown
FROM events
WHERE record = 'log' AND sub = 0
GROUP BY vault

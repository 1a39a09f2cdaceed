-- The number of live logs of each vault with a known event, and with an unknown one. The query reads two narrow
-- columns of all logs, once when a generation is opened; afterwards the writer counts what it writes.
SELECT vault, sumIf(toInt64(sign), event != 'Unknown') AS known, sumIf(toInt64(sign), event = 'Unknown') AS unknown
FROM events
WHERE record = 'log' AND sub = 0
GROUP BY vault

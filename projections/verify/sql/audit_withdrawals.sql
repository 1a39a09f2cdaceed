-- How many requests there are, by the live rows of withdrawals, in each list, and by the facts up to the table's cursor.
WITH (
  SELECT (maxIf(seq, list = 'cursor'), sumIf(sign, list = 'cursor'), sumIf(sign, list = 'queue'), sumIf(sign, list = 'user'))
  FROM withdrawals
) AS held, (
  SELECT count() FROM (
    SELECT vault, request_index FROM withdrawal_events
    WHERE kind = 'requested' AND seq <= held.1
    GROUP BY vault, request_index
    HAVING sum(sign) > 0
  )) AS asked
SELECT held.1, held.2, concat(toString(held.3), ' in the list of the queue and ', toString(held.4), ' in those of users'),
  concat(toString(asked), ' in the list of the queue and ', toString(asked), ' in those of users')
SETTINGS optimize_aggregation_in_order = 1

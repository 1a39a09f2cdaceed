-- How many requests there are, by the live rows of withdrawals and by the facts up to the table's cursor.
WITH (
  SELECT (maxIf(seq, is_cursor), sumIf(sign, is_cursor), sumIf(sign, NOT is_cursor))
  FROM (SELECT seq, sign, closed_block = {never:UInt64} AND vault = toFixedString('', 20) AS is_cursor FROM withdrawals)
) AS held
SELECT held.1, held.2, toString(held.3), toString((
  SELECT count() FROM (
    SELECT vault, request_index FROM withdrawal_events
    WHERE kind = 'requested' AND seq <= held.1
    GROUP BY vault, request_index
    HAVING sum(sign) > 0
  )))
SETTINGS optimize_aggregation_in_order = 1

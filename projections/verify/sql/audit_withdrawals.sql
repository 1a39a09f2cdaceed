-- How many requests there are, by the live rows of withdrawals and by the facts.
SELECT table.1, table.2, toString(table.3), toString(wanted)
FROM (SELECT
  (SELECT (maxIf(seq, is_cursor), sumIf(sign, is_cursor), sumIf(sign, NOT is_cursor))
    FROM (SELECT seq, sign, closed_block = {never:UInt64} AND vault = toFixedString('', 20) AS is_cursor FROM withdrawals)) AS table,
  (SELECT toInt64(count()) FROM (
    SELECT vault, request_index FROM withdrawal_events
    WHERE kind = 'requested' AND seq <= {seq:UInt64}
    GROUP BY vault, request_index
    HAVING sum(sign) > 0
  )) AS wanted)
SETTINGS optimize_aggregation_in_order = 1

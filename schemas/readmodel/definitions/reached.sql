-- The sweeps that reached deposits which no earlier sweep had reached. before is the last deposit that earlier sweeps
-- had reached, 0 if there was none: deposits are numbered from 1.
SELECT vault, id_to, block, ts, place, before
FROM (
  SELECT vault, id_to, block, ts, place, max(id_to) OVER earlier AS before
  FROM live
  WHERE effect = 'sweep'
  WINDOW earlier AS (PARTITION BY vault ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
WHERE id_to > before

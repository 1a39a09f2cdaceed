-- The sweeps that reached deposits which no sweep before them had reached; before is how far the vault was swept
-- until then, 0 for not at all: deposits count from 1.
SELECT vault, id_to, block, ts, place, before
FROM (
  SELECT vault, id_to, block, ts, place, max(id_to) OVER earlier AS before
  FROM live
  WHERE effect = 'sweep'
  WINDOW earlier AS (PARTITION BY vault ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
WHERE id_to > before

-- Effects that reach everything up to a group, and how far all of them have reached so far: bound. What joins a group
-- after it was reached takes part in the next one.
SELECT effect, vault, place, block, ts, assets, shares, bound, before IS NULL OR bound > before AS raises
FROM (
  SELECT effect, vault, place, block, ts, assets, shares,
    max(group_to) OVER (PARTITION BY effect, vault ORDER BY place ROWS UNBOUNDED PRECEDING) AS bound,
    max(toNullable(group_to)) OVER (PARTITION BY effect, vault ORDER BY place
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
  FROM live
  WHERE by = 'up_to_group'
)

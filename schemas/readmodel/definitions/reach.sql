-- Effects on all groups up to a number, with the highest group reached so far (bound). A deposit or request that
-- joins a group that was already reached takes part in the next such effect.
SELECT effect, vault, place, block, ts, assets, shares, bound, before IS NULL OR bound > before AS raises
FROM (
  SELECT effect, vault, place, block, ts, assets, shares,
    max(group_to) OVER (PARTITION BY effect, vault ORDER BY place ROWS UNBOUNDED PRECEDING) AS bound,
    max(toNullable(group_to)) OVER (PARTITION BY effect, vault ORDER BY place
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
  FROM live
  WHERE by = 'up_to_group'
)

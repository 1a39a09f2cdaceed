-- For each bucket of an owner with several: the sums of shares before it, and the most that claims had exceeded the
-- funded shares by.
SELECT vault, user, bucket, earlier_claimed, earlier_funded, max(earlier_claimed - earlier_funded + most) OVER before AS earlier_beyond
FROM (
  SELECT vault, user, bucket, most, sum(all_claimed) OVER before AS earlier_claimed, sum(all_funded) OVER before AS earlier_funded
  FROM (
    SELECT vault, user, bucket, max(claimed) AS all_claimed, max(funded) AS all_funded, max(beyond) AS most
    FROM turn_within
    WHERE (vault, user) IN (SELECT vault, user FROM turn_within WHERE bucket > 0)
    GROUP BY vault, user, bucket
  )
  WINDOW before AS (PARTITION BY vault, user ORDER BY bucket ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
WINDOW before AS (PARTITION BY vault, user ORDER BY bucket ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)

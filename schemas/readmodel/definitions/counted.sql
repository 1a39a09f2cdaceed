-- The rows of all lines with their sums. cum_to is the sum of shares funded up to and including a request, and taken is
-- the sum of funded shares that were claimed up to a claim: claims beyond the funded shares take nothing. raises marks
-- the claims that take something.
SELECT * EXCEPT (bucket, claimed, funded, beyond, beyond_before, earlier_claimed, earlier_funded, earlier_beyond),
  earlier_funded + funded AS cum_to,
  greatest(toInt256(0), earlier_beyond, earlier_claimed - earlier_funded + beyond) AS lost,
  greatest(toInt256(0), earlier_beyond, earlier_claimed - earlier_funded + beyond_before) AS lost_before,
  earlier_claimed + claimed - lost AS taken, is_claim AND lost - lost_before < shares AS raises
FROM turn_within
LEFT JOIN turn_earlier USING (vault, user, bucket)

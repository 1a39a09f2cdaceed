-- What is known of some members.
SELECT vault, partner, user, first_block, first_ts, deposited, withdrawn
FROM users
WHERE list = 'member' AND key = 0 AND (vault, partner, user) IN (SELECT vault, partner, user FROM wanted)
GROUP BY vault, partner, user, first_block, first_ts, deposited, withdrawn
HAVING sum(sign) > 0

-- The users of all vaults, with their first deposit, withdrawal request or instant withdrawal, and the sums of their
-- deposits and of their claims and instant withdrawals.
SELECT concat('0x', lower(hex(user))) AS user, toDateTime(anyIf(ts, list = 'members'), 'UTC') AS first_time,
  anyIf(block, list = 'members') AS first_block,
  anyIf(key, list = 'deposited') AS deposited, anyIf(key, list = 'withdrawn') AS withdrawn
FROM lists FINAL
WHERE list IN ('members', 'deposited', 'withdrawn') AND owner = toFixedString('', 20)
GROUP BY lists.user

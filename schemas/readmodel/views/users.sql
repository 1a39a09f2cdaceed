-- The users of all vaults: when each first deposited or requested a withdrawal, and what all deposits and claims of
-- the user come to.
SELECT concat('0x', lower(hex(user))) AS user, toDateTime(anyIf(ts, list = 'members'), 'UTC') AS first_time,
  anyIf(block, list = 'members') AS first_block,
  anyIf(key, list = 'deposited') AS deposited, anyIf(key, list = 'withdrawn') AS withdrawn
FROM lists FINAL
WHERE list IN ('members', 'deposited', 'withdrawn') AND owner = toFixedString('', 20)
GROUP BY lists.user

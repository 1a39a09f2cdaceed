-- The users of all vaults: when each first deposited or requested a withdrawal, and what all deposits and claims of
-- the user come to.
SELECT concat('0x', lower(hex(user))) AS user, toDateTime(ts, 'UTC') AS first_time, block AS first_block,
  deposited, withdrawn
FROM member
WHERE owner = toFixedString('', 20)

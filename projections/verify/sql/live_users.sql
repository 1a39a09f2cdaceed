-- The live rows of users, the cursor row first, and how often each is there; of a sample of the users.
SELECT is_cursor, max(seq), concatWithSeparator(' ', toString(list), lower(hex(vault)), toString(partner), toString(key), lower(hex(user)),
  toString(first_block), toString(first_ts), toString(deposited), toString(withdrawn), toString(sum(sign)))
FROM users
WHERE is_cursor OR reinterpretAsUInt64(reverse(substring(user, 13, 8))) % {n:UInt64} = {k:UInt64}
GROUP BY list, vault, partner, key, user, first_block, first_ts, deposited, withdrawn, list = 'cursor' AS is_cursor
HAVING sum(sign) != 0
ORDER BY list, vault, partner, key, user, first_block, first_ts, deposited, withdrawn
SETTINGS optimize_aggregation_in_order = 1

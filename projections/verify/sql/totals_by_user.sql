-- The number and the sum of live deposits, requests and claims of each user.
SELECT concatWithSeparator(' ', lower(hex(user)), toString(sumIf(sign, effect = 'deposit')),
  toString(sumIf(sign * assets, effect = 'deposit')),
  toString(sumIf(sign, effect = 'requested')), toString(sumIf(sign * assets, effect = 'requested')),
  toString(sumIf(sign, effect = 'claimed')), toString(sumIf(sign * assets, effect = 'claimed')))
FROM events
WHERE record = 'log' AND NOT quarantined AND seq <= {seq:UInt64} AND {both}
  AND effect IN ('deposit', 'requested', 'claimed')
GROUP BY user
ORDER BY user

-- The number and the sum of live deposits, requests and claims of each owner: vault, partner or user.
SELECT concatWithSeparator(' ', {text}, toString(sumIf(sign, effect = 'deposit')),
  toString(sumIf(sign * assets, effect = 'deposit')),
  toString(sumIf(sign, effect = 'requested')), toString(sumIf(sign * assets, effect = 'requested')),
  toString(sumIf(sign, effect = 'claimed')), toString(sumIf(sign * assets, effect = 'claimed')))
FROM events
WHERE record = 'log' AND NOT quarantined AND seq <= {seq:UInt64} AND {both}
  AND effect IN ('deposit', 'requested', 'claimed') AND {where}
GROUP BY {owner}
ORDER BY {owner}

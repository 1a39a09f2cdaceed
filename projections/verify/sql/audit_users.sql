-- What all users deposited and withdrew, by users and by the facts up to its cursor, and whether each list has all of them and says the same.
WITH (
  SELECT (maxIf(seq, list = 'cursor'), sumIf(sign, list = 'cursor'),
    sumIf(sign * deposited, everyone), sumIf(sign * withdrawn, everyone),
    sumIf(sign, list = 'first'), sumIf(sign, list = 'deposited'), sumIf(sign, list = 'withdrawn'),
    sumIf(sign * key, list = 'deposited'), sumIf(sign * key, list = 'withdrawn'),
    sumIf(sign, seen), sumIf(sign * deposited, seen), sumIf(sign * withdrawn, seen))
  FROM (
    SELECT seq, sign, list, key, deposited, withdrawn,
      list = 'member' AND partner = 0 AND vault = toFixedString('', 20) AS everyone, everyone AND first_block != {never:UInt64} AS seen
    FROM users
  )
) AS held
SELECT held.1, held.2,
  concat(toString(held.3), ' deposited, ', toString(held.4), ' withdrawn, in lists of ', toString(held.5), ', ', toString(held.6), ' and ', toString(held.7),
    ' users, who deposited ', toString(held.8), ' and withdrew ', toString(held.9)),
  concat(toString((SELECT sum(sign * assets) FROM deposits WHERE seq <= held.1)), ' deposited, ',
    toString((SELECT sum(sign * assets) FROM withdrawal_events WHERE kind = 'claimed' AND seq <= held.1)), ' withdrawn, in lists of ',
    toString(held.10), ', ', toString(held.10), ' and ', toString(held.10), ' users, who deposited ', toString(held.11), ' and withdrew ', toString(held.12))

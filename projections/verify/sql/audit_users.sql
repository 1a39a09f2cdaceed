-- What all users deposited and withdrew, by users and by the facts, and whether each list has all of them and says the same.
SELECT table.1, table.2,
  concat(toString(table.3), ' deposited, ', toString(table.4), ' withdrawn, in lists of ', toString(table.5), ', ', toString(table.6), ' and ', toString(table.7),
    ' users, who deposited ', toString(table.8), ' and withdrew ', toString(table.9)),
  concat(toString(wanted.1), ' deposited, ', toString(wanted.2), ' withdrawn, in lists of ', toString(table.10), ', ', toString(table.10), ' and ', toString(table.10),
    ' users, who deposited ', toString(table.11), ' and withdrew ', toString(table.12))
FROM (SELECT
  (SELECT (maxIf(seq, list = 'cursor'), sumIf(sign, list = 'cursor'),
      sumIf(sign * deposited, everyone), sumIf(sign * withdrawn, everyone),
      sumIf(sign, list = 'first'), sumIf(sign, list = 'deposited'), sumIf(sign, list = 'withdrawn'),
      sumIf(sign * key, list = 'deposited'), sumIf(sign * key, list = 'withdrawn'),
      sumIf(sign, seen), sumIf(sign * deposited, seen), sumIf(sign * withdrawn, seen))
    FROM (SELECT seq, sign, list, key, deposited, withdrawn,
      list = 'member' AND partner = 0 AND vault = toFixedString('', 20) AS everyone, everyone AND first_block != {never:UInt64} AS seen FROM users)) AS table,
  (SELECT (
    (SELECT sum(sign * assets) FROM deposits WHERE seq <= {seq:UInt64}),
    (SELECT sum(sign * assets) FROM withdrawal_events WHERE kind = 'claimed' AND seq <= {seq:UInt64}))) AS wanted)

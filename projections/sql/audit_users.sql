-- Users and their places in the lists, by rankings and by flows: how many there
-- are, what they deposited and withdrew, a fingerprint of all places, and one of
-- what these show beside their keys. Both fingerprints are sums over rows, so
-- that no place has to be put together; they wrap.
SELECT found, wanted
FROM (SELECT
  (SELECT concat(toString(sumIf(users, list = 'first')), ' users, ', toString(sumIf(users * key, list = 'deposited')), ' deposited, ',
      toString(sumIf(users * key, list = 'withdrawn')), ' withdrawn, fingerprints ',
      toString(sum(users * reinterpretAsInt64(cityHash64(toUInt8(list), key, user)))), ' and ',
      toString(sum((r.first + 3 * r.deposited + 5 * r.withdrawn) * reinterpretAsInt64(cityHash64(toUInt8(list), user)))))
    FROM {database}.rankings AS r WHERE seq <= {seq:UInt64} AND sign != 0) AS found,
  (SELECT concat(toString(count()), ' users, ', toString(sum(d)), ' deposited, ', toString(sum(w)), ' withdrawn, fingerprints ',
      toString(sum(reinterpretAsInt64(cityHash64(toUInt8(1), toInt256(first), user)) + reinterpretAsInt64(cityHash64(toUInt8(2), d, user))
        + reinterpretAsInt64(cityHash64(toUInt8(3), w, user)))), ' and ',
      toString(sum((3 * d + 5 * w) * reinterpretAsInt64(cityHash64(toUInt8(1), user)) + (first + 5 * w) * reinterpretAsInt64(cityHash64(toUInt8(2), user))
        + (first + 3 * d) * reinterpretAsInt64(cityHash64(toUInt8(3), user)))))
    FROM (
      SELECT user, sum(deposits) AS d, sum(withdrawals) AS w, minIf(first_time, live > 0) AS first
      FROM (
        SELECT user, vault, sum(vault_user) AS live, sum(first_ts) AS first_time, sum(deposited) AS deposits, sum(withdrawn) AS withdrawals
        FROM {database}.flows WHERE seq <= {seq:UInt64} AND sign != 0
        GROUP BY user, vault
      )
      GROUP BY user
      HAVING max(live) > 0
    )) AS wanted)
SETTINGS optimize_aggregation_in_order = 1

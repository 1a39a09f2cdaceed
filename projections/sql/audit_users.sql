-- Users and their places in the lists, by rankings and by flows: how many there
-- are, what they deposited and withdrew, and a fingerprint of all places.
SELECT found, wanted
FROM (SELECT
  (SELECT concat(toString(sumIf(sign, list = 'first')), ' users, ', toString(sumIf(sign * key, list = 'deposited')), ' deposited, ',
      toString(sumIf(sign * key, list = 'withdrawn')), ' withdrawn, fingerprint ',
      toString(sum(sign * reinterpretAsInt64(cityHash64(toUInt8(list), key, user)))))
    FROM {database}.rankings WHERE seq <= {seq:UInt64} AND sign != 0) AS found,
  (SELECT concat(toString(count()), ' users, ', toString(sum(d)), ' deposited, ', toString(sum(w)), ' withdrawn, fingerprint ',
      toString(sum(reinterpretAsInt64(cityHash64(toUInt8(1), toInt256(first), user)) + reinterpretAsInt64(cityHash64(toUInt8(2), d, user))
        + reinterpretAsInt64(cityHash64(toUInt8(3), w, user)))))
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

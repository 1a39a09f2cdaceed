-- Users, what they deposited and withdrew and when they came, by users and by flows.
SELECT found, wanted
FROM (SELECT
  (SELECT concat(toString(sum(sign)), ' users, ', toString(sum(sign * deposited)), ' deposited, ', toString(sum(sign * withdrawn)), ' withdrawn, ', toString(sum(sign * toInt64(first_ts))), ' first times')
    FROM {database}.users WHERE seq <= {seq:UInt64} AND sign != 0) AS found,
  (SELECT concat(toString(count()), ' users, ', toString(sum(d)), ' deposited, ', toString(sum(w)), ' withdrawn, ', toString(sum(first)), ' first times')
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

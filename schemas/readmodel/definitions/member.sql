-- The users of all vaults, of each vault, of each partner, and of each partner in a vault, with the first block of
-- each user there; for all vaults and for each vault (ranked) also the deposits of the user and the payments to the
-- user.
SELECT scopes.1 AS owner, scopes.2 AS scope, scopes.3 AS ranked, user,
  min(first_block) AS block, argMin(first_ts, first_block) AS ts, sum(deposits) AS deposited, sum(payments) AS withdrawn
FROM (
  SELECT user, first_block, first_ts, deposits, payments,
    toFixedString('', 20) AS everything,
    arrayJoin(arrayConcat([(everything, everything, true), (vault, everything, true)],
      if(through = everything, [], [(through, everything, false), (through, vault, false)]))) AS scopes
  FROM (
    SELECT vault, user, if(what = 'deposit', partner_owner, toFixedString('', 20)) AS through,
      min(if(what IN ('claimed', 'void'), {never:UInt64}, block)) AS first_block,
      argMin(ts, if(what IN ('claimed', 'void'), {never:UInt64}, block)) AS first_ts,
      sum(multiIf(what = 'deposit', assets, what = 'void', -assets, 0)) AS deposits,
      sum(if(what IN ('claimed', 'instant'), assets, 0)) AS payments
    FROM (
      SELECT vault, user, partner_owner, toString(effect) AS what, block, ts, assets
      FROM live
      WHERE effect IN ('deposit', 'requested')
      UNION ALL
      SELECT vault, user, partner_owner, 'void', block, ts, assets
      FROM grouped_deposit
      WHERE is_void
      UNION ALL
      SELECT vault, user, partner_owner, toString(effect), block, ts, assets
      FROM paid
    )
    GROUP BY vault, user, through
  )
)
GROUP BY owner, scope, ranked, user
HAVING block != {never:UInt64}

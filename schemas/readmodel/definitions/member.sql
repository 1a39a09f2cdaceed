-- The users of all vaults, of each vault, of each partner and of each partner in a vault: the first block of each
-- there, and in all vaults and in each (ranked) what the user deposited and claimed.
SELECT scopes.1 AS owner, scopes.2 AS scope, scopes.3 AS ranked, user,
  min(first_block) AS block, argMin(first_ts, first_block) AS ts, sum(deposits) AS deposited, sum(claims) AS withdrawn
FROM (
  SELECT user, first_block, first_ts, deposits, claims,
    toFixedString('', 20) AS everything,
    arrayJoin(arrayConcat([(everything, everything, true), (vault, everything, true)],
      if(through = everything, [], [(through, everything, false), (through, vault, false)]))) AS scopes
  FROM (
    SELECT vault, user, if(effect = 'deposit', partner_owner, toFixedString('', 20)) AS through,
      min(if(effect = 'claimed', {never:UInt64}, block)) AS first_block,
      argMin(ts, if(effect = 'claimed', {never:UInt64}, block)) AS first_ts,
      sum(if(effect = 'deposit', assets, 0)) AS deposits, sum(if(effect = 'claimed', assets, 0)) AS claims
    FROM live
    WHERE effect IN ('deposit', 'requested', 'claimed')
    GROUP BY vault, user, through
  )
)
GROUP BY owner, scope, ranked, user
HAVING block != {never:UInt64}

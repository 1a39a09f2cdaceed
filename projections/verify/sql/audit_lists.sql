-- Counts and sums of the lists, and their expected values computed from events up to the cursor of the lists: the
-- number of rows for each effect, and the newest totals. A deposit or request has one row for its user, one for its
-- vault, and one for its partner if it has one. Totals exclude void deposits. Payments of claims that do not give
-- assets follow from the requests, and are not compared here.
WITH (
  SELECT (maxIf(seq, list = 'cursor'),
    sumIf(sign, list = 'vault_events' AND kind = 'deposit'), sumIf(sign, list = 'user_events' AND kind = 'deposit'),
    sumIf(sign, list = 'partner_events'), sumIf(sign, list = 'user_events' AND kind = 'claimed'),
    sumIf(sign, list = 'vault_events' AND kind = 'sweep'), sumIf(sign, list = 'vault_events' AND kind = 'valuation'),
    sumIf(sign, list = 'queue'), sumIf(sign, list = 'requests'), sumIf(sign, list = 'user_requests'),
    sumIf(sign * toInt64(deposits), newest) + sumIf(sign * (2 + (partner > 0)), void),
    sumIf(sign * deposited, newest) + sumIf(sign * assets * (2 + (partner > 0)), void),
    sumIf(sign * toInt64(claims), newest), sumIf(sign * claimed, newest), sumIf(sign * toInt64(users), newest),
    sumIf(sign, list = 'members'), sumIf(sign, list = 'first_seen'),
    sumIf(sign, list = 'deposited'), sumIf(sign, list = 'withdrawn'), sumIf(sign * key, list = 'deposited') + sumIf(sign * assets * 2, void),
    sumIf(sign * toInt64(requests), newest), sumIf(sign * (2 + (partner > 0)), list = 'requests'),
    sumIf(sign * estimated, newest), sumIf(sign * assets * (2 + (partner > 0)), list = 'requests'))
  FROM (
    SELECT *, list IN ('totals', 'user_totals') AND key = {never:UInt64} AS newest,
      list = 'user_events' AND kind = 'deposit' AND closed_by = 'void' AS void
    FROM lists
  )
) AS held, (
  SELECT (sumIf(sign, effect = 'deposit'), sumIf(sign, effect IN ('deposit', 'requested') AND partner > 0),
    sumIf(sign, effect = 'claimed'), sumIf(sign, effect = 'sweep'), sumIf(sign, effect = 'valuation'),
    sumIf(sign * (2 + (partner > 0)), effect = 'deposit'),
    sumIf(sign * assets * (2 + (partner > 0)), effect = 'deposit'),
    sumIf(sign * 2, effect IN ('claimed', 'instant')),
    if(countIf(effect = 'claimed' AND no_assets) > 0, held.14, sumIf(sign * assets * 2, effect IN ('claimed', 'instant'))),
    sumIf(sign * assets * 2, effect = 'deposit'))
  FROM events
  WHERE record IN ('log', 'sample') AND NOT passed AND NOT quarantined AND seq <= held.1
) AS expected
SELECT held.1,
  concat(toString(held.2), ' deposits of vaults, ', toString(held.3), ' of users, ', toString(held.4),
    ' events of partners, ',
    toString(held.5), ' claims, ', toString(held.6), ' sweeps, ', toString(held.7), ' valuations, ',
    toString(held.8), ' requests in the queue, ', toString(held.9), ' of vaults, ', toString(held.10),
      ' of users, totals of ',
    toString(held.11), ' deposits of ', toString(held.12), ', ', toString(held.13), ' claims of ', toString(held.14),
      ', ',
    toString(held.21), ' requests of ', toString(held.23), ' and ', toString(held.15), ' users, ',
    toString(held.16), ' members, ', toString(held.17), ' by their first block, ', toString(held.18),
      ' by what they deposited and ',
    toString(held.19), ' by what they withdrew, who deposited ', toString(held.20)),
  concat(toString(expected.1), ' deposits of vaults, ', toString(expected.1), ' of users, ', toString(expected.2),
    ' events of partners, ',
    toString(expected.3), ' claims, ', toString(expected.4), ' sweeps, ', toString(expected.5), ' valuations, ',
    toString(held.8), ' requests in the queue, ', toString(held.8), ' of vaults, ', toString(held.8),
      ' of users, totals of ',
    toString(expected.6), ' deposits of ', toString(expected.7), ', ', toString(expected.8), ' claims of ', toString(expected.9), ', ',
    toString(held.22), ' requests of ', toString(held.24), ' and ', toString(held.16), ' users, ',
    toString(held.16), ' members, ', toString(held.16), ' by their first block, ', toString(held.18),
      ' by what they deposited and ',
    toString(held.18), ' by what they withdrew, who deposited ', toString(expected.10))

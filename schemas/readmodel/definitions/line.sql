-- The requests of special vaults, and the claims and cancellations that name only an owner, in one line per owner.
-- cum_to is the sum of shares funded up to and including a request, and taken is the sum of funded shares that were
-- claimed up to a claim; claims beyond the funded shares take nothing. The claim with the smallest taken that is at
-- least cum_to closes a request.
SELECT *,
  if(in_line, argMinIf((place, block, ts, last.5), taken, raises)
    OVER (PARTITION BY vault, user ORDER BY if(is_claim, taken, cum_to) DESC, is_claim DESC ROWS UNBOUNDED PRECEDING),
    (toUInt128(0), toUInt64(0), toUInt32(0), last.5)) AS paid
FROM (
  SELECT *, taken > lagInFrame(taken, 1, toInt256(0))
      OVER (PARTITION BY vault, user ORDER BY line_place, place ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS more,
    is_claim AND more AS raises
  FROM (
    SELECT *, claimed - greatest(toInt256(0), max(claimed - cum_to)
      OVER (PARTITION BY vault, user ORDER BY line_place, place ROWS UNBOUNDED PRECEDING)) AS taken
    FROM (
      SELECT *, sumIf(shares, is_claim) OVER so_far AS claimed, sumIf(shares, in_line) OVER so_far AS cum_to
      FROM (
        SELECT vault, id, place, block, log_index, sub, ts, user, other, partner, partner_owner, shares, assets, expires,
          hash, by, grouped, group_id, source_id, matures, priced_block, toInt256(priced_assets) AS priced_assets,
          funded_block, funded_ts, funded_assets, last, in_line, line_place, false AS is_claim
        FROM settled
        UNION ALL
        SELECT vault, id, place, block, log_index, sub, ts, user, other, partner, partner_owner, shares, assets, expires,
          tx, by, grouped, group_id, source_id, matures, 0, 0, 0, 0, 0, (place, block, ts, assets, effect, false),
          false, place, true
        FROM live
        WHERE effect = 'claimed' AND by = 'owner' OR effect = 'cancelled' AND by = 'fifo'
      )
      WINDOW so_far AS (PARTITION BY vault, user ORDER BY line_place, place ROWS UNBOUNDED PRECEDING)
    )
  )
)

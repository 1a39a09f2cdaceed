-- What came through partners, by the newest totals and by the facts up to the table's cursor.
WITH (
  SELECT (maxIf(seq, partner = 0), sumIf(sign, partner = 0), sumIf(sign * toInt64(deposits), newest), sumIf(sign * volume, newest))
  FROM (SELECT seq, sign, partner, deposits, volume, partner > 0 AND until_block = {never:UInt64} AS newest FROM partner_totals)
) AS held
SELECT held.1, held.2, concat(toString(held.3), ' deposits of ', toString(held.4)),
  (SELECT concat(toString(sum(sign)), ' deposits of ', toString(sum(sign * assets))) FROM deposits WHERE partner > 0 AND seq <= held.1)

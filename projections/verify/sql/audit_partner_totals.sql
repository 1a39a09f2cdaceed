-- What came through partners, by the newest totals and by the facts.
SELECT table.1, table.2, concat(toString(table.3), ' deposits of ', toString(table.4)), concat(toString(wanted.1), ' deposits of ', toString(wanted.2))
FROM (SELECT
  (SELECT (maxIf(seq, partner = 0), sumIf(sign, partner = 0), sumIf(sign * toInt64(deposits), newest), sumIf(sign * volume, newest))
    FROM (SELECT seq, sign, partner, deposits, volume, partner > 0 AND until_block = {never:UInt64} AS newest FROM partner_totals)) AS table,
  (SELECT (sum(sign), sum(sign * assets)) FROM deposits WHERE partner > 0 AND seq <= {seq:UInt64}) AS wanted)

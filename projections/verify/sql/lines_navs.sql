-- A NAV in words.
SELECT seq, concatWithSeparator(' ', toString(seq), toString(sign), toString(retracts), lower(hex(vault)),
  toString(nav_per_share), toString(total_assets), toString(total_supply),
  toString(block), toString(ts), lower(hex(tx)), toString(log_index)) AS line
FROM navs

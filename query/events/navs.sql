-- What some logs say of NAVs.
SELECT seq, nav_per_share, total_assets, total_supply
FROM navs
WHERE block IN ({blocks}) AND seq IN ({seqs})

-- What some logs say of deposits.
SELECT seq, deposit_id, partner, assets, shares
FROM deposits
WHERE block IN ({blocks}) AND seq IN ({seqs})
SETTINGS optimize_use_projections = 0

-- What some logs say of withdrawal requests.
SELECT seq, request_index, partner, assets, shares
FROM withdrawal_events
WHERE block IN ({blocks}) AND seq IN ({seqs})
SETTINGS optimize_use_projections = 0

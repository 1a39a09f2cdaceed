-- What some logs say of sweeps.
SELECT seq, from_id, to_id, assets
FROM sweeps
WHERE block IN ({blocks}) AND seq IN ({seqs})

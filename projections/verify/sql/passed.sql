-- The vaults that a generation passes over, as recorded in the log.
SELECT DISTINCT payload FROM events WHERE record = 'vault' AND passed AND seq <= {seq:UInt64}

-- The vaults that a generation passes over, as the log has them.
SELECT DISTINCT payload FROM events WHERE record = 'vault' AND passed AND seq <= {seq:UInt64}

-- The seqs of the block records that a generation skips.
SELECT toString(seq) FROM events WHERE record = 'block' AND passed AND seq <= {seq:UInt64}

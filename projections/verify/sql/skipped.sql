-- The vaults whose records a generation skips, and the seq of the first block record that it skips, 0 for none.
SELECT arraySort(groupUniqArrayIf(vault, record = 'vault')), minIf(seq, record = 'block')
FROM events
WHERE passed AND seq <= {seq:UInt64}

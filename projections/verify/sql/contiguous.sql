-- One row for every seq: three equal numbers. The seqs are told apart in a bitmap,
-- which is exact and takes a bit for each, so that its memory is no limit.
SELECT count(), groupBitmap(seq), max(seq) FROM records

-- One row for every seq: three equal numbers.
SELECT count(), uniqExact(seq), max(seq) FROM {database}.records

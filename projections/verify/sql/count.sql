-- All rows of a table, live or not.
SELECT count() FROM {table}

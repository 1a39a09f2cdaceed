-- The active parts of a table, with the block numbers that each is made of.
SELECT name, partition_id, min_block_number, max_block_number, rows
FROM system.parts
WHERE active AND database = {database:String} AND table = {table:String}
ORDER BY partition_id, min_block_number

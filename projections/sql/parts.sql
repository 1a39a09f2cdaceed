-- The parts of a table, with the block numbers that each is made of, those that were merged into another one
-- included: the larger one first.
SELECT name, partition_id, min_block_number, max_block_number, rows
FROM system.parts
WHERE database = {database:String} AND table = {table:String}
ORDER BY partition_id, min_block_number, max_block_number DESC, level DESC

-- The parts of a table with their ranges of block numbers, including inactive parts that were merged into another
-- one; the larger part comes first.
SELECT name, partition_id, min_block_number, max_block_number, rows
FROM system.parts
WHERE database = {database:String} AND table = {table:String}
ORDER BY partition_id, min_block_number, max_block_number DESC, level DESC

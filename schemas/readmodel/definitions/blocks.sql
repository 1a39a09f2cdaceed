-- The blocks.
SELECT 'blocks' AS list, toInt256(block) AS key, block, hash, ts FROM mined WHERE listed

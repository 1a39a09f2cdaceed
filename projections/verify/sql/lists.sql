-- Whether the table lists exists.
SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'lists'

-- Whether there is the table lists.
SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'lists'

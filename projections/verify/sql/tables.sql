-- The tables that there are.
SELECT name FROM system.tables WHERE database = currentDatabase()

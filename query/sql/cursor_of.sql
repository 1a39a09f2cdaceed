-- How far one table is: read from one row of each part.
SELECT max(seq) AS seq FROM {db:Identifier}.{{.}}

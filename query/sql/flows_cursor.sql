-- How far flows is: read from one row of each part.
SELECT max(seq) AS seq FROM {db:Identifier}.flows

-- How far the generation is: the end of the newest whole unit, for the spine is written last.
SELECT max(seq) AS seq FROM records

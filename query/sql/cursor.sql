-- How far every table of the generation is: the seq up to which an answer may
-- read all of them.
SELECT min(last) AS seq FROM (
  SELECT max(seq) AS last FROM {db:Identifier}.records
  UNION ALL SELECT max(seq) FROM {db:Identifier}.deposits
  UNION ALL SELECT max(seq) FROM {db:Identifier}.flows
  UNION ALL SELECT max(seq) FROM {db:Identifier}.rankings
  UNION ALL SELECT max(seq) FROM {db:Identifier}.requests
  UNION ALL SELECT max(seq) FROM {db:Identifier}.navs
  UNION ALL SELECT max(seq) FROM {db:Identifier}.sweeps
)
SETTINGS {{template "newer_analyzer"}}

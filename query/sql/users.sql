-- A page of the users of now. last goes through the first rows in the order of
-- the list, and stops early, for the table is sorted so; page takes all the rows
-- up to the last key seen, so that neither users with equal keys are parted nor
-- a place taken from one left. Where too many of the rows cancel out, the caller
-- asks again with a larger scan. What the page shows of its users is in flows.
WITH last AS (
    SELECT {{if .Descending}}min((k, toFixedString('', 20))){{else}}max((k, u)){{end}}
    FROM (
      SELECT key AS k, user AS u
      FROM {db:Identifier}.rankings
      WHERE list = '{{.List}}' AND sign != 0 AND seq <= {seq:UInt64}
      ORDER BY list, key{{if .Descending}} DESC{{else}}, user{{end}} LIMIT {scan:UInt64}
    )
  ),
  page AS (
    SELECT user
    FROM {db:Identifier}.rankings
    WHERE list = '{{.List}}' AND sign != 0 AND seq <= {seq:UInt64}
      AND key {{if .Descending}}>={{else}}<={{end}} (SELECT * FROM last).1{{if not .Descending}} AND (key, user) <= (SELECT * FROM last){{end}}
    GROUP BY key, user HAVING sum(sign) > 0
    ORDER BY key {{if .Descending}}DESC{{else}}ASC{{end}}, user LIMIT {limit:UInt64} OFFSET {offset:UInt64}
  )
{{template "users" "AND user IN (SELECT user FROM page)"}}
ORDER BY {{template "user_order" .}}

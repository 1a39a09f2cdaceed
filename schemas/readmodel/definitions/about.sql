-- The requests, and the effects on single requests. An effect that names a source id of 32 bytes is about the first
-- request with that id; if no request has it, by is none and the effect is about no request.
SELECT *
FROM live
WHERE effect = 'requested' OR effect IN ('funded', 'claimed', 'cancelled', 'expired') AND by = 'id'
UNION ALL
SELECT e.* REPLACE (s.id AS id, if(s.place = 0, 'none', 'source') AS by)
FROM (SELECT * FROM live WHERE effect IN ('funded', 'claimed', 'cancelled', 'expired') AND by = 'source') AS e
LEFT JOIN (
  SELECT vault, first.2 AS source_id, argMin(id, first.1) AS id, min(first.1) AS place
  FROM (
    SELECT vault, id, argMin((place, source_id), place) AS first
    FROM live
    WHERE effect = 'requested' AND vault IN (SELECT vault FROM live WHERE source_id != toFixedString('', 32))
    GROUP BY vault, id
  )
  WHERE source_id != toFixedString('', 32)
  GROUP BY vault, source_id
) AS s ON e.vault = s.vault AND e.source_id = s.source_id

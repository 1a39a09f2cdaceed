-- The vaults whose requests belong to groups, or are claimed first in, first out.
SELECT DISTINCT vault
FROM live
WHERE effect = 'requested' AND (grouped OR by != 'none')

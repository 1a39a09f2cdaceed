-- name: ListCertificates :many
-- All certificates of a partner, those of its current URL first. No row has the key.
SELECT c.url, c.authorities, c.client, c.changed_at, coalesce(c.url = e.url, false)::boolean AS current
FROM endpoint_certificates c JOIN endpoint e ON e.partner_id = c.partner_id
WHERE c.partner_id = $1 ORDER BY coalesce(c.url = e.url, false) DESC, c.url;

-- name: StoredCertificates :one
-- What is stored for a URL. No row has the key: a login that changes certificates need not be able to read it.
SELECT authorities <> '' AS has_authorities, client <> '' AS has_client, client_fingerprint
FROM endpoint_certificates WHERE partner_id = $1 AND url = $2;

-- name: CountCertificates :one
SELECT count(*) FROM endpoint_certificates WHERE partner_id = $1;

-- name: InsertCertificates :exec
INSERT INTO endpoint_certificates (partner_id, url, authorities, authorities_expire, client, client_key, client_expires, client_fingerprint)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: ReplaceAuthorities :exec
UPDATE endpoint_certificates SET id = DEFAULT, authorities = $3, authorities_expire = $4, changed_at = now()
WHERE partner_id = $1 AND url = $2;

-- name: ReplaceClient :exec
UPDATE endpoint_certificates SET id = DEFAULT, client = $3, client_key = $4, client_expires = $5, client_fingerprint = $6,
  changed_at = now()
WHERE partner_id = $1 AND url = $2;

-- name: DeleteCertificates :exec
DELETE FROM endpoint_certificates WHERE partner_id = $1 AND url = $2;

-- name: CertificatesChanged :exec
-- Another version of the endpoint, if these certificates are those of its URL: attempts note the version.
UPDATE endpoint SET version = version + 1, updated_at = now() WHERE partner_id = $1 AND url = sqlc.arg(url)::text;

-- name: SealedClientKeys :many
SELECT id, partner_id, url, client_key FROM endpoint_certificates WHERE client <> '' ORDER BY id;

-- name: ReplaceClientKey :exec
-- The same key, sealed again: nothing changes for receivers, so the id stays.
UPDATE endpoint_certificates SET client_key = $2 WHERE id = $1;

-- name: CertificateExpiries :many
-- When the first certificate of each kind expires, of the current URLs of enabled partners.
SELECT c.partner_id, c.authorities_expire, c.client_expires
FROM endpoint_certificates c JOIN endpoint e ON e.partner_id = c.partner_id AND e.url = c.url
JOIN partner p ON p.id = c.partner_id WHERE NOT p.disabled ORDER BY c.partner_id;

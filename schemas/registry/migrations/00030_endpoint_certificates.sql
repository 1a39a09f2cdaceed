-- +goose Up

-- The certificates for a partner's webhook URL. They belong to the URL: dispatch uses them only while it is the
-- partner's, so that no other host gets the client certificate or is trusted because of the authorities. A change takes
-- another id; the same key sealed again does not. Written by `navlog partner certificates`.
CREATE TABLE endpoint_certificates (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id bigint NOT NULL REFERENCES partner (id),
  url text NOT NULL,
  -- In PEM. Authorities replace those of the system; '' if there are none.
  authorities text NOT NULL,
  authorities_expire timestamptz,
  -- The client certificate with its chain, in PEM, and its key in PEM, encrypted like the signing secret; '' if there is
  -- none.
  client text NOT NULL,
  client_key bytea NOT NULL,
  client_expires timestamptz,
  -- SHA-256 of the client certificate.
  client_fingerprint bytea,
  changed_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (partner_id, url),
  CHECK (authorities <> '' OR client <> ''),
  CHECK ((authorities = '') = (authorities_expire IS NULL)),
  CHECK ((client = '') = (client_expires IS NULL)),
  CHECK ((client = '') = (client_fingerprint IS NULL)),
  CHECK ((client = '') = (octet_length(client_key) = 0))
);

-- +goose Down
DROP TABLE endpoint_certificates;

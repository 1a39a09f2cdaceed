-- From the projection totals.
SELECT sum(sign) AS total FROM {db:Identifier}.deposits WHERE partner = {partner:UInt32}

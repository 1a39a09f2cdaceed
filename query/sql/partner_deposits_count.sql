SELECT sum(sign) AS total
FROM {db:Identifier}.deposits
WHERE partner = {partner:UInt32} AND seq <= {seq:UInt64} AND block <= {block:UInt64}

SELECT sum(sign) AS total FROM {db:Identifier}.users WHERE seq <= {seq:UInt64}

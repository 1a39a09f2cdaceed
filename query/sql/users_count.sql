SELECT sum(sign) AS total FROM {db:Identifier}.rankings WHERE list = 'first' AND seq <= {seq:UInt64}

-- From the projection totals.
SELECT sum(sign) AS total FROM {db:Identifier}.rankings WHERE list = 'first'

-- From the projection live.
SELECT sum(sign) AS total FROM {db:Identifier}.users

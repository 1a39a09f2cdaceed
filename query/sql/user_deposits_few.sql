-- All rows about one user's deposits, where these are few.
SELECT {{template "deposit"}}, seq, sign, retracts
{{template "user_deposits"}}
LIMIT {few:UInt64}
{{template "by_user"}}

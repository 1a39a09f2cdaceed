SELECT sum(sign) AS total
{{template "user_deposits"}}

-- What each log did to one user: mostly there are few, and to add them up here
-- takes less than to have the engine plan it.
SELECT vault, vault_user AS live, first_ts, deposits, deposited, requests, estimated, withdrawn
FROM {db:Identifier}.flows
{{template "user_flows"}}
LIMIT {few:UInt64}
{{template "by_row"}}

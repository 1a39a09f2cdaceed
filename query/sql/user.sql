-- What one user did in each vault; first_ts counts where live is 1. Told to
-- PREWHERE, the engine need not weigh what to look at first.
SELECT vault, sum(vault_user) AS live, sum(f.first_ts) AS first_ts, sum(f.deposits) AS deposits, sum(f.deposited) AS deposited,
  sum(f.requests) AS requests, sum(f.estimated) AS estimated, sum(f.withdrawn) AS withdrawn
FROM {db:Identifier}.flows AS f
{{template "user_flows"}}
GROUP BY vault
{{template "by_row"}}

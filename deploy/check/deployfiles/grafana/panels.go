package grafana

const (
	// logBehind and servedBehind are the blocks that the log and the responses of each instance are behind the chain.
	logBehind    = `clamp_min(max(navlog_ingest_head_block{chain=~"$chain"}) - max(navlog_ingest_indexed_block{chain=~"$chain"}), 0)`
	servedBehind = `max by (instance) (clamp_min(scalar(max(navlog_ingest_head_block{chain=~"$chain"})) - navlog_query_indexed_block{chain=~"$chain"}, 0))`
	// inSeconds divides blocks by the chain's block rate of the last hour.
	inSeconds = ` / scalar(clamp_min(deriv(max(navlog_ingest_head_block{chain=~"$chain"} > 0)[1h:1m]), 0.001))`
)

// ready is 1 if a program is ready, 0 if it is not, and -1 if Prometheus does not reach it. A standby does not count.
func ready(program string) string {
	labels := `{chain=~"$chain",program="` + program + `"}`
	return `max(navlog_ready` + labels + ` * (1 - navlog_standby` + labels + `)) or vector(-1)`
}

// lastHour is what was counted in the last hour, including what a program counted before its first scrape.
func lastHour(counter string) string {
	return counter + ` unless ` + counter + ` offset 1h or increase(` + counter + `[1h])`
}

// ofPrograms selects the series of navlog's programs from a metric of any process.
func ofPrograms(metric string) string {
	return `max by (program, instance) (` + metric +
		` * on (job, instance) group_right () (navlog_ready{chain=~"$chain"} >= bool 0))`
}

// rows are the rows of the dashboard, from top to bottom.
var rows = []row{
	{
		id: 1, title: "Is everything healthy?",
		panels: []panel{
			{
				id: 2, title: "Ready", as: status, width: 16, height: 4,
				description: "A program is not ready, or Prometheus does not reach it. `navlog status` and its /readyz show " +
					"why, also for a standby that could not take over.",
				alerts: "NavlogNotReady, NavlogNotRunning, NavlogStandbyNotReady",
				texts:  []text{{"1", "ready", "green"}, {"0", "not ready", "red"}, {"-1", "not seen", "red"}},
				queries: []query{
					{"ingest", ready("ingest")},
					{"project", ready("project")},
					{"serve", ready("serve")},
					{"dispatch", ready("dispatch")},
				},
			},
			{
				id: 3, title: "Decisions for an operator", as: status, height: 4,
				description: "Frozen: `navlog ingest resume` shows what continuing would retract. Disproven: `navlog " +
					"verify` shows what is wrong in the log. Proofs failing: `navlog status` shows why.",
				alerts: "NavlogNotReady, LogDisproven, ReceiptsNotProven, ChainFrozen",
				texts:  []text{{"0", "no", "green"}, {"1", "yes", "red"}},
				queries: []query{
					{"frozen", `max(navlog_ingest_frozen{chain=~"$chain"})`},
					{"disproven", `max(navlog_ingest_disproven{chain=~"$chain"})`},
					{"proofs failing", `max(navlog_ingest_receipts_failing{chain=~"$chain"})`},
				},
			},
			{
				id: 4, title: "Blocks behind the chain", width: 12, decimals: new(0.0),
				description: "If the log falls behind, check the nodes; if only responses do, check the read models.",
				alerts:      "NavlogNotReady, LogBehindHead",
				queries: []query{
					{"log", logBehind},
					{"responses of {{instance}}", servedBehind},
				},
			},
			{
				id: 5, title: "Seconds behind the chain", width: 12, unit: "s",
				description: "The same blocks in seconds, at the chain's block rate of the last hour. If read models were " +
					"last seen long ago, ClickHouse does not respond to serve. The age of responses by the time of their " +
					"blocks is lagSeconds of the API.",
				alerts: "NavlogNotReady, AnswersBehind",
				queries: []query{
					{"log", logBehind + inSeconds},
					{"responses of {{instance}}", servedBehind + inSeconds},
					{"read models last seen by {{instance}}",
						`max by (instance) (navlog_query_snapshot_age_seconds{chain=~"$chain"})`},
					{"responses of {{instance}}, by the time of blocks",
						`max by (instance) (navlog_query_lag_seconds{chain=~"$chain"})`},
				},
			},
		},
	},
	{
		id: 6, title: "Chain to log: ingest",
		panels: []panel{
			{
				id: 7, title: "Blocks per second", negative: true,
				description: "If the chain stops, the cause is the node or the chain: check another node. The panels nearby " +
					"show whether the log keeps up.",
				alerts: "NavlogNotReady, HeadStandsStill",
				queries: []query{
					{"chain", `deriv(max(navlog_ingest_head_block{chain=~"$chain"} > 0)[5m:15s])`},
					{"log", `deriv(max(navlog_ingest_indexed_block{chain=~"$chain"} > 0)[5m:15s])`},
				},
			},
			{
				id: 8, title: "Nodes", as: timeline,
				description: "The state of each endpoint of `chain.rpc`. If none is up, nothing is read; `navlog doctor` " +
					"shows what is wrong with each.",
				alerts: "NavlogNotReady, NoEndpointUp, EndpointDown",
				colors: []coloring{{"/: up$/", "green"}, {"/: untried$/", "text"}},
				queries: []query{
					{"{{endpoint}}: {{state}}", `max by (endpoint, state) (navlog_ingest_endpoint_state{chain=~"$chain"}) == 1`},
				},
			},
			{
				id: 9, title: "Failed and delayed calls", unit: "ops",
				description: "A node that fails or delays more than a few calls costs time: add another endpoint to " +
					"`chain.rpc`, or lower `requestsPerSecond`. Contradicted: two nodes returned different blocks.",
				queries: []query{
					{"{{endpoint}}: {{method}} failed",
						`sum by (endpoint, method) (rate(navlog_ingest_rpc_errors_total{chain=~"$chain"}[$__rate_interval]))`},
					{"{{endpoint}}: rate limited",
						`sum by (endpoint) (rate(navlog_ingest_rpc_limited_total{chain=~"$chain"}[$__rate_interval]))`},
					{"{{endpoint}}: contradicted",
						`sum by (endpoint) (rate(navlog_ingest_disagreements_total{chain=~"$chain"}[$__rate_interval]))`},
				},
			},
			{
				id: 10, title: "Calls to nodes per second", as: stacked, unit: "ops",
				description: "Calls to the provider by method. A method that increases at the head, while no history is " +
					"read, needs an explanation.",
				queries: []query{
					{"{{endpoint}}: {{method}}",
						`sum by (endpoint, method) (rate(navlog_ingest_rpc_calls_total{chain=~"$chain"}[$__rate_interval])) > 0`},
				},
			},
			{
				id: 11, title: "Price units per day", unit: "short",
				description: "At the rate of the last hour, by `chain.prices`; without prices nothing is counted. Compare " +
					"with `navlog ingest estimate`, and with your plan.",
				queries: []query{
					{"{{endpoint}}", `sum by (endpoint) (rate(navlog_ingest_rpc_units_total{chain=~"$chain"}[1h])) * 86400`},
				},
			},
			{
				id: 12, title: "Response times of nodes", unit: "s",
				description: "If the slowest calls take seconds, the log falls behind: put a faster endpoint first in " +
					"`chain.rpc`.",
				queries: []query{
					{"{{endpoint}}: p50",
						`histogram_quantile(0.5, sum by (le, endpoint) (rate(navlog_ingest_rpc_seconds_bucket{chain=~"$chain"}[$__rate_interval])))`},
					{"{{endpoint}}: p99",
						`histogram_quantile(0.99, sum by (le, endpoint) (rate(navlog_ingest_rpc_seconds_bucket{chain=~"$chain"}[$__rate_interval])))`},
				},
			},
			{
				id: 13, title: "Logs and referrals per second", unit: "ops",
				description: "The activity of the vaults. If there is none for long although users see transactions: is the " +
					"vault in `chain.vaults`, and does `navlog verify` confirm the log? `navlog doctor` names vaults that " +
					"differ between `chain.vaults` and the log, and those without a known event.",
				alerts: "VaultsDiffer, VaultNotUnderstood",
				queries: []query{
					{"logs", `sum(rate(navlog_ingest_logs_total{chain=~"$chain"}[$__rate_interval]))`},
					{"referrals: {{kind}}", `sum by (kind) (rate(navlog_ingest_referrals_total{chain=~"$chain"}[$__rate_interval]))`},
					{"vaults that differ", `max(navlog_ingest_vaults_differing{chain=~"$chain"})`},
					{"vaults without a known event", `max(navlog_projections_vaults_without_known_events{chain=~"$chain"})`},
				},
			},
			{
				id: 14, title: "Blocks not final or not notified", decimals: new(0.0),
				description: "Partners are notified of a block once it is final (`chain.confirmations`). If both lines " +
					"rise, the node's final block does not advance, and no webhooks are sent.",
				alerts: "ReferralsStandStill",
				queries: []query{
					{"not final",
						`clamp_min(max(navlog_ingest_head_block{chain=~"$chain"}) - max(navlog_ingest_final_block{chain=~"$chain"}), 0)`},
					{"not notified to partners",
						`clamp_min(max(navlog_ingest_head_block{chain=~"$chain"}) - max(navlog_ingest_referral_block{chain=~"$chain"}), 0)`},
				},
			},
			{
				id: 15, title: "Reorganisations per hour", decimals: new(0.0),
				description: "Their number, and how many blocks the deepest one orphaned at most. One deeper than " +
					"`chain.window` freezes ingest.",
				alerts: "NavlogNotReady",
				queries: []query{
					{"reorganisations", `sum(increase(navlog_ingest_reorgs_total{chain=~"$chain"}[1h]))`},
					{"blocks of the deepest one",
						`histogram_quantile(1, sum by (le) (increase(navlog_ingest_reorg_depth_blocks_bucket{chain=~"$chain"}[1h]))) > 0`},
				},
			},
		},
	},
	{
		id: 16, title: "Log to read models: project",
		panels: []panel{
			{
				id: 17, title: "Records not yet in the read models", decimals: new(0.0),
				description: "For each generation, and for the one that is served. If they rise, check inserts, open " +
					"transactions, and whether ClickHouse has enough disk and processor. stalled is 1 while the served read " +
					"model does not advance: `navlog status` shows the state of project with its reason.",
				alerts: "NavlogNotReady, AnswersStalled, ProjectionBehind",
				queries: []query{
					{"generation {{generation}}", `max by (generation) (navlog_projections_lag_records{chain=~"$chain"})`},
					{"responses of {{instance}}",
						`max by (instance) (clamp_min(scalar(max(navlog_ingest_seq{chain=~"$chain"})) - navlog_query_indexed_seq{chain=~"$chain"}, 0))`},
					{"stalled", `max(navlog_query_chain_state{chain=~"$chain",state="stalled"})`},
				},
			},
			{
				id: 18, title: "Rows inserted per second", as: stacked, unit: "ops",
				description: "By table. At the head as many as the chain gives, in a rebuild tens of thousands. If there " +
					"are none while records are pending, ClickHouse rejects inserts.",
				queries: []query{
					{"{{table}}", `sum by (table) (rate(navlog_projections_rows_total{chain=~"$chain"}[$__rate_interval]))`},
				},
			},
			{
				id: 19, title: "Errors of the read models", decimals: new(0.0),
				description: "Counted since project started. The log of project has details of failed inserts and audits, " +
					"and `navlog verify` lists quarantined logs, which no total includes. Repairs replace unreadable parts " +
					"of ClickHouse; lost or failed repairs need `navlog projection rebuild` or a look at the log of " +
					"ClickHouse.",
				alerts: "ReadModelsNotAudited, LogsQuarantined, InsertsAbsent, BrokenPartsNotRepaired",
				queries: []query{
					{"inserts: {{outcome}}", `sum by (outcome) (navlog_projections_inserts_total{chain=~"$chain",outcome!="ok"})`},
					{"failed audits of generation {{generation}}",
						`sum by (generation) (navlog_projections_audits_total{chain=~"$chain",outcome="failed"})`},
					{"quarantined logs", `sum(navlog_projections_quarantined_logs_total{chain=~"$chain"})`},
					{"repairs of parts: {{outcome}}",
						`sum by (outcome) (navlog_projections_repairs_total{chain=~"$chain",outcome=~"lost|failed"})`},
				},
			},
			{
				id: 20, title: "Open transactions on Kafka", unit: "s", limit: 90,
				description: "No program can read past an open transaction. After 90 s it hangs: `kafka-transactions.sh " +
					"find-hanging`, then `abort`, ends it.",
				alerts: "KafkaTransactionHangs",
				queries: []query{
					{"log", `max(navlog_projections_open_transaction_seconds{chain=~"$chain"})`},
					{"referral topics", `max(navlog_dispatch_open_transaction_seconds{chain=~"$chain"})`},
				},
			},
			{
				id: 41, title: "Logs per day that the mapping names, and others", unit: "short",
				description: "Others are of events that the vault's mapping does not name, such as ERC-20 transfers and " +
					"approvals; read models contain nothing about them. If they increase while the named ones decrease, the " +
					"contract may have been upgraded: compare `navlog log tail` with the mapping.",
				alerts: "VaultEventMissing",
				queries: []query{
					{"{{vault}}: {{event}}",
						`sum by (vault, event) (increase(navlog_ingest_logs_total{chain=~"$chain",event!="Unknown"}[1d]))`},
					{"{{vault}}: others", `sum by (vault) (increase(navlog_ingest_logs_total{chain=~"$chain",event="Unknown"}[1d]))`},
				},
			},
			{
				id: 42, title: "Age of each vault's newest NAV", unit: "s", limit: 2 * 86400,
				description: "In the served read models, by the time of its block. If a vault gets no NAV for two days, ask the " +
					"party that values it; if its NAV is sampled, check whether its contract returns one.",
				alerts: "NavStale",
				queries: []query{
					{"{{vault}}", `time() - max by (vault) (navlog_query_nav_timestamp_seconds{chain=~"$chain"})`},
				},
			},
		},
	},
	{
		id: 21, title: "Read models to responses: serve",
		panels: []panel{
			{
				id: 22, title: "Responses per second, by status", as: stacked, unit: "reqps",
				description: "503 means too many requests, an engine that is down, or a first generation that is still " +
					"being built. 500 is a defect, which the log of serve explains.",
				alerts: "ApiErrors",
				colors: []coloring{{"/^5/", "red"}},
				queries: []query{
					{"{{status}}", `sum by (status) (rate(navlog_query_requests_total{chain=~"$chain"}[$__rate_interval])) > 0`},
				},
			},
			{
				id: 23, title: "Response time: p50", unit: "s",
				description: "Half of the requests of a route take longer. If all routes slow down together, check the " +
					"processors and ClickHouse.",
				queries: []query{
					{"{{route}}",
						`histogram_quantile(0.5, sum by (le, route) (rate(navlog_query_request_seconds_bucket{chain=~"$chain",route=~"/api/v1/.*|/status",route!="/api/v1/stream"}[$__rate_interval]))) > 0`},
				},
			},
			{
				id: 24, title: "Response time: p99", unit: "s",
				description: "One request in a hundred takes longer (10 s stands for anything longer too). If only one " +
					"route is slow, one kind of question is slow: see the log of serve.",
				queries: []query{
					{"{{route}}",
						`histogram_quantile(0.99, sum by (le, route) (rate(navlog_query_request_seconds_bucket{chain=~"$chain",route=~"/api/v1/.*|/status",route!="/api/v1/stream"}[$__rate_interval]))) > 0`},
				},
			},
			{
				id: 25, title: "Rejected requests per second", unit: "reqps",
				description: "\"Too busy\" needs a higher `http.concurrency` or another instance; \"limit\" names the limit " +
					"that was reached (operations.md, The API, seen from outside); a panic is a defect.",
				alerts: "ApiPanics",
				colors: []coloring{{"/^(too busy|panic)$/", "red"}},
				queries: []query{
					{"too busy", `sum(rate(navlog_query_refused_total{chain=~"$chain"}[$__rate_interval]))`},
					{"limit: {{limit}}", `sum by (limit) (rate(navlog_query_rate_limited_total{chain=~"$chain"}[$__rate_interval]))`},
					{"no valid key", `sum(rate(navlog_query_auth_failures_total{chain=~"$chain"}[$__rate_interval]))`},
					{"panic", `sum(rate(navlog_query_panics_total{chain=~"$chain"}[$__rate_interval]))`},
				},
			},
			{
				id: 26, title: "Requests in progress", decimals: new(1.0),
				description: "A mean that includes queued requests. Near `http.concurrency` further requests are queued, " +
					"and then rejected.",
				queries: []query{
					{"{{instance}}",
						`sum by (instance) (rate(navlog_query_request_seconds_sum{chain=~"$chain",route!="/api/v1/stream"}[$__rate_interval]))`},
				},
			},
			{
				id: 27, title: "Open streams", decimals: new(0.0),
				description: "Browsers and clients that follow `/api/v1/stream`. Each holds a connection; a fall to 0 is a " +
					"restart of serve or of the proxy in front of it.",
				queries: []query{
					{"{{instance}}", `sum by (instance) (navlog_query_open_streams{chain=~"$chain"})`},
				},
			},
		},
	},
	{
		id: 28, title: "Referrals to webhooks: dispatch",
		panels: []panel{
			{
				id: 29, title: "Webhooks sent per second, by outcome", as: stacked, unit: "ops",
				description: "If one partner's attempts fail, the cause is that partner (`navlog webhook list`). If most " +
					"attempts fail, check your own connection to the internet.",
				alerts: "WebhooksFailing",
				colors: []coloring{{"accepted", "green"}},
				queries: []query{
					{"{{outcome}}", `sum by (outcome) (rate(navlog_dispatch_attempts_total{chain=~"$chain"}[$__rate_interval])) > 0`},
				},
			},
			{
				id: 30, title: "Age of the oldest waiting delivery", unit: "s",
				description: "Pending for more than a minute is late; parked waits for its partner. If the figures " +
					"themselves get old, PostgreSQL does not respond to dispatch.",
				alerts: "WebhooksNotSent, WebhooksParked, WebhooksNotMeasured, WebhooksWithoutDispatcher",
				queries: []query{
					{"{{state}}", `max by (state) (navlog_dispatch_oldest_seconds{chain=~"$chain"})`},
					{"age of these figures", `time() - max(navlog_dispatch_measured_timestamp_seconds{chain=~"$chain"})`},
				},
			},
			{
				id: 31, title: "Undelivered events", decimals: new(0.0),
				description: "Parked ones are sent when their partner responds. failed and no_endpoint are kept until an " +
					"operator replays them (10,000 means that many or more).",
				alerts: "WebhooksParked, WebhooksGivenUp",
				queries: []query{
					{"{{state}}", `max by (state) (navlog_dispatch_deliveries{chain=~"$chain"})`},
					{"failed in the last hour", `sum(` + lastHour(`navlog_dispatch_failed_total{chain=~"$chain"}`) + `)`},
				},
			},
			{
				id: 32, title: "Partners that do not respond", decimals: new(0.0),
				description: "Open breakers: their events are parked and lose no attempt. List them with `navlog webhook " +
					"list --state parked`, and contact the partner.",
				alerts: "WebhookBreakersOpen",
				queries: []query{
					{"open breakers", `max(navlog_dispatch_open_breakers{chain=~"$chain"})`},
				},
			},
			{
				id: 33, title: "Response times of partners", unit: "s",
				description: "Slow partners do not delay other partners. If all are slow, check your own connection to the " +
					"internet.",
				queries: []query{
					{"p50",
						`histogram_quantile(0.5, sum by (le) (rate(navlog_dispatch_attempt_seconds_bucket{chain=~"$chain"}[$__rate_interval])))`},
					{"p99",
						`histogram_quantile(0.99, sum by (le) (rate(navlog_dispatch_attempt_seconds_bucket{chain=~"$chain"}[$__rate_interval])))`},
				},
			},
			{
				id: 34, title: "Referral records not read", decimals: new(0.0),
				description: "Records waiting in the referral topics. If they rise: is PostgreSQL slow, or a transaction " +
					"open?",
				alerts: "WebhookReferralsNotRead",
				queries: []query{
					{"records", `max(navlog_dispatch_lag_records{chain=~"$chain"})`},
				},
			},
			{
				id: 35, title: "Errors of webhooks per hour", width: 16, decimals: new(1.0),
				description: "Dead records: `navlog webhook dead list` shows why. Lost records: the topic needs infinite " +
					"retention. The log of dispatch has failed results and commands.",
				alerts: "WebhookRecordRefused, WebhookRecordsLost, WebhookResultsNotWritten, WebhookCommandFails",
				queries: []query{
					{"dead records: {{result}}",
						`sum by (result) (` + lastHour(`navlog_dispatch_records_total{chain=~"$chain",result=~"poison|conflict|quarantined"}`) + `)`},
					{"lost records", `sum(` + lastHour(`navlog_dispatch_lost_records_total{chain=~"$chain"}`) + `)`},
					{"results not written at once",
						`sum(` + lastHour(`navlog_dispatch_result_write_retries_total{chain=~"$chain"}`) + `)`},
					{"failed tests and replays", `sum(` + lastHour(`navlog_dispatch_command_failures_total{chain=~"$chain"}`) + `)`},
				},
			},
			{
				id: 40, title: "Time until a certificate for webhooks expires", unit: "s", decimals: new(1.0), negative: true,
				description: "The certificate that expires first, of the authorities and of the client certificates of " +
					"webhook URLs. `navlog doctor` names the partner.",
				alerts: "PartnerCertificateExpires",
				queries: []query{
					{"{{certificate}}",
						`min by (certificate) (navlog_dispatch_certificate_expiry_timestamp_seconds{chain=~"$chain"}) - time()`},
				},
			},
		},
	},
	{
		id: 36, title: "Processor, memory and files of each program",
		panels: []panel{
			{
				id: 37, title: "Processor cores", decimals: new(2.0),
				description: "The cores that Go may use are dashed. A program that uses all of them for long falls behind, " +
					"and needs more cores or another instance.",
				dashed: "/^limit: /",
				queries: []query{
					{"{{program}} {{instance}}", ofPrograms(`rate(process_cpu_seconds_total[$__rate_interval])`)},
					{"limit: {{program}} {{instance}}", ofPrograms(`go_sched_gomaxprocs_threads`)},
				},
			},
			{
				id: 38, title: "Memory", unit: "bytes",
				description: "The benchmarks limit each program to 256 MiB, and serve to 128 MiB. Above the dashed line " +
					"(GOMEMLIMIT, or the limit that project and serve set themselves) garbage collection takes time: give " +
					"the program more memory.",
				dashed: "/^memory limit: /",
				queries: []query{
					{"{{program}} {{instance}}", ofPrograms(`process_resident_memory_bytes`)},
					{"memory limit: {{program}} {{instance}}", ofPrograms(`(go_gc_gomemlimit_bytes < 2^60)`)},
				},
			},
			{
				id: 39, title: "Open files and connections", unit: "percentunit", max: new(1.0),
				description: "Relative to the limit of the process. At 100 % no connection can be accepted or opened, so " +
					"raise the limit (`ulimit -n`).",
				queries: []query{
					{"{{program}} {{instance}}", ofPrograms(`(process_open_fds / process_max_fds)`)},
				},
			},
		},
	},
}

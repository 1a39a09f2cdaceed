package alerts

import "time"

// trials are the series with which each alert is tested.
var trials = map[string][]trial{
	"ChainFrozen": {
		{
			what: "frozen", at: 5 * time.Minute,
			series: []string{
				`navlog_ingest_frozen{chain="1",instance="a"} 1x10`,
				`navlog_ingest_frozen{chain="1",instance="b"} 0x10`,
				`navlog_ingest_frozen{chain="2"} 0x10`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "not frozen", at: 5 * time.Minute,
			series: []string{
				`navlog_ingest_frozen{chain="1"} 0x10`,
			},
		},
	},
	"HeadStandsStill": {
		{
			what: "the same block for a long time", at: 30 * time.Minute,
			series: []string{
				`navlog_ingest_head_block{chain="1"} 100x40`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "a block a minute", at: 30 * time.Minute,
			series: []string{
				`navlog_ingest_head_block{chain="1"} 100+1x40`,
			},
		},
		{
			what: "a new instance sees the next block", at: 30 * time.Minute,
			series: []string{
				`navlog_ingest_head_block{chain="1",instance="a"} 100+1x40`,
				`navlog_ingest_head_block{chain="1",instance="b"} 100x40`,
			},
		},
	},
	"ReferralsStandStill": {
		{
			what: "no block becomes final", at: 90 * time.Minute,
			series: []string{
				`navlog_ingest_indexed_block{chain="1"} 1000+5x100`,
				`navlog_ingest_referral_block{chain="1"} 900x100`,
				`navlog_ingest_indexed_block{chain="2"} 1000+5x100`,
				`navlog_ingest_referral_block{chain="2"} 900+5x100`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "blocks become final every half an hour", at: 90 * time.Minute,
			series: []string{
				`navlog_ingest_indexed_block{chain="1"} 1000+5x100`,
				`navlog_ingest_referral_block{chain="1"} 900x29 1050x29 1200x40`,
			},
		},
		{
			what: "the first block is final after 12 minutes", at: 9 * time.Minute,
			series: []string{
				`navlog_ingest_indexed_block{chain="1"} 1000+5x100`,
				`navlog_ingest_referral_block{chain="1"} 900x12 932x50`,
			},
		},
		{
			what: "Prometheus was down for two hours", at: 130 * time.Minute,
			series: []string{
				`navlog_ingest_indexed_block{chain="1"} _x120 1000+5x100`,
				`navlog_ingest_referral_block{chain="1"} _x120 900x12 932x50`,
			},
		},
		{
			what: "nothing is indexed either, which other alerts report", at: 90 * time.Minute,
			series: []string{
				`navlog_ingest_indexed_block{chain="1"} 1000x100`,
				`navlog_ingest_referral_block{chain="1"} 900x100`,
			},
		},
		{
			what: "beside a standby that knows an old state", at: 90 * time.Minute,
			series: []string{
				`navlog_ingest_indexed_block{chain="1",instance="a"} 1000+5x100`,
				`navlog_ingest_referral_block{chain="1",instance="a"} 900+5x100`,
				`navlog_ingest_referral_block{chain="1",instance="b"} 800x100`,
			},
		},
	},
	"LogBehindHead": {
		{
			what: "falls behind", at: 40 * time.Minute,
			series: []string{
				`navlog_ingest_head_block{chain="1"} 1000+10x60`,
				`navlog_ingest_indexed_block{chain="1"} 900+9x60`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "a first sync catches up", at: 40 * time.Minute,
			series: []string{
				`navlog_ingest_head_block{chain="1"} 100000+5x60`,
				`navlog_ingest_indexed_block{chain="1"} 0+1000x60`,
			},
		},
		{
			what: "a few blocks", at: 40 * time.Minute,
			series: []string{
				`navlog_ingest_head_block{chain="1"} 1000+10x60`,
				`navlog_ingest_indexed_block{chain="1"} 990+10x60`,
			},
		},
	},
	"NoEndpointUp": {
		{
			what: "all are down", at: 10 * time.Minute,
			series: []string{
				`navlog_ingest_endpoint_state{chain="1",endpoint="https://a",state="up"} 0x20`,
				`navlog_ingest_endpoint_state{chain="1",endpoint="https://b",state="up"} 0x20`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "one is up", at: 10 * time.Minute,
			series: []string{
				`navlog_ingest_endpoint_state{chain="1",endpoint="https://a",state="up"} 0x20`,
				`navlog_ingest_endpoint_state{chain="1",endpoint="https://b",state="up"} 1x20`,
			},
		},
	},
	"EndpointDown": {
		{
			what: "one of two", at: 20 * time.Minute,
			series: []string{
				`navlog_ingest_endpoint_state{chain="1",endpoint="https://a",state="down"} 1x30`,
				`navlog_ingest_endpoint_state{chain="1",endpoint="https://b",state="down"} 0x30`,
			},
			fires: []string{"chain=1 endpoint=https://a"},
		},
		{
			what: "another chain", at: 20 * time.Minute,
			series: []string{
				`navlog_ingest_endpoint_state{chain="1",endpoint="https://a",state="wrong chain"} 1x30`,
			},
			fires: []string{"chain=1 endpoint=https://a"},
		},
		{
			what: "recovers", at: 20 * time.Minute,
			series: []string{
				`navlog_ingest_endpoint_state{chain="1",endpoint="https://a",state="down"} 1x8 0 1x20`,
			},
		},
		{
			what: "rate limited", at: 20 * time.Minute,
			series: []string{
				`navlog_ingest_endpoint_state{chain="1",endpoint="https://a",state="rate-limited"} 1x30`,
			},
		},
	},
	"NavStale": { // the start is time 0
		{
			what: "one vault of two, whose NAV is three days old when serve starts", at: 80 * time.Hour, step: 5 * time.Minute,
			series: []string{
				`navlog_query_nav_timestamp_seconds{chain="1",instance="a",vault="0xa"} _x4320 3600x500`,
				`navlog_query_nav_timestamp_seconds{chain="1",instance="a",vault="0xb"} _x4320 259000x500`,
			},
			fires: []string{"chain=1 vault=0xa"},
		},
		{
			what: "one a day", at: 80 * time.Hour, step: 5 * time.Minute,
			series: []string{
				`navlog_query_nav_timestamp_seconds{chain="1",vault="0xa"} 0x1439 86400x1439 172800x1439 259200x1439`,
			},
		},
		{
			what: "one of two instances lacks the newest NAV", at: 80 * time.Hour, step: 5 * time.Minute,
			series: []string{
				`navlog_query_nav_timestamp_seconds{chain="1",instance="a",vault="0xa"} 0x4820`,
				`navlog_query_nav_timestamp_seconds{chain="1",instance="b",vault="0xa"} 259200x4820`,
			},
		},
		{
			what: "navlog was off for three days, and is catching up", at: 72*time.Hour + 15*time.Minute, step: 5 * time.Minute,
			series: []string{
				`navlog_query_nav_timestamp_seconds{chain="1",vault="0xa"} 0x60 _x4260 0x20 262000x100`,
			},
		},
	},
	"ProjectionBehind": {
		{
			what: "grows", at: 30 * time.Minute,
			series: []string{
				`navlog_projections_lag_records{chain="1",generation="1"} 20000+10x60`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "shrinks", at: 30 * time.Minute,
			series: []string{
				`navlog_projections_lag_records{chain="1",generation="1"} 2000000-20000x60`,
			},
		},
		{
			what: "only the generation that is being built", at: 30 * time.Minute,
			series: []string{
				`navlog_projections_lag_records{chain="1",generation="1"} 3x60`,
				`navlog_projections_lag_records{chain="1",generation="2"} 200000+10x60`,
			},
		},
	},
	"ApiErrors": {
		{
			what: "all from the start", at: 20 * time.Minute,
			series: []string{
				`navlog_query_requests_total{chain="1",status="503"} 0+10x30`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "one in ten", at: 20 * time.Minute,
			series: []string{
				`navlog_query_requests_total{chain="1",status="200"} 0+90x30`,
				`navlog_query_requests_total{chain="1",status="503"} 0+10x30`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "one in a hundred", at: 20 * time.Minute,
			series: []string{
				`navlog_query_requests_total{chain="1",status="200"} 0+99x30`,
				`navlog_query_requests_total{chain="1",status="500"} 0+1x30`,
			},
		},
		{
			what: "clients' mistakes", at: 20 * time.Minute,
			series: []string{
				`navlog_query_requests_total{chain="1",status="200"} 0+1x30`,
				`navlog_query_requests_total{chain="1",status="404"} 0+90x30`,
			},
		},
	},
	"ApiPanics": {
		{
			what: "counted before the first scrape", at: 20 * time.Minute,
			series: []string{
				`navlog_query_panics_total{chain="1"} _x16 1x20`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "one", at: 10 * time.Minute,
			series: []string{
				`navlog_query_panics_total{chain="1"} 0x5 1x20`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "long ago", at: 50 * time.Minute,
			series: []string{
				`navlog_query_panics_total{chain="1"} 0x5 1x60`,
			},
		},
	},
	"WebhooksGivenUp": {
		{
			what: "counted before the first scrape", at: 20 * time.Minute,
			series: []string{
				`navlog_dispatch_failed_total{chain="1",instance="a"} _x16 2x20`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "the first one", at: 40 * time.Minute,
			series: []string{
				`navlog_dispatch_failed_total{chain="1",instance="a"} 0x30 1x60`,
				`navlog_dispatch_failed_total{chain="1",instance="b"} 0x90`,
				`navlog_dispatch_failed_total{chain="2",instance="c"} 0x90`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "one more than the gauge counts", at: 40 * time.Minute,
			series: []string{
				`navlog_dispatch_deliveries{chain="1",state="failed"} 10000x90`,
				`navlog_dispatch_failed_total{chain="1"} 12000x30 12001x60`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "fewer than were replayed", at: 40 * time.Minute,
			series: []string{
				`navlog_dispatch_deliveries{chain="1",state="failed"} 5x20 0x10 3x60`,
				`navlog_dispatch_failed_total{chain="1"} 5x30 8x60`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "failures before the restart", at: 100 * time.Minute,
			series: []string{
				`navlog_dispatch_deliveries{chain="1",state="failed"} 4x30 5x90`,
				`navlog_dispatch_failed_total{chain="1"} 4x30 5x90`,
			},
		},
		{
			what: "replayed", at: 100 * time.Minute,
			series: []string{
				`navlog_dispatch_deliveries{chain="1",state="failed"} 5x90 0x60`,
				`navlog_dispatch_failed_total{chain="1"} 5x150`,
			},
		},
		{
			what: "a dispatcher starts again", at: 40 * time.Minute,
			series: []string{
				`navlog_dispatch_failed_total{chain="1"} 5x30 0x60`,
			},
		},
	},
	"NavlogNotReady": {
		{
			what: "the active instance is not ready, its standby is", at: 5 * time.Minute,
			series: []string{
				`navlog_ready{chain="1",program="ingest",instance="a"} 0x20`,
				`navlog_standby{chain="1",program="ingest",instance="a"} 0x20`,
				`navlog_ready{chain="1",program="ingest",instance="b"} 1x20`,
				`navlog_standby{chain="1",program="ingest",instance="b"} 1x20`,
			},
			fires: []string{"chain=1 program=ingest"},
		},
		{
			what: "one of two instances of serve", at: 5 * time.Minute,
			series: []string{
				`navlog_ready{chain="1",program="serve",instance="a"} 0x20`,
				`navlog_standby{chain="1",program="serve",instance="a"} 0x20`,
				`navlog_ready{chain="1",program="serve",instance="b"} 1x20`,
				`navlog_standby{chain="1",program="serve",instance="b"} 0x20`,
			},
		},
	},
	"NavlogStandbyNotReady": {
		{
			what: "a standby", at: 15 * time.Minute,
			series: []string{
				`navlog_ready{chain="1",program="ingest",instance="b"} 0x20`,
				`navlog_standby{chain="1",program="ingest",instance="b"} 1x20`,
			},
			fires: []string{"chain=1 instance=b program=ingest"},
		},
		{
			what: "the active instance", at: 15 * time.Minute,
			series: []string{
				`navlog_ready{chain="1",program="ingest",instance="a"} 0x20`,
				`navlog_standby{chain="1",program="ingest",instance="a"} 0x20`,
			},
		},
	},
	"NavlogNotRunning": {
		{
			what: "one program of one chain", at: 5 * time.Minute,
			series: []string{
				`navlog_ready{chain="1",program="ingest"} 1x20`,
				`navlog_ready{chain="1",program="project"} 1x20`,
				`navlog_ready{chain="1",program="serve"} 1x20`,
				`navlog_ready{chain="1",program="dispatch"} 1x20`,
				`navlog_ready{chain="2",program="ingest"} 1x20`,
				`navlog_ready{chain="2",program="project"} 1x20`,
				`navlog_ready{chain="2",program="dispatch"} 1x20`,
				`navlog_build_info{chain="1"} 1x20`,
				`navlog_build_info{chain="2"} 1x20`,
			},
			fires: []string{"chain=2 program=serve"},
		},
		{
			what: "all run", at: 5 * time.Minute,
			series: []string{
				`navlog_ready{chain="1",program="ingest"} 1x20`,
				`navlog_ready{chain="1",program="project"} 1x20`,
				`navlog_ready{chain="1",program="serve"} 1x20`,
				`navlog_ready{chain="1",program="dispatch"} 1x20`,
				`navlog_ready{chain="2",program="ingest"} 1x20`,
				`navlog_ready{chain="2",program="project"} 1x20`,
				`navlog_ready{chain="2",program="serve"} 1x20`,
				`navlog_ready{chain="2",program="dispatch"} 1x20`,
				`navlog_build_info{chain="1"} 1x20`,
				`navlog_build_info{chain="2"} 1x20`,
			},
		},
		{
			what: "a program of all chains", at: 5 * time.Minute,
			series: []string{
				`navlog_ready{chain="1",program="ingest"} 1x20`,
				`navlog_ready{chain="1",program="project"} 1x20`,
				`navlog_ready{chain="1",program="serve"} 1x20`,
				`navlog_ready{chain="2",program="ingest"} 1x20`,
				`navlog_ready{chain="2",program="project"} 1x20`,
				`navlog_ready{chain="2",program="serve"} 1x20`,
				`navlog_build_info{chain="1"} 1x20`,
				`navlog_build_info{chain="2"} 1x20`,
			},
			fires: []string{"chain=1 program=dispatch", "chain=2 program=dispatch", "program=dispatch"},
		},
	},
	"AnswersStalled": {
		{
			what: "stalled", at: 5 * time.Minute,
			series: []string{
				`navlog_query_chain_state{chain="1",state="stalled"} 1x10`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "following", at: 5 * time.Minute,
			series: []string{
				`navlog_query_chain_state{chain="1",state="stalled"} 0x10`,
				`navlog_query_chain_state{chain="1",state="following"} 1x10`,
			},
		},
	},
	"AnswersBehind": {
		{
			what: "late", at: 10 * time.Minute,
			series: []string{
				`navlog_query_lag_seconds{chain="1"} 900x20`,
				`navlog_query_lag_blocks{chain="1"} 70x20`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "slow chain", at: 10 * time.Minute,
			series: []string{
				`navlog_query_lag_seconds{chain="1"} 900x20`,
				`navlog_query_lag_blocks{chain="1"} 1x20`,
			},
		},
	},
	"LogDisproven": {
		{
			what: "fires", at: 2 * time.Minute,
			series: []string{
				`navlog_ingest_disproven{chain="1"} 1x5`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "silent", at: 2 * time.Minute,
			series: []string{
				`navlog_ingest_disproven{chain="1"} 0x5`,
			},
		},
	},
	"ReceiptsNotProven": {
		{
			what: "for two hours", at: 2 * time.Hour, step: time.Minute,
			series: []string{
				`navlog_ingest_receipts_failing{chain="1",instance="a"} 1x130`,
				`navlog_ingest_receipts_failing{chain="1",instance="b"} 0x130`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "until the endpoint responds again", at: 2 * time.Hour, step: time.Minute,
			series: []string{
				`navlog_ingest_receipts_failing{chain="1"} 0x70 1x30 0x30`,
			},
		},
	},
	"VaultsDiffer": {
		{
			what: "for two hours", at: 2 * time.Hour, step: time.Minute,
			series: []string{
				`navlog_ingest_vaults_differing{chain="1"} 1x130`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "while a vault joins", at: 2 * time.Hour, step: time.Minute,
			series: []string{
				`navlog_ingest_vaults_differing{chain="1"} 1x20 0x110`,
			},
		},
	},
	"VaultNotUnderstood": {
		{
			what: "for two hours", at: 2 * time.Hour, step: time.Minute,
			series: []string{
				`navlog_projections_vaults_without_known_events{chain="1"} 1x130`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "none", at: 2 * time.Hour, step: time.Minute,
			series: []string{
				`navlog_projections_vaults_without_known_events{chain="1"} 0x130`,
			},
		},
	},
	"VaultEventMissing": {
		{
			what: "an upgrade replaces one of two events", at: 222 * time.Hour, step: time.Hour, every: time.Hour,
			series: []string{
				`navlog_ingest_logs_total{chain="1",event="Deposit",vault="0xa"} 0+1.2x192 231x50`,
				`navlog_ingest_logs_total{chain="1",event="Withdraw",vault="0xa"} 0+1.2x242`,
				`navlog_ingest_logs_total{chain="1",event="Unknown",vault="0xa"} 0+6x192 1152+7.2x50`,
			},
			fires: []string{"chain=1 event=Deposit vault=0xa"},
		},
		{
			what: "the first unknown logs, after a restart", at: 222 * time.Hour, step: time.Hour, every: time.Hour,
			series: []string{
				`navlog_ingest_logs_total{chain="1",event="Deposit",vault="0xa"} 0+1.2x192`,
				`navlog_ingest_logs_total{chain="1",event="Unknown",vault="0xa"} _x192 0+1.2x50`,
			},
			fires: []string{"chain=1 event=Deposit vault=0xa"},
		},
		{
			what: "deposits are paused", at: 222 * time.Hour, step: time.Hour, every: time.Hour,
			series: []string{
				`navlog_ingest_logs_total{chain="1",event="Deposit",vault="0xa"} 0+1.2x192 231x50`,
				`navlog_ingest_logs_total{chain="1",event="Unknown",vault="0xa"} 0+6x242`,
			},
		},
		{
			what: "more transfers of shares", at: 222 * time.Hour, step: time.Hour, every: time.Hour,
			series: []string{
				`navlog_ingest_logs_total{chain="1",event="Deposit",vault="0xa"} 0+1.2x242`,
				`navlog_ingest_logs_total{chain="1",event="Unknown",vault="0xa"} 0+6x192 1152+120x50`,
			},
		},
		{
			what: "a rare event", at: 222 * time.Hour, step: time.Hour, every: time.Hour,
			series: []string{
				`navlog_ingest_logs_total{chain="1",event="Deposit",vault="0xa"} 0+0.3x192 58x50`,
				`navlog_ingest_logs_total{chain="1",event="Unknown",vault="0xa"} 0+6x192 1152+12x50`,
			},
		},
		{
			what: "a backfill has ended", at: 222 * time.Hour, step: time.Hour, every: time.Hour,
			series: []string{
				`navlog_ingest_logs_total{chain="1",event="Deposit",vault="0xa"} 0+600x192 115200x50`,
				`navlog_ingest_logs_total{chain="1",event="Unknown",vault="0xa"} 0+1200x192 230400+6x50`,
			},
		},
		{
			what: "another vault has unknown logs", at: 222 * time.Hour, step: time.Hour, every: time.Hour,
			series: []string{
				`navlog_ingest_logs_total{chain="1",event="Deposit",vault="0xa"} 0+1.2x192 231x50`,
				`navlog_ingest_logs_total{chain="1",event="Unknown",vault="0xb"} 0+6x192 1152+12x50`,
				`navlog_ingest_logs_total{chain="2",event="Unknown",vault="0xa"} 0+6x192 1152+12x50`,
			},
		},
	},
	"ReadModelsNotAudited": {
		{
			what: "fail each hour", at: 3 * time.Hour, step: time.Minute,
			series: []string{
				`navlog_projections_audits_total{chain="1",generation="1",outcome="failed"} 0x60 1x60 2x60 3x60`,
			},
			fires: []string{"chain=1 generation=1 outcome=failed"},
		},
		{
			what: "one failed", at: 3 * time.Hour, step: time.Minute,
			series: []string{
				`navlog_projections_audits_total{chain="1",generation="1",outcome="failed"} 0x170 1x60`,
			},
		},
	},
	"BrokenPartsNotRepaired": {
		{
			what: "counted before the first scrape", at: 20 * time.Minute,
			series: []string{
				`navlog_projections_repairs_total{chain="1",outcome="failed"} _x16 1x20`,
			},
			fires: []string{"chain=1 outcome=failed"},
		},
		{
			what: "lost", at: 10 * time.Minute,
			series: []string{
				`navlog_projections_repairs_total{chain="1",outcome="lost"} 0x5 1x20`,
			},
			fires: []string{"chain=1 outcome=lost"},
		},
		{
			what: "repaired", at: 10 * time.Minute,
			series: []string{
				`navlog_projections_repairs_total{chain="1",outcome="done"} 0x5 1x20`,
			},
		},
	},
	"LogsQuarantined": {
		{
			what: "counted hours ago", at: 2 * time.Hour, step: time.Minute,
			series: []string{
				`navlog_projections_quarantined_logs_total{chain="1",generation="2"} _x16 3x120`,
			},
		},
		{
			what: "counted before the first scrape", at: 20 * time.Minute,
			series: []string{
				`navlog_projections_quarantined_logs_total{chain="1",generation="2"} _x16 3x20`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "one", at: 10 * time.Minute,
			series: []string{
				`navlog_projections_quarantined_logs_total{chain="1",generation="1"} 0x5 1x20`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "none", at: 10 * time.Minute,
			series: []string{
				`navlog_projections_quarantined_logs_total{chain="1",generation="1"} 0x20`,
			},
		},
	},
	"InsertsAbsent": {
		{
			what: "counted before the first scrape", at: 20 * time.Minute,
			series: []string{
				`navlog_projections_inserts_total{chain="1",table="lists",outcome="absent"} _x16 1x20`,
			},
			fires: []string{"chain=1 table=lists"},
		},
		{
			what: "absent", at: 10 * time.Minute,
			series: []string{
				`navlog_projections_inserts_total{chain="1",table="events",outcome="absent"} 0x5 1x20`,
			},
			fires: []string{"chain=1 table=events"},
		},
		{
			what: "failed and retried", at: 10 * time.Minute,
			series: []string{
				`navlog_projections_inserts_total{chain="1",table="events",outcome="failed"} 0x5 1x20`,
			},
		},
	},
	"KafkaTransactionHangs": {
		{
			what: "reported by dispatch", at: 5 * time.Minute,
			series: []string{
				`navlog_dispatch_open_transaction_seconds{chain="1"} 0+60x10`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "short", at: 5 * time.Minute,
			series: []string{
				`navlog_dispatch_open_transaction_seconds{chain="1"} 3x10`,
				`navlog_projections_open_transaction_seconds{chain="1"} 0x10`,
			},
		},
	},
	"WebhooksNotSent": {
		{
			what: "pending", at: 5 * time.Minute,
			series: []string{
				`navlog_dispatch_oldest_seconds{chain="1",state="pending"} 0+60x10`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "parked", at: 5 * time.Minute,
			series: []string{
				`navlog_dispatch_oldest_seconds{chain="1",state="parked"} 0+60x10`,
			},
		},
	},
	"WebhooksNotMeasured": {
		{
			what: "old", at: 5 * time.Minute,
			series: []string{
				`navlog_dispatch_measured_timestamp_seconds{chain="1"} 0x10`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "fresh", at: 5 * time.Minute,
			series: []string{
				`navlog_dispatch_measured_timestamp_seconds{chain="1"} 0+60x10`,
			},
		},
	},
	"WebhooksWithoutDispatcher": {
		{
			what: "one chain without a dispatcher", at: 5 * time.Minute,
			series: []string{
				`navlog_build_info{chain="1"} 1x10`,
				`navlog_build_info{chain="2"} 1x10`,
				`navlog_dispatch_oldest_seconds{chain="1",state="pending"} 0x10`,
			},
			fires: []string{"chain=2"},
		},
		{
			what: "each chain has a dispatcher", at: 5 * time.Minute,
			series: []string{
				`navlog_build_info{chain="1"} 1x10`,
				`navlog_dispatch_oldest_seconds{chain="1",state="pending"} 0x10`,
			},
		},
	},
	"WebhooksParked": {
		{
			what: "for hours", at: 5 * time.Minute,
			series: []string{
				`navlog_dispatch_oldest_seconds{chain="1",state="parked"} 4000x10`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "for minutes", at: 5 * time.Minute,
			series: []string{
				`navlog_dispatch_oldest_seconds{chain="1",state="parked"} 600x10`,
			},
		},
	},
	"WebhookReferralsNotRead": {
		{
			what: "many", at: 10 * time.Minute,
			series: []string{
				`navlog_dispatch_lag_records{chain="1"} 20000x20`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "few", at: 10 * time.Minute,
			series: []string{
				`navlog_dispatch_lag_records{chain="1"} 20x20`,
			},
		},
	},
	"WebhookRecordRefused": {
		{
			what: "counted before the first scrape", at: 20 * time.Minute,
			series: []string{
				`navlog_dispatch_records_total{chain="1",result="conflict"} _x16 1x20`,
			},
			fires: []string{"chain=1 result=conflict"},
		},
		{
			what: "poison", at: 8 * time.Minute,
			series: []string{
				`navlog_dispatch_records_total{chain="1",result="poison"} 0x5 1x10`,
			},
			fires: []string{"chain=1 result=poison"},
		},
		{
			what: "unclaimed", at: 8 * time.Minute,
			series: []string{
				`navlog_dispatch_records_total{chain="1",result="unclaimed"} 0x5 1x10`,
			},
		},
	},
	"WebhookRecordsLost": {
		{
			what: "counted hours ago", at: 2 * time.Hour, step: time.Minute,
			series: []string{
				`navlog_dispatch_lost_records_total{chain="1"} _x16 900x120`,
			},
		},
		{
			what: "counted before the first scrape", at: 20 * time.Minute,
			series: []string{
				`navlog_dispatch_lost_records_total{chain="1"} _x16 900x20`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "some", at: 8 * time.Minute,
			series: []string{
				`navlog_dispatch_lost_records_total{chain="1"} 0x5 7x10`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "none", at: 8 * time.Minute,
			series: []string{
				`navlog_dispatch_lost_records_total{chain="1"} 0x20`,
			},
		},
	},
	"WebhookBreakersOpen": {
		{
			what: "for a long time", at: 20 * time.Minute,
			series: []string{
				`navlog_dispatch_open_breakers{chain="1"} 1x30`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "closed again", at: 20 * time.Minute,
			series: []string{
				`navlog_dispatch_open_breakers{chain="1"} 1x10 0x20`,
			},
		},
	},
	"PartnerCertificateExpires": {
		{
			what: "in ten days", at: 2 * time.Hour, step: time.Minute,
			series: []string{
				`navlog_dispatch_certificate_expiry_timestamp_seconds{chain="1",certificate="client",instance="a"} 864000x200`,
				`navlog_dispatch_certificate_expiry_timestamp_seconds{chain="1",certificate="client",instance="b"} 864000x200`,
				`navlog_dispatch_certificate_expiry_timestamp_seconds{chain="1",certificate="authority",instance="a"} 86400000x200`,
			},
			fires: []string{"certificate=client chain=1"},
		},
		{
			what: "renewed", at: 2 * time.Hour, step: time.Minute,
			series: []string{
				`navlog_dispatch_certificate_expiry_timestamp_seconds{chain="1",certificate="client",instance="a"} 864000x30 86400000x200`,
			},
		},
	},
	"WebhookResultsNotWritten": {
		{
			what: "each minute", at: 10 * time.Minute,
			series: []string{
				`navlog_dispatch_result_write_retries_total{chain="1"} 0+60x20`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "one", at: 10 * time.Minute,
			series: []string{
				`navlog_dispatch_result_write_retries_total{chain="1"} 0x5 1x20`,
			},
		},
	},
	"WebhookCommandFails": {
		{
			what: "repeatedly", at: 12 * time.Minute,
			series: []string{
				`navlog_dispatch_command_failures_total{chain="1"} 0+1x20`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "once", at: 12 * time.Minute,
			series: []string{
				`navlog_dispatch_command_failures_total{chain="1"} 0x5 1x20`,
			},
		},
	},
	"WebhooksFailing": {
		{
			what: "most", at: 30 * time.Minute,
			series: []string{
				`navlog_dispatch_attempts_total{chain="1",outcome="accepted"} 0+1x40`,
				`navlog_dispatch_attempts_total{chain="1",outcome="timeout"} 0+9x40`,
			},
			fires: []string{"chain=1"},
		},
		{
			what: "few", at: 30 * time.Minute,
			series: []string{
				`navlog_dispatch_attempts_total{chain="1",outcome="accepted"} 0+9x40`,
				`navlog_dispatch_attempts_total{chain="1",outcome="timeout"} 0+1x40`,
			},
		},
	},
	"DiskNearlyFull": {
		{
			what: "3 % are free", at: 10 * time.Minute,
			series: []string{
				`node_filesystem_avail_bytes{fstype="ext4",instance="node:9100",mountpoint="/"} 3x20`,
				`node_filesystem_size_bytes{fstype="ext4",instance="node:9100",mountpoint="/"} 100x20`,
			},
			fires: []string{"fstype=ext4 instance=node:9100 mountpoint=/"},
		},
		{
			what: "a file system in memory", at: 10 * time.Minute,
			series: []string{
				`node_filesystem_avail_bytes{fstype="tmpfs",mountpoint="/run"} 0x20`,
				`node_filesystem_size_bytes{fstype="tmpfs",mountpoint="/run"} 100x20`,
			},
		},
	},
	"DiskFilling": {
		{
			what: "a tenth in five hours", at: 8 * time.Hour, step: 5 * time.Minute,
			series: []string{
				`node_filesystem_avail_bytes{fstype="ext4",instance="node:9100",mountpoint="/"} 39000-30x500`,
				`node_filesystem_size_bytes{fstype="ext4",instance="node:9100",mountpoint="/"} 100000x500`,
			},
			fires: []string{"fstype=ext4 instance=node:9100 mountpoint=/"},
		},
		{
			what: "much space is left", at: 8 * time.Hour, step: 5 * time.Minute,
			series: []string{
				`node_filesystem_avail_bytes{fstype="ext4",instance="node:9100",mountpoint="/"} 80000-30x500`,
				`node_filesystem_size_bytes{fstype="ext4",instance="node:9100",mountpoint="/"} 100000x500`,
			},
		},
		{
			what: "slowly", at: 8 * time.Hour, step: 5 * time.Minute,
			series: []string{
				`node_filesystem_avail_bytes{fstype="ext4",instance="node:9100",mountpoint="/"} 39000-1x500`,
				`node_filesystem_size_bytes{fstype="ext4",instance="node:9100",mountpoint="/"} 100000x500`,
			},
		},
	},
	"CertificateExpires": {
		{
			what: "in ten days", at: 2 * time.Hour, step: time.Minute,
			series: []string{`probe_ssl_earliest_cert_expiry{instance="https://navlog.example"} 864000x200`},
			fires:  []string{"instance=https://navlog.example"},
		},
		{
			what: "in a month", at: 2 * time.Hour, step: time.Minute,
			series: []string{`probe_ssl_earliest_cert_expiry{instance="https://navlog.example"} 2592000x200`},
		},
	},
	"CertificateNotSeen": {
		{
			what: "no response", at: 20 * time.Minute,
			series: []string{`probe_success{instance="https://navlog.example",job="certificates"} 0x30`},
			fires:  []string{"instance=https://navlog.example job=certificates"},
		},
		{
			what: "a restart of the proxy", at: 20 * time.Minute,
			series: []string{`probe_success{instance="https://navlog.example",job="certificates"} 1x10 0x2 1x20`},
		},
	},
}

// Package e2e tests the whole of navlog from outside: the real binary with real engines on one end, the HTTP API and a
// partner's webhooks on the other. It knows nothing about what is in between.
//
//	       deploy/devchain makes traffic
//	                    │
//	                    ▼
//	              ┌── anvil ──┐
//	eth_getLogs,  │           │  navlog-dev up (a child process)
//	headers,      │           │
//	eth_call      ▼           ▼
//	         history       HTTP API, webhooks
//	            │               │
//	     fold, render           │
//	            ▼               ▼
//	        expected ── diff ── got
//
// The left side is deploy/testkit/oracle, which shares no code with the programs. The receiver of the webhooks checks
// signatures by hand for the same reason.
package e2e

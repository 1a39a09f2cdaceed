// Package e2e tests the whole of navlog from outside: the real binary with real engines on one end, the HTTP API and a
// partner's webhooks on the other, and in between nothing that this package knows about.
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
// The oracle is the left side. It shares no code with the programs: it reads the chain's own logs through go-ethereum,
// decodes them with the contracts' generated bindings, folds them with plain maps by rules of its own, and renders
// the JSON that a partner should see. Where the programs keep signed sums, states and retractions, the oracle starts from
// nothing each time; an answer about the past is a fold that stops early.
//
// Nothing in an answer is let off: a field that is missing, wrong or unexpected is a difference.
package e2e

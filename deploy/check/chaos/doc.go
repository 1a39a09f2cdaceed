// Package chaos tries to make ingest lose a log or double one, and says whether it did.
//
// A seed decides what happens (see PlanOf); what is left to chance is which of two things that happen at the same time
// comes first:
//
//	script ──────▶ anvil: traffic, empty blocks, reorganisations, branches that come back
//	                 │
//	           fault proxies, one per endpoint, each with faults, rates and draws of its own
//	                 │
//	              ingest, a process of its own ──▶ Kafka (embedded or Apache)
//	                 │                                │
//	deaths ──▶ SIGKILL at a step of a transaction     │
//	           or at some moment; SIGSTOP and a rival │
//	                                                  ▼
//	anvil, by block hash, past the proxies ──────▶ oracle
//
// Whoever dies is started again. When the script is over the proxies become honest and ingest must reach the head by
// itself; then the oracle compares. It shares no code with ingest: it folds the raw records of the topics, and reads the
// chain from block receipts and logs by block hash, every branch before it is left.
package chaos

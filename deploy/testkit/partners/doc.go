// Package partners makes the partners of tests, checks and benchmarks, and what dispatch sends to them.
//
// Make creates a partner in the same transaction as `navlog partner create`, so that it is never in a state that cannot
// occur in a production registry. Deposit and Withdrawal make referral records as ingest writes them. A World is an
// environment for dispatch without a chain: its own Kafka and PostgreSQL, partners, and `navlog dispatch` as a process.
package partners

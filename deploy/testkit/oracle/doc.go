// Package oracle computes what the HTTP API and the webhooks must say about a chain, down to the last field.
//
//	node, or the logs of a Chain ──▶ History ──▶ fold ──▶ render ──▶ Questions, Events ──▶ diff ◀── what came
//
// It shares no code with the programs, except the ABI and the event types of the reference contracts: it reads the
// chain's own logs through go-ethereum, decodes them with its decoder, folds them with plain maps by its own rules, and
// renders the JSON that a partner should see. While the programs keep signed sums, states and retractions, the oracle
// starts from scratch each time; an answer about the past is a fold that stops early.
//
// Its vaults have the reference contracts or, in a Chain, the presets erc4626 and erc7540 with NAV samples.
//
// It is the only oracle of what the API says about the state at a block: tests of query render with it, too, from their
// own logs (Chain.At, State.Answer, Chain.Questions). What the API says about the log itself (events with their seqs,
// reorganisations, the stream), which a chain does not know, is judged by query/oracle.
//
// Every part of an answer is compared: a field that is missing, wrong or unexpected is a difference.
package oracle

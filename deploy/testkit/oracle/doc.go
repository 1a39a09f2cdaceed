// Package oracle knows what the HTTP API and the webhooks have to say of a chain, down to the last field.
//
//	node, or the logs of a Chain ──▶ History ──▶ fold ──▶ render ──▶ Questions, Events ──▶ diff ◀── what came
//
// It shares no code with the programs: it reads the chain's own logs through go-ethereum, decodes them with the contracts'
// generated bindings, folds them with plain maps by rules of its own, and renders the JSON that a partner should see. Where
// the programs keep signed sums, states and retractions, the oracle starts from nothing each time; an answer about the past
// is a fold that stops early.
//
// Nothing in an answer is let off: a field that is missing, wrong or unexpected is a difference.
package oracle

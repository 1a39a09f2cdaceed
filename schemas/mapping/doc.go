// Package mapping turns the logs of a vault into effects, as a mapping specifies. It is the only decoder of logs.
//
// A mapping is a YAML file (docs/mappings.md is its reference). Parse checks it and reports every mistake with line and
// column; Compile turns it into a Vault, whose Map is a pure function of the logs of one transaction:
//
//	YAML ──Parse──▶ Mapping ──Compile──▶ Vault ──Map(logs of a transaction)──▶ effects, or quarantine
//
// The effects are a closed set (Kind), so a new protocol needs a mapping, but no new table and no new query. The
// reference contracts use the preset "reference", written in the same language and compiled by the same code.
//
// A log is quarantined if it announces an event of the mapping but cannot be counted: its layout is not that of the
// event, an amount is 2^191 or more (MaxAmount), or a number does not fit its field. Then it has no effect. The emitter
// of a log can put anything into it, so nothing here trusts a length, and nothing panics.
package mapping

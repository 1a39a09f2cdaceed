// Package contracts is the chain side of navlog's interface: the events that a vault emits, and the reference contracts
// that emit them.
//
// An Event is one fact about a vault. Decode turns the topics and data of a log into one, and Encode does the inverse.
// Both are pure functions of their arguments, so any reader of the log can decode again at any time without a node.
// Decode accepts exactly the bytes that Solidity's ABI encoder writes: for every log that it accepts, Encode gives the
// same bytes back, and a log that carries a known event signature but is not laid out like it is an error, never a guess.
//
// A withdrawal request, as its events tell it:
//
//	(none) --WithdrawalRequested--> pending --WithdrawalFunded--> claimable --WithdrawalClaimed--> claimed
//	                                   |--WithdrawalCancelled--> cancelled
//	                                   '--WithdrawalExpired--> expired
//
// EndpointName and Discreet are the one rule by which all programs keep the keys in nodes' URLs to themselves.
//
// The sources are in solidity/, compiled by the pinned compiler into abi/ and bound to Go in package reference.
package contracts

//go:generate ./generate.sh

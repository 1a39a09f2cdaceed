// Package contracts is the chain side of navlog's interface: the events that a vault emits, and the reference contracts
// that emit them.
//
// An Event is one fact about a vault, and Encode writes the topics and data of its log, so that tests and measurements can
// make a chain by hand. Package schemas/mapping reads logs.
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

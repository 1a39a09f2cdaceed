// Package contracts is the chain side of navlog's interface: the events that a vault emits, and the reference contracts
// that emit them.
//
// An Event is one fact about a vault, and Encode returns the topics and data of its log, so that tests and benchmarks
// can build a chain by hand. Package schemas/mapping reads logs.
//
// The states of a withdrawal request, by its events:
//
//	(none) --WithdrawalRequested--> pending --WithdrawalFunded--> claimable --WithdrawalClaimed--> claimed
//	                                   |--WithdrawalCancelled--> cancelled
//	                                   '--WithdrawalExpired--> expired
//
// EndpointName and Discreet are the single rule by which all programs hide the keys in nodes' URLs.
//
// The sources are in solidity/, compiled by the pinned compiler into abi/. VaultABI has the views of a reference vault.
// deploy/devchain, which only tests and the development chain use, calls the contracts.
package contracts

//go:generate ./generate.sh

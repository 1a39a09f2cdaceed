package explain

import (
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/state"
)

// Each query selects the logs that make a number, as rows of seq, sign, block, log_index, sub, event, vault, user, ts,
// tx and change. A row that retracts a log has the place of the log and the same change, so that the two cancel. If not
// every live log counts, the query returns the live logs that do; retracted logs, and the rows that retract them, are
// returned only if they are requested (retracted).
var (
	depositsOfUser    = around("deposits_of_user")
	requestsOfUser    = around("requests_of_user")
	claimsOfUser      = around("claims_of_user")
	firstOfUser       = around("first_of_user")
	newestNav         = around("newest_nav")
	usersOfVault      = around("users_of_vault")
	requestsWaiting   = around("requests_waiting")
	depositsUnswept   = around("deposits_unswept")
	depositsOfPartner = around("deposits_of_partner")
	usersOfPartner    = around("users_of_partner")
)

// operation is how a number is computed from its logs.
type operation string

const (
	sum   operation = "sum"   // of the changes
	count operation = "count" // each log counts as 1
	last  operation = "last"  // the value in the only log
)

// measure is the value of a log that is its change.
type measure string

const (
	one    measure = "count"
	assets measure = "assets"
	supply measure = "supply"
	price  measure = "price"
	moment measure = "time"
)

// number is a number of the API that can be explained.
type number struct {
	of        string // path of the response that contains it, after /api/v1
	field     string // JSON pointer to it
	logs      *questions
	operation operation
	measure   measure
	unfunded  bool // only of the requests that are not funded yet
	// in reports whether a vault is in the list that has the number; nil: all vaults are, or there is no list.
	in func(*state.Vault, *ask.Totals) bool
}

// The variable parts of paths and pointers.
const (
	anAddress = "{address}" // in a path
	aVault    = "{vault}"   // in a pointer: a place in a list of vaults
	aUser     = "{user}"    // in a pointer: an address in a list of users
)

// Paths of the responses that contain numbers.
const (
	ofUser       = "/users/" + anAddress
	ofVault      = "/vaults/" + anAddress
	ofMember     = ofVault + "/users"
	ofSettlement = "/settlement/summary"
	ofDeposits   = "/queues/deposits"
	ofRequests   = "/queues/withdrawals"
	ofPartner    = "/partner/stats"
)

var numbers = []number{
	{of: ofUser, field: "/totalDeposited", logs: depositsOfUser, operation: sum, measure: assets},
	{of: ofUser, field: "/totalWithdrawn", logs: claimsOfUser, operation: sum, measure: assets},
	{of: ofUser, field: "/firstSeen", logs: firstOfUser, operation: last, measure: moment},
	{of: ofUser, field: "/holdings/deposits/" + aVault + "/_sum/assetAmount",
		logs: depositsOfUser, operation: sum, measure: assets, in: ask.HasDeposits},
	{of: ofUser, field: "/holdings/deposits/" + aVault + "/_count",
		logs: depositsOfUser, operation: count, measure: one, in: ask.HasDeposits},
	{of: ofUser, field: "/holdings/withdrawals/" + aVault + "/_sum/assetsEstimate",
		logs: requestsOfUser, operation: sum, measure: assets, in: ask.HasWithdrawals},
	{of: ofUser, field: "/holdings/withdrawals/" + aVault + "/_sum/assetsClaimed",
		logs: claimsOfUser, operation: sum, measure: assets, in: ask.HasWithdrawals},
	{of: ofUser, field: "/holdings/withdrawals/" + aVault + "/_count",
		logs: requestsOfUser, operation: count, measure: one, in: ask.HasWithdrawals},

	{of: ofVault, field: "/navPerShare", logs: newestNav, operation: last, measure: price},
	{of: ofVault, field: "/totalAssets", logs: newestNav, operation: last, measure: assets},
	{of: ofVault, field: "/totalSupply", logs: newestNav, operation: last, measure: supply},
	{of: ofVault, field: "/stats/userCount", logs: usersOfVault, operation: count, measure: one},
	{of: ofVault, field: "/stats/pendingWithdrawals", logs: requestsWaiting, operation: count, measure: one},

	{of: ofMember, field: "/" + aUser + "/totalDeposited", logs: depositsOfUser, operation: sum, measure: assets},
	{of: ofMember, field: "/" + aUser + "/totalWithdrawn", logs: claimsOfUser, operation: sum, measure: assets},
	{of: ofMember, field: "/" + aUser + "/firstSeen", logs: firstOfUser, operation: last, measure: moment},

	{of: ofSettlement, field: "/" + aVault + "/depositsToSweep/count", logs: depositsUnswept, operation: count,
		measure: one},
	{of: ofSettlement, field: "/" + aVault + "/depositsToSweep/totalAmount", logs: depositsUnswept, operation: sum,
		measure: assets},
	{of: ofSettlement, field: "/" + aVault + "/withdrawalsToFund/count",
		logs: requestsWaiting, operation: count, measure: one, unfunded: true},
	{of: ofSettlement, field: "/" + aVault + "/withdrawalsToFund/totalAmount",
		logs: requestsWaiting, operation: sum, measure: assets, unfunded: true},

	{of: ofDeposits, field: "/" + aVault + "/count", logs: depositsUnswept, operation: count, measure: one,
		in: ask.HasUnswept},
	{of: ofRequests, field: "/meta/total", logs: requestsWaiting, operation: count, measure: one},

	{of: ofPartner, field: "/totalDeposits", logs: depositsOfPartner, operation: count, measure: one},
	{of: ofPartner, field: "/totalVolume", logs: depositsOfPartner, operation: sum, measure: assets},
	{of: ofPartner, field: "/uniqueUsers", logs: usersOfPartner, operation: count, measure: one},
	{of: ofPartner, field: "/byVault/" + aVault + "/depositCount",
		logs: depositsOfPartner, operation: count, measure: one, in: ask.HasDeposits},
	{of: ofPartner, field: "/byVault/" + aVault + "/totalVolume",
		logs: depositsOfPartner, operation: sum, measure: assets, in: ask.HasDeposits},
}

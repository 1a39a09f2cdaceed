package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// question is one kind of request with random parameters.
type question struct {
	name    string
	partner bool
	// far is a question that folds the whole history when it is asked about the
	// past.
	far bool
	// present is a question about what dispatch did, which has no past.
	present bool
	path    func(*rand.Rand) string
}

// questions are all endpoints that read, with every sort and depth of the users
// list and with and without each filter.
func (w *world) questions() []question {
	vault := func(r *rand.Rand) string { return vaultAddress(r.IntN(vaultCount)).Hex() }
	user := func(r *rand.Rand) string { return userAddress(r.IntN(w.chain.known)).Hex() }
	fixed := func(path string) func(*rand.Rand) string { return func(*rand.Rand) string { return path } }
	navs := func(r *rand.Rand) string {
		from := genesisTime + r.Uint64N(w.chain.block*secondsABlock)
		return fmt.Sprintf("/vaults/%s/nav?page=%d&pageSize=100&from=%d", vault(r), 1+r.IntN(20), from)
	}
	statuses := []string{"queued", "claimed", "cancelled"}
	all := []question{
		{name: "vaults", path: fixed("/api/v1/vaults?")},
		{name: "vault", path: func(r *rand.Rand) string { return "/api/v1/vaults/" + vault(r) + "?" }},
		{name: "nav", path: func(r *rand.Rand) string { return "/api/v1" + navs(r) }},
		{name: "user", path: func(r *rand.Rand) string { return "/api/v1/users/" + user(r) + "?" }},
		{name: "user-deposits", path: func(r *rand.Rand) string {
			return fmt.Sprintf("/api/v1/users/%s/deposits?page=%d", user(r), 1+r.IntN(2))
		}},
		{name: "user-deposits-filtered", path: func(r *rand.Rand) string {
			from := genesisTime + r.Uint64N(w.chain.block*secondsABlock)
			return fmt.Sprintf("/api/v1/users/%s/deposits?vault=%s&from=%d&to=%d", user(r), vault(r), from, from+r.Uint64N(w.chain.block*secondsABlock))
		}},
		{name: "user-withdrawals", path: func(r *rand.Rand) string { return "/api/v1/users/" + user(r) + "/withdrawals?" }},
		{name: "user-withdrawals-filtered", path: func(r *rand.Rand) string {
			return fmt.Sprintf("/api/v1/users/%s/withdrawals?vault=%s&status=%s", user(r), vault(r), statuses[r.IntN(len(statuses))])
		}},
		{name: "queue-withdrawals", path: func(r *rand.Rand) string { return fmt.Sprintf("/api/v1/queues/withdrawals?page=%d", 1+r.IntN(100)) }},
		{name: "queue-withdrawals-filtered", path: func(r *rand.Rand) string {
			return fmt.Sprintf("/api/v1/queues/withdrawals?page=%d&vault=%s", 1+r.IntN(20), vault(r))
		}},
		{name: "queue-deposits", path: fixed("/api/v1/queues/deposits?")},
		{name: "queue-deposits-filtered", path: func(r *rand.Rand) string { return "/api/v1/queues/deposits?vault=" + vault(r) }},
		{name: "settlement", path: fixed("/api/v1/settlement/summary?")},
		{name: "partner-stats", partner: true, path: fixed("/api/v1/partner/stats?")},
		{name: "partner-deposits", partner: true, path: func(r *rand.Rand) string { return fmt.Sprintf("/api/v1/partner/deposits?page=%d", 1+r.IntN(100)) }},
		{name: "partner-vaults", partner: true, path: fixed("/api/v1/partner/vaults?")},
		{name: "partner-nav", partner: true, path: func(r *rand.Rand) string { return "/api/v1/partner" + navs(r) }},
		{name: "partner-router", partner: true, present: true, path: fixed("/api/v1/partner/router?")},
		{name: "partner-webhooks", partner: true, present: true, path: fixed("/api/v1/partner/webhooks?")},
		{name: "partner-deliveries", partner: true, present: true, path: func(r *rand.Rand) string {
			return fmt.Sprintf("/api/v1/partner/webhooks/deliveries?page=%d", 1+r.IntN(100))
		}},
		{name: "partner-events", partner: true, present: true, path: func(r *rand.Rand) string {
			return fmt.Sprintf("/api/v1/partner/events?after=%d&limit=100", r.IntN(deliveryCount))
		}},
	}
	for _, by := range []string{"firstSeen", "totalDeposited", "totalWithdrawn"} {
		for _, order := range []string{"asc", "desc"} {
			all = append(all,
				question{name: "users-" + by + "-" + order + "-first", far: true, path: fixed("/api/v1/users?sortBy=" + by + "&sortOrder=" + order)},
				question{name: "users-" + by + "-" + order + "-deep", far: true, path: func(r *rand.Rand) string {
					return fmt.Sprintf("/api/v1/users?sortBy=%s&sortOrder=%s&pageSize=100&page=%d", by, order, 1+r.IntN(1000))
				}})
		}
	}
	return all
}

// withPast leaves out the questions that have none.
func withPast(questions []question) []question {
	return slices.DeleteFunc(slices.Clone(questions), func(q question) bool { return q.present })
}

// past turns a question into one about a random past block.
func (w *world) past(path string, r *rand.Rand) string {
	return fmt.Sprintf("%s&asOfBlock=%d", path, 1+r.Uint64N(w.chain.block-1))
}

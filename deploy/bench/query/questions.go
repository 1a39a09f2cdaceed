package main

import (
	"fmt"
	"math/rand/v2"
)

// question is one kind of request with random parameters.
type question struct {
	name    string
	partner bool
	// far is a question that folds the whole history when it is asked about the
	// past.
	far  bool
	path func(*rand.Rand) string
}

// questions are all endpoints of the read models, with every sort and depth of
// the users list.
func (w *world) questions() []question {
	vault := func(r *rand.Rand) string { return vaultAddress(r.IntN(vaultCount)).Hex() }
	user := func(r *rand.Rand) string { return userAddress(r.IntN(w.chain.known)).Hex() }
	fixed := func(path string) func(*rand.Rand) string { return func(*rand.Rand) string { return path } }
	all := []question{
		{name: "vaults", path: fixed("/api/v1/vaults?")},
		{name: "vault", path: func(r *rand.Rand) string { return "/api/v1/vaults/" + vault(r) + "?" }},
		{name: "nav", path: func(r *rand.Rand) string {
			from := genesisTime + r.Uint64N(w.chain.block*secondsABlock)
			return fmt.Sprintf("/api/v1/vaults/%s/nav?page=%d&pageSize=100&from=%d", vault(r), 1+r.IntN(20), from)
		}},
		{name: "user", path: func(r *rand.Rand) string { return "/api/v1/users/" + user(r) + "?" }},
		{name: "user-deposits", path: func(r *rand.Rand) string {
			return fmt.Sprintf("/api/v1/users/%s/deposits?page=%d", user(r), 1+r.IntN(2))
		}},
		{name: "user-withdrawals", path: func(r *rand.Rand) string { return "/api/v1/users/" + user(r) + "/withdrawals?" }},
		{name: "queue-withdrawals", path: func(r *rand.Rand) string {
			return fmt.Sprintf("/api/v1/queues/withdrawals?page=%d&vault=%s", 1+r.IntN(20), vault(r))
		}},
		{name: "queue-deposits", path: func(r *rand.Rand) string { return "/api/v1/queues/deposits?vault=" + vault(r) }},
		{name: "settlement", path: fixed("/api/v1/settlement/summary?")},
		{name: "partner-stats", partner: true, path: fixed("/api/v1/partner/stats?")},
		{name: "partner-deposits", partner: true, path: func(r *rand.Rand) string { return fmt.Sprintf("/api/v1/partner/deposits?page=%d", 1+r.IntN(100)) }},
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

// past turns a question into one about a random past block.
func (w *world) past(path string, r *rand.Rand) string {
	return fmt.Sprintf("%s&asOfBlock=%d", path, 1+r.Uint64N(w.chain.block-1))
}

package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/bench/workload"
)

// question is one kind of request with random parameters.
type question struct {
	name    string
	partner uint32 // whose API key is used; 0: none
	// byTotals marks a list that adds up the whole history if it is asked as of a past block.
	byTotals bool
	// present marks a question about dispatch's work or a setting, which has no past.
	present bool
	path    func(*rand.Rand) string
}

const api = "/api/v1"

func fixed(path string) func(*rand.Rand) string { return func(*rand.Rand) string { return path } }

func vault(r *rand.Rand) string { return workload.VaultAddress(r.IntN(workload.Vaults)).Hex() }

// questions returns questions to all read endpoints, with every sort and depth of the users list, and with and without
// each filter. Questions about one user are asked about a random user and about the router, those about partners about
// the big one and about a small one.
func (w *world) questions() []question {
	user := func(r *rand.Rand) common.Address { return workload.UserAddress(r.IntN(int(w.known.Load()))) }
	all := []question{
		{name: "vaults", path: fixed(api + "/vaults?")},
		{name: "vault", path: func(r *rand.Rand) string { return api + "/vaults/" + vault(r) + "?" }},
		{name: "nav", path: func(r *rand.Rand) string { return api + w.navs(r) }},
		{name: "queue-withdrawals",
			path: func(r *rand.Rand) string { return fmt.Sprintf("%s/queues/withdrawals?page=%d", api, 1+r.IntN(100)) }},
		{name: "queue-withdrawals-filtered", path: func(r *rand.Rand) string {
			return fmt.Sprintf("%s/queues/withdrawals?page=%d&vault=%s", api, 1+r.IntN(20), vault(r))
		}},
		{name: "queue-withdrawals-deep", path: func(r *rand.Rand) string {
			return fmt.Sprintf("%s/queues/withdrawals?pageSize=100&page=%d", api, 1+r.IntN(300))
		}},
		{name: "queue-deposits", path: fixed(api + "/queues/deposits?")},
		{name: "queue-deposits-filtered",
			path: func(r *rand.Rand) string { return api + "/queues/deposits?vault=" + vault(r) }},
		{name: "settlement", path: fixed(api + "/settlement/summary?")},
	}
	all = append(all, w.ofUser("user", user, 2)...)
	all = append(all, w.ofUser("router", func(*rand.Rand) common.Address { return workload.Router }, 1000)...)
	all = append(all, w.ofPartner("big-partner", workload.BigPartner, 1000)...)
	all = append(all, w.ofPartner("partner", workload.BigPartner+1, 100)...)
	return append(all, users()...)
}

func (w *world) navs(r *rand.Rand) string {
	return fmt.Sprintf("/vaults/%s/nav?page=%d&pageSize=100&from=%d", vault(r), 1+r.IntN(20), w.time(r))
}

// time returns a random time within the chain.
func (w *world) time(r *rand.Rand) uint64 {
	return workload.GenesisTime + r.Uint64N(w.block.Load()*workload.SecondsABlock)
}

// ofUser returns the questions about a user with that many pages.
func (w *world) ofUser(name string, who func(*rand.Rand) common.Address, pages int) []question {
	statuses := []string{"queued", "claimed", "cancelled"}
	path := func(r *rand.Rand) string { return api + "/users/" + who(r).Hex() }
	return []question{
		{name: name, path: func(r *rand.Rand) string { return path(r) + "?" }},
		{name: name + "-deposits",
			path: func(r *rand.Rand) string { return fmt.Sprintf("%s/deposits?page=%d", path(r), 1+r.IntN(pages)) }},
		{name: name + "-deposits-filtered", path: func(r *rand.Rand) string {
			from := w.time(r)
			return fmt.Sprintf("%s/deposits?vault=%s&from=%d&to=%d", path(r), vault(r), from,
				from+r.Uint64N(w.block.Load()*workload.SecondsABlock))
		}},
		{name: name + "-withdrawals",
			path: func(r *rand.Rand) string { return fmt.Sprintf("%s/withdrawals?page=%d", path(r), 1+r.IntN(pages)) }},
		{name: name + "-withdrawals-filtered", path: func(r *rand.Rand) string {
			return fmt.Sprintf("%s/withdrawals?vault=%s&status=%s", path(r), vault(r), statuses[r.IntN(len(statuses))])
		}},
	}
}

// ofPartner returns the questions about a partner with that many pages.
func (w *world) ofPartner(name string, id uint32, pages int) []question {
	all := []question{
		{name: name + "-stats", path: fixed(api + "/partner/stats?")},
		{name: name + "-deposits",
			path: func(r *rand.Rand) string { return fmt.Sprintf("%s/partner/deposits?page=%d", api, 1+r.IntN(pages)) }},
	}
	if id == workload.BigPartner {
		all = append(all, []question{
			{name: name + "-vaults", path: fixed(api + "/partner/vaults?")},
			{name: name + "-nav", path: func(r *rand.Rand) string { return api + "/partner" + w.navs(r) }},
			{name: name + "-router", present: true, path: fixed(api + "/partner/router?")},
			{name: name + "-webhooks", present: true, path: fixed(api + "/partner/webhooks?")},
			{name: name + "-deliveries", present: true, path: func(r *rand.Rand) string {
				return fmt.Sprintf("%s/partner/webhooks/deliveries?page=%d", api, 1+r.IntN(100))
			}},
			{name: name + "-events", present: true, path: func(r *rand.Rand) string {
				return fmt.Sprintf("%s/partner/events?after=%d&limit=100", api, r.IntN(deliveryCount))
			}},
		}...)
	}
	for i := range all {
		all[i].partner = id
	}
	return all
}

// users returns the lists of all users.
func users() (all []question) {
	for _, by := range []string{"firstSeen", "totalDeposited", "totalWithdrawn"} {
		for _, order := range []string{"asc", "desc"} {
			name, path := "users-"+by+"-"+order, api+"/users?sortBy="+by+"&sortOrder="+order
			all = append(all,
				question{name: name + "-first", byTotals: by != "firstSeen", path: fixed(path)},
				question{name: name + "-deep", byTotals: by != "firstSeen", path: func(r *rand.Rand) string {
					return fmt.Sprintf("%s&pageSize=100&page=%d", path, 1+r.IntN(1000))
				}})
		}
	}
	return all
}

// past returns the questions that have a past, about past blocks, which are chosen uniformly at random. The newest
// blocks are excluded, because they may not be indexed yet or may be orphaned meanwhile.
func (w *world) past(questions []question) (past []question) {
	for _, q := range questions {
		if q.present {
			continue
		}
		newest := q.path
		q.path = func(r *rand.Rand) string {
			return fmt.Sprintf("%s&asOfBlock=%d", newest(r), 1+r.Uint64N(w.newestKnown()))
		}
		past = append(past, q)
	}
	return past
}

// newestKnown returns a block that is too old for any reorganisation of the workload.
func (w *world) newestKnown() uint64 { return w.block.Load() - 2*workload.Deepest }

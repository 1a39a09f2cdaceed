package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

const api = "/api/v1"

// nobody is an address that never did anything.
var nobody = common.HexToAddress("0x00000000000000000000000000000000DeaDBeef")

// everything asks about everything in a view: every endpoint, page, order and filter.
func everything(v view, partners []Partner) []Question {
	q := &questions{view: v}
	q.askVaults("", api)
	q.askUsers()
	for i, u := range v.state.sorted("firstSeen", "asc") {
		if v.brief && uint64(i)%3 != v.state.block%3 {
			continue // this one is asked about as of another block
		}
		q.askUser(u)
	}
	q.askNobody()
	q.askBusiest()
	q.askQueues()
	for _, p := range partners {
		q.askPartner(p)
	}
	return q.list
}

// askVaults asks for the list, the details and the NAV history below a path prefix: partners have their own.
func (q *questions) askVaults(key, prefix string) {
	s := q.state
	q.one(key, prefix+"/vaults", items(s.ordered(), s.vaultJSON))
	for i, v := range s.ordered() {
		path := prefix + "/vaults/" + v.address.Hex()
		if key == "" {
			q.one(key, path, s.vaultDetailJSON(v))
		}
		if key == "" && !q.brief {
			q.one(key, strings.ToLower(path), s.vaultDetailJSON(v))
			q.one(key, prefix+"/vaults/0x"+strings.ToUpper(v.address.Hex()[2:]), s.vaultDetailJSON(v))
		}
		of := keep(s.navs, func(n navState) bool { return n.Vault == v.address })
		q.pages(key, path+"/nav", items(newestFirst(of), s.navJSON), 3)
		if i > 0 || len(of) == 0 || q.brief {
			continue
		}
		times := make([]uint64, len(of))
		for i, n := range of {
			times[i] = n.Time
		}
		for _, span := range spans(times) {
			in := keep(of, func(n navState) bool { return span.holds(n.Time) })
			q.whole(key, path+"/nav", items(newestFirst(in), s.navJSON), span.pairs()...)
		}
	}
}

func (q *questions) askUsers() {
	s := q.state
	const path = api + "/users"
	q.pages("", path, items(s.sorted("firstSeen", "desc"), s.userJSON), 7)
	for _, by := range []string{"firstSeen", "totalDeposited", "totalWithdrawn"} {
		for _, order := range []string{"asc", "desc"} {
			q.pages("", path, items(s.sorted(by, order), s.userJSON), 7, "sortBy", by, "sortOrder", order)
		}
	}
}

// askUser asks the plain questions about one user.
func (q *questions) askUser(u *userState) {
	s := q.state
	path := api + "/users/" + u.address.Hex()
	q.one("", path, s.userWithHoldingsJSON(u))
	q.page("", path+"/deposits", items(newestFirst(keep(s.deposits, by(u))), s.depositJSON), 0, 0)
	q.page("", path+"/withdrawals", items(newestFirst(keep(s.requests, askedBy(u))), s.requestJSON), 0, 0)
}

func by(u *userState) func(*depositState) bool {
	return func(d *depositState) bool { return d.Owner == u.address }
}

func askedBy(u *userState) func(*requestState) bool {
	return func(r *requestState) bool { return r.Owner == u.address }
}

// askNobody asks about an address that is not a user, and about one that is not a vault.
func (q *questions) askNobody() {
	q.fails("", api+"/users/"+nobody.Hex(), 404, "NOT_FOUND", nil)
	q.page("", api+"/users/"+nobody.Hex()+"/deposits", nil, 0, 0)
	q.page("", api+"/users/"+nobody.Hex()+"/withdrawals", nil, 0, 0)
	q.fails("", api+"/vaults/"+nobody.Hex(), 404, "NOT_FOUND", nil)
	q.fails("", api+"/vaults/"+nobody.Hex()+"/nav", 404, "NOT_FOUND", nil)
}

// askBusiest asks all filtered questions, about the users with the most rows to filter.
func (q *questions) askBusiest() {
	s := q.state
	users := s.sorted("firstSeen", "asc")
	slices.SortStableFunc(users, func(a, b *userState) int {
		return -cmp.Compare(len(keep(s.deposits, by(a))), len(keep(s.deposits, by(b))))
	})
	for i, u := range users[:min(2, len(users))] {
		q.askDeposits(u, i == 0)
	}
	slices.SortStableFunc(users, func(a, b *userState) int {
		return -cmp.Compare(len(keep(s.requests, askedBy(a))), len(keep(s.requests, askedBy(b))))
	})
	for _, u := range users[:min(3, len(users))] {
		q.askWithdrawals(u)
	}
}

func (q *questions) askDeposits(u *userState, inTime bool) {
	s := q.state
	path := api + "/users/" + u.address.Hex() + "/deposits"
	all := keep(s.deposits, by(u))
	q.pages("", path, items(newestFirst(all), s.depositJSON), 2)
	for _, vault := range q.vaultFilters() {
		in := keep(all, func(d *depositState) bool { return d.Vault == vault })
		q.whole("", path, items(newestFirst(in), s.depositJSON), "vault", vault.Hex())
	}
	if !inTime || len(all) == 0 || q.brief {
		return
	}
	times := make([]uint64, len(all))
	for i, d := range all {
		times[i] = d.Time
	}
	vault := all[0].Vault
	for _, span := range spans(times) {
		in := keep(all, func(d *depositState) bool { return span.holds(d.Time) })
		q.whole("", path, items(newestFirst(in), s.depositJSON), span.pairs()...)
		in = keep(in, func(d *depositState) bool { return d.Vault == vault })
		q.whole("", path, items(newestFirst(in), s.depositJSON), append(span.pairs(), "vault", strings.ToLower(vault.Hex()))...)
	}
}

func (q *questions) askWithdrawals(u *userState) {
	s := q.state
	path := api + "/users/" + u.address.Hex() + "/withdrawals"
	all := keep(s.requests, askedBy(u))
	q.pages("", path, items(newestFirst(all), s.requestJSON), 2)
	for _, status := range []string{"queued", "claimed", "cancelled"} {
		in := keep(all, func(r *requestState) bool { return s.status(r) == status })
		q.pages("", path, items(newestFirst(in), s.requestJSON), 1, "status", status)
		for _, vault := range q.vaultFilters() {
			in := keep(in, func(r *requestState) bool { return r.Vault == vault })
			q.whole("", path, items(newestFirst(in), s.requestJSON), "status", status, "vault", vault.Hex())
		}
	}
	for _, vault := range q.vaultFilters() {
		in := keep(all, func(r *requestState) bool { return r.Vault == vault })
		q.whole("", path, items(newestFirst(in), s.requestJSON), "vault", vault.Hex())
	}
}

// vaultFilters returns the vaults, and an address that is not a vault; if brief, one vault.
func (q *questions) vaultFilters() []common.Address {
	if q.brief {
		return []common.Address{q.state.ordered()[0].address}
	}
	filters := []common.Address{nobody}
	for _, v := range q.state.ordered() {
		filters = append(filters, v.address)
	}
	return filters
}

func (q *questions) askQueues() {
	s := q.state
	queued := keep(s.requests, func(r *requestState) bool { return s.status(r) == "queued" })
	q.pages("", api+"/queues/withdrawals", items(queued, s.requestJSON), 2)
	unswept := keep(s.ordered(), func(v *vaultState) bool { return len(v.unswept()) > 0 })
	q.one("", api+"/queues/deposits", items(unswept, s.queueGroupJSON))
	for _, vault := range q.vaultFilters() {
		in := keep(queued, func(r *requestState) bool { return r.Vault == vault })
		q.pages("", api+"/queues/withdrawals", items(in, s.requestJSON), 2, "vault", vault.Hex())
		of := keep(unswept, func(v *vaultState) bool { return v.address == vault })
		q.one("", api+"/queues/deposits", items(of, s.queueGroupJSON), "vault", strings.ToLower(vault.Hex()))
	}
	q.one("", api+"/settlement/summary", items(s.ordered(), s.settlementJSON))
}

func (q *questions) askPartner(p Partner) {
	s := q.state
	const prefix = api + "/partner"
	q.askVaults(p.APIKey, prefix)
	q.one(p.APIKey, prefix+"/stats", s.partnerStatsJSON(p))
	of := keep(s.deposits, func(d *depositState) bool { return d.PartnerId == p.ID })
	q.pages(p.APIKey, prefix+"/deposits", items(newestFirst(of), s.depositJSON), 4)
	if len(q.asOf) > 0 {
		return // the router is configuration and has no past
	}
	q.one(p.APIKey, prefix+"/router", Object{"routerAddress": s.history.router.Hex(), "chainId": integer(s.history.chainID)})
}

// refusals are the questions that must be rejected, whatever the state.
func refusals(v view, p Partner) []Question {
	q := &questions{view: v}
	known := q.state.ordered()[0].address.Hex()
	user := api + "/users/" + nobody.Hex()
	parameter := func(path, name, value string) {
		q.fails("", path, 400, "INVALID_PARAMETER", []string{name}, name, value)
	}
	for _, address := range []string{"0x12", known + "0", strings.Replace(known, "0x", "0X", 1), known[2:], "0x" + strings.Repeat("g", 40)} {
		q.fails("", api+"/vaults/"+address, 400, "INVALID_ADDRESS", []string{"address"})
		q.fails("", api+"/vaults/"+address+"/nav", 400, "INVALID_ADDRESS", []string{"address"})
		q.fails("", api+"/users/"+address, 400, "INVALID_ADDRESS", []string{"address"})
		q.fails("", user+"/deposits", 400, "INVALID_ADDRESS", []string{"vault"}, "vault", address)
		q.fails("", api+"/queues/deposits", 400, "INVALID_ADDRESS", []string{"vault"}, "vault", address)
	}
	for _, list := range []string{api + "/users", api + "/vaults/" + known + "/nav", user + "/deposits", user + "/withdrawals", api + "/queues/withdrawals"} {
		for _, number := range []string{"0", "-1", "1.0", "x", "1e3"} {
			parameter(list, "page", number)
			parameter(list, "pageSize", number)
		}
		parameter(list, "pageSize", "101")
		q.fails("", list, 400, "INVALID_PARAMETER", []string{"page"}, "page", "1001", "pageSize", "100")
		parameter(list, "asOfBlock", fmt.Sprint(q.state.history.Head()+1))
		parameter(list, "asOfBlock", "0") // before the first vault
	}
	for _, path := range []string{api + "/vaults/" + known + "/nav", user + "/deposits"} {
		for _, moment := range []string{"yesterday", "2026-13-01", "2026-01-01T00:00:00", "12345678901"} {
			parameter(path, "from", moment)
			parameter(path, "to", moment)
		}
		q.fails("", path, 400, "INVALID_PARAMETER", []string{"from"}, "from", "2026-01-02", "to", "2026-01-01")
	}
	parameter(api+"/users", "sortBy", "address")
	parameter(api+"/users", "sortOrder", "ASC")
	parameter(user+"/withdrawals", "status", "expired")
	parameter(user+"/withdrawals", "status", "pending")
	for _, key := range []string{"", "nk_test_", p.APIKey + "0", strings.ToLower(p.APIKey)} {
		for _, path := range []string{"/vaults", "/vaults/" + known + "/nav", "/stats", "/deposits", "/router"} {
			q.fails(key, api+"/partner"+path, 401, "UNAUTHORIZED", nil)
		}
	}
	q.fails("", api+"/nothing", 404, "NOT_FOUND", nil)
	return q.list
}

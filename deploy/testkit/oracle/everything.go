package oracle

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

const api = "/api/v1"

// unusedAddress is an address that never did anything.
var unusedAddress = common.HexToAddress("0x00000000000000000000000000000000DeaDBeef")

// public stands for the questions that need no key.
var public Partner

// everything asks about everything in the state: every endpoint, page, order and filter.
func (q *questions) everything(partners []Partner) []Question {
	q.askVaults(public, api)
	q.askLists()
	q.askUsers(api + "/users")
	users := sorted(q.state.users, "firstSeen", "asc")
	for i, u := range users {
		if every := 1 + len(users)/8; q.Brief && i%every != int(q.state.block)%every {
			continue // this one is asked about as of another block
		}
		q.askUser(u.address)
	}
	q.askUser(unusedAddress)
	q.askBusiest()
	q.askQueues()
	for _, p := range partners {
		q.askPartner(p)
	}
	return q.list
}

// askVaults requests the list, the details and the NAV history below a path prefix: partners have their own.
func (q *questions) askVaults(p Partner, prefix string) {
	q.one(p, prefix+"/vaults")
	for i, v := range q.state.ordered() {
		path := prefix + "/vaults/" + v.address.Hex()
		if p == public {
			q.one(p, path)
		}
		if p == public && !q.Brief {
			q.one(p, strings.ToLower(path))
			q.one(p, prefix+"/vaults/0x"+strings.ToUpper(v.address.Hex()[2:]))
		}
		q.pages(p, path+"/nav", 3)
		if navs := q.state.navsOf(v); i == 0 && len(navs) > 0 && !q.Brief {
			q.askInTime(p, path+"/nav", times(navs, func(n navState) uint64 { return n.Time }))
		}
	}
}

// askInTime requests a list in time ranges around some times, which are in ascending order.
func (q *questions) askInTime(p Partner, path string, times []uint64, pairs ...string) {
	for _, in := range spans(times) {
		q.within(p, path, in, pairs...)
	}
}

func times[T any](of []T, time func(T) uint64) (out []uint64) {
	for _, one := range of {
		out = append(out, time(one))
	}
	return out
}

// askLists requests the lists and the series of each vault; if brief, only the users and the series of one of them.
func (q *questions) askLists() {
	for _, v := range q.state.ordered() {
		path := api + "/vaults/" + v.address.Hex()
		q.pages(public, path+"/deposits", 5)
		q.pages(public, path+"/withdrawals", 5)
		if q.Brief && !slices.Contains(q.vaultFilters(), v.address) {
			continue
		}
		q.askUsers(path + "/users")
		q.askSeries(path + "/series")
		for _, interval := range []string{"hour", "day", "week"} {
			q.askSeries(path+"/series", "interval", interval)
		}
	}
	for _, list := range []string{"", "/nav", "/deposits", "/withdrawals", "/users", "/series"} {
		q.one(public, api+"/vaults/"+unusedAddress.Hex()+list)
	}
}

// maxPoints is the largest number of points of a series.
const maxPoints = 2000

// askSeries requests a series, which is refused if it would be too long.
func (q *questions) askSeries(path string, pairs ...string) {
	series := q.state.answer(path, q.with(pairs...), span{}, public).(Object)
	if len(series["points"].([]any)) > maxPoints {
		q.fails("", path, http.StatusBadRequest, "INVALID_PARAMETER", []string{"from"}, pairs...)
		return
	}
	q.one(public, path, pairs...)
}

// askUsers requests the users in every order.
func (q *questions) askUsers(path string) {
	q.pages(public, path, 7)
	for _, by := range []string{"firstSeen", "totalDeposited", "totalWithdrawn"} {
		for _, order := range []string{"asc", "desc"} {
			q.pages(public, path, 7, "sortBy", by, "sortOrder", order)
		}
	}
}

// askUser asks the plain questions about one user, or about an address that is none.
func (q *questions) askUser(address common.Address) {
	path := api + "/users/" + address.Hex()
	q.one(public, path)
	for _, list := range []string{"/deposits", "/withdrawals"} {
		q.page(public, path+list, q.state.answer(path+list, nil, span{}, public).([]any), 0, 0)
	}
}

func by(u *userState) func(*depositState) bool {
	return func(d *depositState) bool { return d.Owner == u.address }
}

func askedBy(u *userState) func(*requestState) bool {
	return func(r *requestState) bool { return r.Owner == u.address }
}

// askBusiest asks all filtered questions, about the users with the most rows to filter.
func (q *questions) askBusiest() {
	s := q.state
	users := sorted(s.users, "firstSeen", "asc")
	slices.SortStableFunc(users, func(a, b *userState) int {
		return -cmp.Compare(len(filter(s.deposits, by(a))), len(filter(s.deposits, by(b))))
	})
	for i, u := range users[:min(2, len(users))] {
		q.askDeposits(u, i == 0)
	}
	slices.SortStableFunc(users, func(a, b *userState) int {
		return -cmp.Compare(len(filter(s.requests, askedBy(a))), len(filter(s.requests, askedBy(b))))
	})
	for _, u := range users[:min(3, len(users))] {
		q.askWithdrawals(u)
	}
}

func (q *questions) askDeposits(u *userState, inTime bool) {
	path := api + "/users/" + u.address.Hex() + "/deposits"
	q.pages(public, path, 2)
	for _, vault := range q.vaultFilters() {
		q.whole(public, path, "vault", vault.Hex())
	}
	if all := filter(q.state.deposits, by(u)); inTime && len(all) > 0 && !q.Brief {
		at := times(all, func(d *depositState) uint64 { return d.Time })
		q.askInTime(public, path, at)
		q.askInTime(public, path, at, "vault", strings.ToLower(all[0].Vault.Hex()))
	}
}

func (q *questions) askWithdrawals(u *userState) {
	path := api + "/users/" + u.address.Hex() + "/withdrawals"
	q.pages(public, path, 2)
	for _, status := range []string{"queued", "claimed", "cancelled"} {
		q.pages(public, path, 1, "status", status)
		for _, vault := range q.vaultFilters() {
			q.whole(public, path, "status", status, "vault", vault.Hex())
		}
	}
	for _, vault := range q.vaultFilters() {
		q.whole(public, path, "vault", vault.Hex())
	}
}

// vaultFilters returns the vaults, and an address that is not a vault; if brief, one vault: another one as of another
// block.
func (q *questions) vaultFilters() []common.Address {
	vaults := q.state.ordered()
	if q.Brief {
		return []common.Address{vaults[q.state.block%uint64(len(vaults))].address}
	}
	filters := []common.Address{unusedAddress}
	for _, v := range vaults {
		filters = append(filters, v.address)
	}
	return filters
}

func (q *questions) askQueues() {
	q.pages(public, api+"/queues/withdrawals", 2)
	q.one(public, api+"/queues/deposits")
	for _, vault := range q.vaultFilters() {
		q.pages(public, api+"/queues/withdrawals", 2, "vault", vault.Hex())
		q.one(public, api+"/queues/deposits", "vault", strings.ToLower(vault.Hex()))
	}
	q.one(public, api+"/settlement/summary")
}

func (q *questions) askPartner(p Partner) {
	const prefix = api + "/partner"
	q.askVaults(p, prefix)
	q.one(p, prefix+"/stats")
	q.pages(p, prefix+"/deposits", 4)
	if len(q.AsOf) == 0 { // the router is configuration and has no past
		q.one(p, prefix+"/router")
	}
}

// refusals are the questions that must be rejected, whatever the state.
func (q *questions) refusals(p Partner) []Question {
	known := q.state.ordered()[0].address.Hex()
	user := api + "/users/" + unusedAddress.Hex()
	parameter := func(path, name, value string) {
		q.fails("", path, 400, "INVALID_PARAMETER", []string{name}, name, value)
	}
	for _, address := range []string{"0x12", known + "0", strings.Replace(known, "0x", "0X", 1), known[2:],
		"0x" + strings.Repeat("g", 40)} {
		q.fails("", api+"/vaults/"+address, 400, "INVALID_ADDRESS", []string{"address"})
		q.fails("", api+"/vaults/"+address+"/nav", 400, "INVALID_ADDRESS", []string{"address"})
		q.fails("", api+"/users/"+address, 400, "INVALID_ADDRESS", []string{"address"})
		q.fails("", user+"/deposits", 400, "INVALID_ADDRESS", []string{"vault"}, "vault", address)
		q.fails("", api+"/queues/deposits", 400, "INVALID_ADDRESS", []string{"vault"}, "vault", address)
	}
	for _, list := range []string{api + "/users", api + "/vaults/" + known + "/nav", user + "/deposits",
		user + "/withdrawals", api + "/queues/withdrawals"} {
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

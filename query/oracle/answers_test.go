package oracle

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/deposits"
	"github.com/navlog/navlog/query/events"
	"github.com/navlog/navlog/query/explain"
	"github.com/navlog/navlog/query/partner"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/users"
	"github.com/navlog/navlog/query/vaults"
	"github.com/navlog/navlog/query/withdrawals"
)

// make property compares every past block, which takes minutes; each fault that it found has a test of its own.
var stride = flag.Uint64("stride", 10, "how many blocks lie between the past blocks that answers are compared at; 1: all of them")

// routes are all routes that are served from the read models.
var routes = []serve.Route{
	{Path: "/api/v1/vaults", Get: vaults.List, AsFile: true},
	{Path: "/api/v1/vaults/{address}", Get: vaults.Detail(nil)},
	{Path: "/api/v1/vaults/{address}/nav", Get: vaults.Navs, AsFile: true},
	{Path: "/api/v1/vaults/{address}/deposits", Get: deposits.OfVault, AsFile: true},
	{Path: "/api/v1/vaults/{address}/withdrawals", Get: withdrawals.OfVault, AsFile: true},
	{Path: "/api/v1/vaults/{address}/users", Get: users.OfVault, AsFile: true},
	{Path: "/api/v1/vaults/{address}/events", Get: events.OfVault, AsFile: true, FirstSync: true},
	{Path: "/api/v1/events", Get: events.List, AsFile: true, FirstSync: true},
	{Path: "/api/v1/reorganisations", Get: events.Reorganisations, AsFile: true, FirstSync: true},
	{Path: "/api/v1/vaults/{address}/series", Get: vaults.Series, AsFile: true},
	{Path: "/api/v1/users", Get: users.List, AsFile: true},
	{Path: "/api/v1/users/{address}", Get: users.Detail},
	{Path: "/api/v1/users/{address}/deposits", Get: deposits.OfUser, AsFile: true},
	{Path: "/api/v1/users/{address}/withdrawals", Get: withdrawals.OfUser, AsFile: true},
	{Path: "/api/v1/queues/withdrawals", Get: withdrawals.Queue, AsFile: true},
	{Path: "/api/v1/queues/deposits", Get: deposits.Queue, AsFile: true, Streamed: true},
	{Path: "/api/v1/settlement/summary", Get: vaults.Settlement, AsFile: true},
	{Path: "/api/v1/explain", Get: explain.New(nil).Explain, PartnerIf: explain.NeedsKey},
	{Path: "/api/v1/partner/vaults", Partner: true, Get: vaults.List, AsFile: true},
	{Path: "/api/v1/partner/vaults/{address}/nav", Partner: true, Get: vaults.Navs, AsFile: true},
	{Path: "/api/v1/partner/stats", Partner: true, Get: partner.Stats},
	{Path: "/api/v1/partner/deposits", Partner: true, Get: deposits.OfPartner, AsFile: true},
	{Path: "/api/v1/partner/router", Partner: true, Get: partner.Router(readtest.Router.Hex(), readtest.ChainID), Uncached: true},
}

// asked is a client of a generation, with the log that the generation was built from.
type asked struct {
	*readtest.Client
	t   *testing.T
	gen *readtest.Generation
	log *readtest.Log
}

// startAPI serves the read model of a log. The test runs in parallel with others, because it has a generation to itself.
func startAPI(t *testing.T, l *readtest.Log) *asked {
	t.Helper()
	t.Parallel()
	g := readtest.New(t, enginetest.ClickHouse(t))
	g.Write(l)
	return &asked{readtest.Serve(t, g, routes...), t, g, l}
}

// check requests a path, at a past block if pinned is set, and compares the response with want. For a paginated list
// it requests the first page, of up to 100 entries.
func (a *asked) check(path, pinned string, want any) {
	a.t.Helper()
	path = withQuery(path, pinned)
	got := a.Get(path).JSON(a.t)
	if list, ok := want.([]any); ok && got["meta"] != nil {
		same(a.t, path+" total", got["meta"].(object)["total"], len(list))
		want = list[:min(len(list), 100)]
	}
	same(a.t, path, got["data"], want)
}

func withQuery(path, query string) string {
	switch {
	case query == "":
		return path
	case strings.Contains(path, "?"):
		return path + "&" + query
	}
	return path + "?" + query
}

// compare checks every route.
func (a *asked) compare(o *Oracle, pinned string) {
	a.t.Helper()
	check := func(path string, want any) { a.t.Helper(); a.check(path, pinned, want) }
	check("/api/v1/vaults", o.vaultList())
	for _, v := range o.vaults {
		path := "/api/v1/vaults/" + v.address.Hex()
		check(path, o.vaultDetail(v))
		check(path+"/nav?pageSize=100", o.navs(v))
		check(path+"/deposits?pageSize=100", o.vaultDeposits(v.address, nil))
		check(path+"/withdrawals?pageSize=100", o.vaultRequests(v.address, nil))
		check("/api/v1/queues/withdrawals?pageSize=100&vault="+v.address.Hex(), o.withStatus("queued", inVault(v.address), false))
		check("/api/v1/queues/deposits?vault="+v.address.Hex(), o.depositQueue(v))
	}
	for _, field := range []string{"firstSeen", "totalDeposited", "totalWithdrawn"} {
		check("/api/v1/users?pageSize=100&sortOrder=desc&sortBy="+field, o.users(field, true))
		check("/api/v1/users?pageSize=100&sortOrder=asc&sortBy="+field, o.users(field, false))
		for _, v := range o.vaults {
			path := "/api/v1/vaults/" + v.address.Hex() + "/users?pageSize=100&sortBy=" + field
			check(path+"&sortOrder=desc", o.usersIn(v.address, field, true))
			check(path+"&sortOrder=asc", o.usersIn(v.address, field, false))
		}
	}
	for _, u := range people {
		a.compareUser(o, u, pinned)
	}
	check("/api/v1/queues/withdrawals?pageSize=100", o.withStatus("queued", nil, false))
	check("/api/v1/queues/deposits", o.depositQueue(o.vaults...))
	check("/api/v1/settlement/summary", o.settlement())
	a.walkEvents("/api/v1/events?retracted=true", pinned, o.events(nil, true))
	a.compareReorganisations(o, pinned)
	check("/api/v1/partner/stats", o.partnerStats(7, "Seven"))
	check("/api/v1/partner/deposits?pageSize=100", o.depositsNewestFirst(func(e readtest.Entry) bool { return e.Partner == 7 }))
}

func (a *asked) compareUser(o *Oracle, u common.Address, pinned string) {
	a.t.Helper()
	path := "/api/v1/users/" + u.Hex()
	if user := o.user(u); user != nil {
		a.check(path, pinned, user)
	} else {
		a.Get(withQuery(path, pinned)).Failed(a.t, 404, "NOT_FOUND")
	}
	inB := func(e readtest.Entry) bool { return e.User == u && e.Fact.Vault == readtest.VaultB }
	known := ofUser(u)
	a.check(path+"/deposits?pageSize=100", pinned, o.depositsNewestFirst(known))
	a.check(path+"/withdrawals?pageSize=100", pinned, o.withStatus("", known, true))
	for _, status := range []string{"queued", "claimed", "cancelled"} {
		a.check(path+"/withdrawals?pageSize=100&status="+status, pinned, o.withStatus(status, known, true))
	}
	if o.name(readtest.VaultB) == "" {
		return
	}
	a.check(path+"/deposits?pageSize=100&vault="+readtest.VaultB.Hex(), pinned, o.depositsNewestFirst(inB))
	a.check(path+"/withdrawals?pageSize=100&status=queued&vault="+readtest.VaultB.Hex(), pinned, o.withStatus("queued", inB, true))
}

// TestAnswersEqualOracle compares every response with the oracle: about the newest block at several points of random
// histories, and at their end about every stride-th past block.
func TestAnswersEqualOracle(t *testing.T) {
	if testing.Short() {
		t.Skip("sends one query after the other")
	}
	for seed := uint64(1); seed <= 2; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			var a *asked
			steps := 0
			s := tell(seed, func(s *story) {
				if a == nil {
					a = startAPI(t, s.Log)
				} else {
					a.gen.Write(s.Log)
					a.Look()
				}
				if steps++; steps%8 == 0 {
					a.compare(At(s.Log, s.Seq(), 1<<62), "")
				}
			})
			if !s.hasReorganisation() {
				t.Fatal("the story has no reorganisation")
			}
			a.compare(At(s.Log, s.Seq(), 1<<62), "")
			for block := uint64(10); block < s.head; block += *stride {
				a.compare(At(s.Log, s.Seq(), block), fmt.Sprintf("asOfBlock=%d", block))
			}
		})
	}
}

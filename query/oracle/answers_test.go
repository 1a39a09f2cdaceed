package oracle

import (
	"flag"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/oracle"
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

// make property compares every past block, which takes minutes; each fault that it found has a separate test.
var stride = flag.Uint64("stride", 10,
	"how many blocks lie between the past blocks that answers are compared at; 1: all of them")

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
	{Path: "/api/v1/queues/deposits", Get: deposits.Queue, AsFile: true, Expensive: serve.Always},
	{Path: "/api/v1/settlement/summary", Get: vaults.Settlement, AsFile: true},
	{Path: "/api/v1/explain", Get: explain.New(nil).Explain, PartnerIf: explain.NeedsKey},
	{Path: "/api/v1/partner/vaults", Partner: true, Get: vaults.List, AsFile: true},
	{Path: "/api/v1/partner/vaults/{address}/nav", Partner: true, Get: vaults.Navs, AsFile: true},
	{Path: "/api/v1/partner/stats", Partner: true, Get: partner.Stats},
	{Path: "/api/v1/partner/deposits", Partner: true, Get: deposits.OfPartner, AsFile: true},
	{Path: "/api/v1/partner/router", Partner: true, Get: partner.Router(readtest.Router.Hex(), readtest.ChainID),
		Uncached: true},
}

// asked is a client of a generation, with the log that the generation was built from.
type asked struct {
	*readtest.Client
	t   *testing.T
	gen *readtest.Generation
	log *readtest.Log
}

// startAPI serves the read model of a log. The test runs in parallel with others, because no other test uses its
// generation.
func startAPI(t *testing.T, l *readtest.Log) *asked {
	t.Helper()
	t.Parallel()
	g := readtest.New(t, enginetest.ClickHouse(t))
	g.Write(l)
	return &asked{readtest.Serve(t, g, routes...), t, g, l}
}

// twice returns the oracles of the newest block and of a past one, by the parameter that requests them.
func (a *asked) twice(past uint64) map[string]*Oracle {
	a.t.Helper()
	o := At(a.t, a.log, a.log.Seq(), past)
	return map[string]*Oracle{"": newest(a.t, a.log), o.pinned(): o}
}

// check requests a path, at a past block if pinned is set, and compares the response with the oracle. For a paginated
// list it requests the first page, of up to 100 entries.
func (a *asked) check(o *Oracle, path, pinned string) {
	a.t.Helper()
	a.expect(path, pinned, o.answer(a.t, path))
}

// expect is check with the expected data.
func (a *asked) expect(path, pinned string, want any) {
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

// RoundTrip implements http.RoundTripper: it sends a request to the routes, in-process.
func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	reply := a.Get(r.URL.String(), "X-Request-Id", r.Header.Get("X-Request-Id"), "x-api-key", r.Header.Get("x-api-key"))
	return reply.Result(), nil
}

// compare checks every route: with the requests of deploy/testkit/oracle, and with the contents of the log.
func (a *asked) compare(o *Oracle, pinned string) {
	a.t.Helper()
	a.ask(o, pinned)
	for _, u := range people { // also those who are not users at this block
		path := "/api/v1/users/" + u.Hex()
		if want := o.answer(a.t, path); want != nil {
			a.expect(path, pinned, want)
		} else {
			a.Get(withQuery(path, pinned)).Failed(a.t, 404, "NOT_FOUND")
		}
		a.check(o, path+"/deposits?pageSize=100", pinned)
		a.check(o, path+"/withdrawals?pageSize=100", pinned)
	}
	a.walkEvents("/api/v1/events?retracted=true", pinned, o.events(nil, true))
	a.compareReorganisations(o, pinned)
}

// ask sends the requests of deploy/testkit/oracle.
func (a *asked) ask(o *Oracle, pinned string) {
	a.t.Helper()
	questions, err := o.chain.Questions(o.moment(pinned), []oracle.Partner{seven})
	if err != nil {
		a.t.Fatal(err)
	}
	client := oracle.Client{Base: "http://navlog", HTTP: &http.Client{Transport: a}}
	outcome, err := client.Ask(a.t.Context(), questions)
	if err != nil || len(outcome.Differences) > 0 {
		a.t.Fatalf("block %d, %s: %v\n%s", o.block, pinned, err, strings.Join(outcome.Differences, "\n"))
	}
}

// TestSmallChainEqualsOracle sends every request about the small chain, with all pages, filters and time ranges, and
// some about its past blocks.
func TestSmallChainEqualsOracle(t *testing.T) {
	l := readtest.SmallChain()
	a := startAPI(t, l)
	o := newest(t, l)
	o.brief = false
	a.compare(o, "")
	for _, block := range []uint64{6, 9} {
		o := At(t, l, l.Seq(), block)
		a.compare(o, o.pinned())
	}
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
			s := randomScenario(seed, func(s *scenario) {
				if a == nil {
					a = startAPI(t, s.Log)
				} else {
					a.gen.Write(s.Log)
					a.Look()
				}
				if steps++; steps%8 == 0 {
					a.compare(newest(t, s.Log), "")
				}
			})
			if !s.hasReorganisation() {
				t.Fatal("the scenario has no reorganisation")
			}
			a.compare(newest(t, s.Log), "")
			for block := uint64(10); block < s.head; block += *stride {
				o := At(t, s.Log, s.Seq(), block)
				a.compare(o, o.pinned())
			}
		})
	}
}

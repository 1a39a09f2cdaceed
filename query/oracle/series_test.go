package oracle

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/readtest"
)

// monday is the start of a week in Unix seconds.
const monday = 1_699_833_600

// scenarioWithTimes makes a scenario whose blocks are a second to days apart; some are exactly at the start of an
// hour, a day or a week, and some a second before the previous one.
func scenarioWithTimes(seed uint64, step func(*scenario)) *scenario {
	s, times := newScenario(seed), map[uint64]uint32{0: 1_700_000_000}
	s.vaults = []common.Address{readtest.VaultA, readtest.VaultB}
	grow := func() {
		s.head++
		t := times[s.head-1]
		switch s.pick(8) {
		case 0:
			t-- // although no chain should do this
		case 1, 2:
			t += 86400 * uint32(1+s.pick(3))
		case 3:
			boundary := []uint32{3600, 86400, 7 * 86400}[s.pick(3)]
			t = (t-monday)/boundary*boundary + monday + boundary
		default:
			t += uint32(1 + s.pick(5000))
		}
		times[s.head] = t
		index := uint32(0)
		for _, v := range s.vaults {
			for _, f := range s.logs(v, s.head, &index) {
				f.Time = t
				s.Add(f, 0)
			}
		}
		f := readtest.BlockRecord(s.head)
		f.Time = t
		s.Append(f)
	}
	s.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.VaultRecord(readtest.VaultB, "Beta", 2))
	for range 6 {
		for range 6 + s.pick(6) {
			grow()
			step(s)
		}
		depth := uint64(1 + s.pick(4))
		before := s.head
		gone := s.Retract(s.head - depth)
		s.head -= depth
		if s.pick(2) == 0 { // to another branch, and back
			s.oneUnit(func() {
				for range depth {
					grow()
				}
			})
			step(s)
			s.Retract(before - depth)
		}
		if s.pick(2) == 0 {
			s.Append(gone...)
			s.head = before
			for _, f := range gone {
				times[f.Block] = f.At()
			}
		} else {
			s.oneUnit(grow)
		}
		step(s)
	}
	return s
}

// TestSeries compares series of random histories with the oracle: at some states for the newest block, and at the end
// for past ones, with every interval, in full and in part.
func TestSeries(t *testing.T) {
	const writeEvery = 5 // steps, because a write takes a second of processor time
	if testing.Short() {
		t.Skip("sends one query after the other")
	}
	for seed := uint64(1); seed <= 2; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			var a *asked
			shown := map[string]int{}
			compare := func(s *scenario, pinned string, block uint64) {
				o := At(t, s.Log, s.Seq(), block)
				for _, vault := range o.vaults(t) {
					for _, interval := range []string{"hour", "day", "week"} {
						path := vault + "/series?interval=" + interval
						want := o.answer(t, path).(object)
						a.expect(path, pinned, want)
						shown["yields"] += len(want["yields"].([]any))
						from := 1_700_000_000 + int64(s.pick(40*86400))
						to := from + int64(s.pick(10*86400))
						if s.pick(4) == 0 { // exactly at a boundary
							from -= from % 86400
							to = max(from, to-to%86400-1)
						}
						a.check(o, fmt.Sprintf("%s&from=%d&to=%d", path, from, to), pinned)
						a.check(o, fmt.Sprintf("%s&from=%d", path, from), pinned)
						for _, p := range want["points"].([]any) {
							if n, _ := p.(object)["nav"].(object); n != nil && fmt.Sprint(n["updates"]) == "0" {
								shown["carried"]++
							}
						}
					}
				}
			}
			steps := 0
			s := scenarioWithTimes(seed, func(s *scenario) {
				if steps++; a == nil {
					a = startAPI(t, s.Log)
				} else if steps%writeEvery == 0 {
					a.gen.Write(s.Log)
					a.Look()
				}
				if steps%(2*writeEvery) == 0 {
					compare(s, "", 1<<62)
				}
			})
			if steps%writeEvery != 0 {
				a.gen.Write(s.Log)
				a.Look()
			}
			compare(s, "", 1<<62)
			for block := uint64(1); block < s.head; block += *stride {
				compare(s, fmt.Sprintf("asOfBlock=%d", block), block)
			}
			if !s.hasReorganisation() || shown["yields"] < 20 || shown["carried"] < 20 {
				t.Errorf("the scenario covers too little: %v", shown)
			}
		})
	}
}

// TestSeriesByHand covers cases that the oracle might get wrong as well.
func TestSeriesByHand(t *testing.T) {
	l := readtest.NewLog(readtest.ChainID)
	monday := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	nav := func(block uint64, at int64, price int64) {
		l.Append(readtest.Fact{Kind: readtest.Nav, Vault: readtest.VaultA, Price: price, Assets: 10 * price, Supply: 10,
			Block: block, Tx: readtest.Tx(byte(block)), Time: uint32(at)},
			readtest.Fact{Kind: readtest.Block, Block: block, Time: uint32(at)})
	}
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.VaultRecord(readtest.VaultB, "Beta", 1))
	nav(1, monday-1, 0) // the last second of a Sunday
	nav(2, monday, 300) // the first of a week
	nav(3, monday+2*86400, 299)
	nav(4, monday+31*86400, 200)
	a := startAPI(t, l)
	path := "/api/v1/vaults/" + readtest.VaultA.Hex() + "/series"
	get := func(query string) object { return a.Get(path + query).Data(t).(object) }

	weeks := get("?interval=week")["points"].([]any)
	var short []string
	for _, p := range weeks {
		p := p.(object)
		n := p["nav"].(object)
		short = append(short, fmt.Sprint(p["start"].(string)[:10], " ", n["open"], " ", n["high"], " ", n["low"], " ",
			n["close"], " ", n["updates"], " ", p["complete"], " ", p["totalAssets"]))
	}
	same(t, "weeks", short, []string{
		"2023-12-25 0 0 0 0 1 true 0",
		"2024-01-01 0 300 0 299 2 true 2990",
		"2024-01-08 299 299 299 299 0 true 2990",
		"2024-01-15 299 299 299 299 0 true 2990",
		"2024-01-22 299 299 299 299 0 true 2990",
		"2024-01-29 299 299 200 200 1 false 2000",
	})
	var percents []string
	for _, y := range get("")["yields"].([]any) {
		y := y.(object)
		percents = append(percents,
			fmt.Sprint(y["days"], " ", y["numerator"], "/", y["denominator"], " ", y["percent"], " ",
				y["from"].(object)["blockNumber"], " ", y["to"].(object)["blockNumber"]))
	}
	// 30 days earlier the price was that of the second day, 300, not 299.
	same(t, "yields", percents,
		[]string{"1 -99/299 -33.110368 3 4", "7 -99/299 -33.110368 3 4", "30 -100/300 -33.333334 2 4"})
	same(t, "at the first positive NAV", len(a.Get(path + "?asOfBlock=2").Data(t).(object)["yields"].([]any)), 0)

	for query, starts := range map[string]string{
		"?from=2023-12-31&to=2024-01-01": "2023-12-31T00 2024-01-01T00", "?from=2020-01-01&to=2023-12-31": "2023-12-31T00",
		"?from=2024-01-31T23:59:59Z": "2024-01-31T00 2024-02-01T00", "?from=2024-01-31T23:59:59.5Z": "2024-01-31T00 2024-02-01T00",
		"?to=2024-01-01T00:00:00Z": "2023-12-31T00 2024-01-01T00", "?to=2023-12-31T23:59:59.999Z": "2023-12-31T00",
		"?from=2030-01-01": "", "?to=2020-01-01": "",
		"?to=1960-01-01": "", "?from=1900-01-01&to=1960-01-01": "", "?interval=hour&to=0": "", "?from=9999-12-31": "",
		"?from=2024-02-01&to=9999-12-31":                                   "2024-02-01T00",
		"?interval=hour&from=2024-02-01":                                   "2024-02-01T00",
		"?interval=hour&from=2023-12-31T23:00:00Z&to=2024-01-01T00:59:59Z": "2023-12-31T23 2024-01-01T00",
	} {
		var got []string
		for _, p := range get(query)["points"].([]any) {
			got = append(got, p.(object)["start"].(string)[:13])
		}
		same(t, query, strings.Join(got, " "), starts)
	}
	for interval, count := range map[string]int{"hour": 31*24 + 2, "day": 33} {
		same(t, interval, len(get("?interval=" + interval)["points"].([]any)), count)
	}
	none := a.Get("/api/v1/vaults/" + readtest.VaultB.Hex() + "/series").Data(t).(object)
	same(t, "a vault without events", []any{none["points"], none["yields"]}, []any{[]any{}, []any{}})

	a.Get(path+"?interval=month&from=x").Failed(t, 400, "INVALID_PARAMETER")
	a.Get(path+"?from=2024-01-02&to=2024-01-01").Failed(t, 400, "INVALID_PARAMETER")
	a.Get("/api/v1/vaults/0x12/series").Failed(t, 400, "INVALID_ADDRESS")
	a.Get("/api/v1/vaults/"+readtest.Unknown.Hex()+"/series").Failed(t, 404, "NOT_FOUND")
	nav(5, monday+100*86400, 1)
	a.gen.Write(l)
	a.Look()
	same(t, "details", a.Get(path+"?interval=hour").Failed(t, 400, "INVALID_PARAMETER"), []any{object{"field": "from",
		"reason": "would give 2402 points, and at most 2000 are given: choose a later from, an earlier to, or a longer " +
			"interval"}})
	same(t, "as many as there may be",
		len(get("?interval=hour&from=" + fmt.Sprint(monday+100*86400-1999*3600))["points"].([]any)), 2000)
	a.Get(path+"?interval=hour&from="+fmt.Sprint(monday+100*86400-2000*3600)).Failed(t, 400, "INVALID_PARAMETER")
}

// TestSeriesWhereTimeGoesBack: the last block has a time in the day before that of the previous block. Its logs count
// for that day, and its NAV is in force from then on.
func TestSeriesWhereTimeGoesBack(t *testing.T) {
	l := readtest.NewLog(readtest.ChainID)
	midnight := uint32(time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC).Unix())
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1))
	for i, at := range []uint32{midnight, midnight - 1} {
		block := uint64(i + 1)
		l.Append(readtest.Fact{Kind: readtest.Nav, Vault: readtest.VaultA, Price: int64(100 * block), Block: block,
			Tx: readtest.Tx(byte(block)), Time: at},
			readtest.Fact{Kind: readtest.Block, Block: block, Time: at})
	}
	a := startAPI(t, l)
	points := a.Get("/api/v1/vaults/" + readtest.VaultA.Hex() + "/series").Data(t).(object)["points"].([]any)
	same(t, "points", []any{points[0].(object)["nav"], points[1].(object)["nav"]}, []any{
		object{"open": "200", "high": "200", "low": "200", "close": "200", "updates": 1},
		object{"open": "200", "high": "200", "low": "100", "close": "200", "updates": 1}})
}

// TestSeriesWithVoidDeposits: a deposit that becomes void is subtracted in the bucket in which it does, also if there
// is another deposit in that bucket.
func TestSeriesWithVoidDeposits(t *testing.T) {
	l := readtest.NewLog(readtest.ChainID)
	monday := uint32(time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC).Unix())
	l.Append(readtest.PresetRecord(t, readtest.VaultA, "Alpha", 1, "lagoon-v0.6"))
	fact := func(kind readtest.Kind, group uint64, assets int64, day uint32) readtest.Fact {
		return readtest.Fact{Kind: kind, Vault: readtest.VaultA, User: readtest.Alice, Other: readtest.Alice,
			ID: group, Group: group, Assets: assets, Block: uint64(day), Index: uint32(group), Tx: readtest.Tx(byte(day)),
			Time: monday + (day-1)*86400}
	}
	for day, facts := range [][]readtest.Fact{{fact(readtest.Deposit, 1, 5, 1)},
		{fact(readtest.Void, 1, 0, 2), fact(readtest.Deposit, 2, 7, 2)}, {fact(readtest.Void, 2, 0, 3)}} {
		l.Append(append(facts, readtest.Fact{Kind: readtest.Block, Block: uint64(day + 1),
			Time: monday + uint32(day)*86400})...)
	}
	a := startAPI(t, l)
	var flows []any
	for _, p := range a.Get("/api/v1/vaults/" + readtest.VaultA.Hex() + "/series").Data(t).(object)["points"].([]any) {
		flows = append(flows, p.(object)["deposits"])
	}
	same(t, "deposits", flows, []any{
		object{"count": 1, "assets": "5"}, object{"count": 0, "assets": "2"}, object{"count": -1, "assets": "-7"}})
}

// TestSeriesIsTheTotals: the flows of all vaults add up to the totals of all users, even if there are logs that a
// vault would never emit.
func TestSeriesIsTheTotals(t *testing.T) {
	if testing.Short() {
		t.Skip("sends one query after the other")
	}
	s := newScenario(8)
	crowd(s, func() {})
	g := readtest.New(t, enginetest.ClickHouse(t))
	g.Write(s.Log)
	a := &asked{readtest.Serve(t, g, routes...), t, g, s.Log}
	sums := map[string]*big.Int{}
	add := func(name, amount any) {
		n, _ := new(big.Int).SetString(amount.(string), 10)
		if sums[name.(string)] == nil {
			sums[name.(string)] = new(big.Int)
		}
		sums[name.(string)].Add(sums[name.(string)], n)
	}
	for _, vault := range newest(t, s.Log).vaults(t) {
		for _, p := range a.Get(vault + "/series").Data(t).(object)["points"].([]any) {
			add("deposits", p.(object)["deposits"].(object)["assets"])
			add("claimed", p.(object)["claimed"].(object)["assets"])
		}
	}
	users := a.Get("/api/v1/users?pageSize=100").JSON(t)
	same(t, "users", users["meta"].(object)["hasNextPage"], false)
	for _, u := range users["data"].([]any) {
		add("totalDeposited", u.(object)["totalDeposited"])
		add("totalWithdrawn", u.(object)["totalWithdrawn"])
	}
	same(t, "deposits", sums["deposits"], sums["totalDeposited"])
	if sums["claimed"].Cmp(sums["totalWithdrawn"]) < 0 { // claims by addresses that are not users are in no list
		t.Errorf("%s was claimed, and %s by users", sums["claimed"], sums["totalWithdrawn"])
	}
}

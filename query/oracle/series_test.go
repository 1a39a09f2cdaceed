package oracle

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/readtest"
)

// span is a time range in Unix seconds, both ends included.
type span struct{ from, to int64 }

func everything() span { return span{0, 1 << 40} }

// began returns the start of the calendar interval that contains a time.
func began(interval string, seconds int64) time.Time {
	t := time.Unix(seconds, 0).UTC()
	day := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	switch interval {
	case "hour":
		return day.Add(time.Duration(t.Hour()) * time.Hour)
	case "week":
		for day.Weekday() != time.Monday {
			day = day.AddDate(0, 0, -1)
		}
	}
	return day
}

func ended(interval string, start time.Time) time.Time {
	switch interval {
	case "hour":
		return start.Add(time.Hour)
	case "week":
		return start.AddDate(0, 0, 7)
	}
	return start.AddDate(0, 0, 1)
}

// counted returns a vault's facts that make up a series, and for each user the first one.
func (o *Oracle) counted(v vault) (facts []readtest.Entry, first map[common.Address]readtest.Entry) {
	first = map[common.Address]readtest.Entry{}
	for _, k := range []readtest.Kind{readtest.Nav, readtest.Deposit, readtest.Claim} {
		facts = append(facts, o.of(k, inVault(v.address))...)
	}
	came := append(o.of(readtest.Deposit, inVault(v.address)), o.of(readtest.Request, inVault(v.address))...)
	slices.SortFunc(came, inChain)
	facts = append(facts, o.firstRequests(inVault(v.address))...)
	slices.SortFunc(facts, inChain)
	for _, e := range came {
		if _, known := first[e.User]; !known && (e.Kind == readtest.Deposit || e.Kind == readtest.Request) {
			first[e.User] = e
		}
	}
	return facts, first
}

// inForce returns the last NAV in chain order whose block time is before a moment.
func (o *Oracle) inForce(v vault, moment int64) *readtest.Entry {
	for _, n := range slices.Backward(o.of(readtest.Nav, inVault(v.address))) {
		if int64(n.At()) < moment {
			return &n
		}
	}
	return nil
}

func (o *Oracle) series(v vault, interval string, s span) object {
	return object{"vaultAddress": v.address.Hex(), "vaultName": v.name, "interval": interval, "points": o.points(v, interval, s),
		"yields": o.yields(v), "sinceFirst": o.sinceFirst(v)}
}

func (o *Oracle) points(v vault, interval string, s span) []any {
	facts, first := o.counted(v)
	from := began(interval, s.from)
	begins, last := int64(1<<40), int64(o.now)
	for _, e := range facts {
		t := int64(e.At())
		switch early := t < from.Unix(); {
		case early && (e.Kind == readtest.Nav || first[e.User].Seq == e.Seq):
			begins = min(begins, from.Unix())
		case !early && t < ended(interval, began(interval, s.to)).Unix():
			begins, last = min(begins, t), max(last, t)
		}
		if first[e.User].Seq == e.Seq && !(t < from.Unix()) { // to does not limit users
			begins = min(begins, t)
		}
	}
	out := []any{}
	for start := later(from, began(interval, begins)); start.Unix() <= min(last, s.to); start = ended(interval, start) {
		out = append(out, o.point(v, facts, first, start, ended(interval, start)))
	}
	return out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (o *Oracle) point(v vault, facts []readtest.Entry, first map[common.Address]readtest.Entry, start, end time.Time) object {
	type flow struct {
		count  int
		assets int64
	}
	var nav any
	var navs []int64
	flows, users, fresh := map[readtest.Kind]flow{}, 0, 0
	for _, e := range facts {
		t := int64(e.At())
		if t < end.Unix() && first[e.User].Seq == e.Seq {
			users++
			if t >= start.Unix() {
				fresh++
			}
		}
		if t < start.Unix() || t >= end.Unix() {
			continue
		}
		if e.Kind == readtest.Nav {
			navs = append(navs, e.Price)
		} else {
			f := flows[e.Kind]
			flows[e.Kind] = flow{f.count + 1, f.assets + e.Assets}
		}
	}
	written := func(k readtest.Kind) object { return object{"count": flows[k].count, "assets": dec(flows[k].assets)} }
	out := object{"start": iso(uint32(start.Unix())), "end": iso(uint32(end.Unix())), "complete": end.Unix() <= int64(o.now),
		"totalAssets": nil, "totalSupply": nil, "deposits": written(readtest.Deposit), "requested": written(readtest.Request), "claimed": written(readtest.Claim),
		"newUsers": fresh, "users": users}
	updates := len(navs)
	if before := o.inForce(v, start.Unix()); before != nil {
		navs = append([]int64{before.Price}, navs...)
	}
	if closing := o.inForce(v, end.Unix()); closing != nil {
		nav = object{"open": dec(navs[0]), "high": dec(slices.Max(navs)), "low": dec(slices.Min(navs)), "close": dec(closing.Price), "updates": updates}
		out["totalAssets"], out["totalSupply"] = dec(closing.Assets), dec(closing.Supply)
	}
	out["nav"] = nav
	return out
}

func (o *Oracle) yields(v vault) []any {
	out, navs := []any{}, o.navs(v) // newest first
	for _, days := range []int64{1, 7, 30, 90} {
		from := o.inForce(v, int64(o.now)-days*86400+1)
		to := o.inForce(v, 1<<40)
		if from == nil || from.Price == 0 {
			continue
		}
		at := slices.IndexFunc(navs, func(n any) bool { return n.(object)["id"] == id(*from) })
		out = append(out, yieldOf(days*86400, navs[at], navs[0], from.Price, to.Price))
	}
	return out
}

// sinceFirst returns the yield since the first NAV on the chain.
func (o *Oracle) sinceFirst(v vault) any {
	navs, updates := o.navs(v), o.of(readtest.Nav, inVault(v.address))
	if len(updates) == 0 || updates[0].Price == 0 {
		return nil
	}
	first, last := updates[0], updates[len(updates)-1]
	return yieldOf(max(0, int64(o.now)-int64(first.At())), navs[len(navs)-1], navs[0], first.Price, last.Price)
}

func yieldOf(seconds int64, from, to any, before, after int64) object {
	out := object{"days": seconds / 86400, "from": from, "to": to, "numerator": dec(after - before), "denominator": dec(before),
		"percent": hundredths(after-before, before), "annualPercent": nil}
	if seconds >= 86400 {
		gain := new(big.Rat).Mul(big.NewRat(after-before, before), big.NewRat(365*86400, seconds))
		out["annualPercent"] = inHundredths(gain)
	}
	return out
}

// hundredths computes a percentage the slow way: the largest multiple of a millionth of a percent that is at most the
// fraction.
func hundredths(numerator, denominator int64) string {
	return inHundredths(big.NewRat(numerator, denominator))
}

func inHundredths(fraction *big.Rat) string {
	exact := new(big.Rat).Mul(fraction, big.NewRat(100_000_000, 1))
	n := new(big.Int).Quo(exact.Num(), exact.Denom())
	for new(big.Rat).SetInt(n).Cmp(exact) > 0 {
		n.Sub(n, big.NewInt(1))
	}
	return new(big.Rat).SetFrac(n, big.NewInt(1_000_000)).FloatString(6)
}

// tellTimes makes a story whose blocks are a second to days apart; some are exactly at the start of an hour, a day or
// a week, and some a second before the previous one.
func tellTimes(seed uint64, step func(*story)) *story {
	s, times := newStory(seed), map[uint64]uint32{0: 1_700_000_000}
	s.vaults = []common.Address{readtest.VaultA, readtest.VaultB}
	grow := func() {
		s.head++
		t := times[s.head-1]
		switch s.pick(8) {
		case 0:
			t-- // which no chain should do
		case 1, 2:
			t += 86400 * uint32(1+s.pick(3))
		case 3:
			t = uint32(ended([]string{"hour", "day", "week"}[s.pick(3)], began([]string{"hour", "day", "week"}[s.pick(3)], int64(t))).Unix())
			t = max(t, times[s.head-1])
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
			compare := func(s *story, pinned string, block uint64) {
				o := At(s.Log, s.Seq(), block)
				for _, v := range o.vaults {
					for _, interval := range []string{"hour", "day", "week"} {
						path := "/api/v1/vaults/" + v.address.Hex() + "/series?interval=" + interval
						want := o.series(v, interval, everything())
						a.check(path, pinned, want)
						shown["yields"] += len(want["yields"].([]any))
						from := 1_700_000_000 + int64(s.pick(40*86400))
						part := span{from, from + int64(s.pick(10*86400))}
						if s.pick(4) == 0 { // exactly at a boundary
							part.from = began("day", part.from).Unix()
							part.to = max(part.from, began("day", part.to).Unix()-1)
						}
						a.check(fmt.Sprintf("%s&from=%d&to=%d", path, part.from, part.to), pinned, o.series(v, interval, part))
						a.check(fmt.Sprintf("%s&from=%d", path, part.from), pinned, o.series(v, interval, span{part.from, 1 << 40}))
						for _, p := range want["points"].([]any) {
							if n, _ := p.(object)["nav"].(object); n != nil && n["updates"] == 0 {
								shown["carried"]++
							}
						}
					}
				}
			}
			steps := 0
			s := tellTimes(seed, func(s *story) {
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
				t.Errorf("the story shows too little: %v", shown)
			}
		})
	}
}

// TestSeriesByHand covers cases that the oracle might get wrong as well.
func TestSeriesByHand(t *testing.T) {
	l := readtest.NewLog(readtest.ChainID)
	monday := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	nav := func(block uint64, at int64, price int64) {
		l.Append(readtest.Fact{Kind: readtest.Nav, Vault: readtest.VaultA, Price: price, Assets: 10 * price, Supply: 10, Block: block, Tx: readtest.Tx(byte(block)), Time: uint32(at)},
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
		short = append(short, fmt.Sprint(p["start"].(string)[:10], " ", n["open"], " ", n["high"], " ", n["low"], " ", n["close"], " ", n["updates"], " ", p["complete"], " ", p["totalAssets"]))
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
		percents = append(percents, fmt.Sprint(y["days"], " ", y["numerator"], "/", y["denominator"], " ", y["percent"], " ", y["from"].(object)["blockNumber"], " ", y["to"].(object)["blockNumber"]))
	}
	// 30 days earlier the price was that of the second day, 300, not 299.
	same(t, "yields", percents, []string{"1 -99/299 -33.110368 3 4", "7 -99/299 -33.110368 3 4", "30 -100/300 -33.333334 2 4"})
	same(t, "at its first NAV of more than zero", len(a.Get(path + "?asOfBlock=2").Data(t).(object)["yields"].([]any)), 0)

	for query, starts := range map[string]string{
		"?from=2023-12-31&to=2024-01-01": "2023-12-31T00 2024-01-01T00", "?from=2020-01-01&to=2023-12-31": "2023-12-31T00", "?from=2024-01-31T23:59:59Z": "2024-01-31T00 2024-02-01T00",
		"?to=2024-01-01T00:00:00Z": "2023-12-31T00 2024-01-01T00", "?to=2023-12-31T23:59:59.999Z": "2023-12-31T00", "?from=2030-01-01": "", "?to=2020-01-01": "",
		"?to=1960-01-01": "", "?from=1900-01-01&to=1960-01-01": "", "?interval=hour&to=0": "", "?from=9999-12-31": "", "?from=2024-02-01&to=9999-12-31": "2024-02-01T00",
		"?interval=hour&from=2024-02-01": "2024-02-01T00", "?interval=hour&from=2023-12-31T23:00:00Z&to=2024-01-01T00:59:59Z": "2023-12-31T23 2024-01-01T00",
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
	same(t, "a vault without anything", []any{none["points"], none["yields"]}, []any{[]any{}, []any{}})

	a.Get(path+"?interval=month&from=x").Failed(t, 400, "INVALID_PARAMETER")
	a.Get(path+"?from=2024-01-02&to=2024-01-01").Failed(t, 400, "INVALID_PARAMETER")
	a.Get("/api/v1/vaults/0x12/series").Failed(t, 400, "INVALID_ADDRESS")
	a.Get("/api/v1/vaults/"+readtest.Nobody.Hex()+"/series").Failed(t, 404, "NOT_FOUND")
	nav(5, monday+100*86400, 1)
	a.gen.Write(l)
	a.Look()
	same(t, "details", a.Get(path+"?interval=hour").Failed(t, 400, "INVALID_PARAMETER"), []any{object{"field": "from",
		"reason": "would give 2402 points, and at most 2000 are given: choose a later from, an earlier to, or a longer interval"}})
	same(t, "as many as there may be", len(get("?interval=hour&from=" + fmt.Sprint(monday+100*86400-1999*3600))["points"].([]any)), 2000)
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
		l.Append(readtest.Fact{Kind: readtest.Nav, Vault: readtest.VaultA, Price: int64(100 * block), Block: block, Tx: readtest.Tx(byte(block)), Time: at},
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
		l.Append(append(facts, readtest.Fact{Kind: readtest.Block, Block: uint64(day + 1), Time: monday + uint32(day)*86400})...)
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
	s := newStory(8)
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
	for _, v := range At(s.Log, s.Seq(), 1<<62).vaults {
		for _, p := range a.Get("/api/v1/vaults/" + v.address.Hex() + "/series").Data(t).(object)["points"].([]any) {
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

package oracle

import (
	"math/big"
	"slices"
	"time"
)

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

// A flow is one deposit, request or claim in a series.
type flow struct {
	field  string
	at     int64
	assets *big.Int
}

// flows returns the deposits, first requests and claims of a vault.
func (s *State) flows(v *vaultState) (out []flow) {
	add := func(f Fact, field string, assets *big.Int) {
		if f.Vault == v.address {
			out = append(out, flow{field, int64(f.Time), assets})
		}
	}
	for _, d := range s.deposits {
		add(d.Fact, "deposits", d.Assets)
	}
	for _, r := range s.requests {
		add(r.Fact, "requested", r.AssetsEstimate)
	}
	for _, c := range s.claims {
		add(c.Fact, "claimed", c.Assets)
	}
	return out
}

// navsOf returns the NAVs of a vault in chain order.
func (s *State) navsOf(v *vaultState) []navState {
	return filter(s.navs, func(n navState) bool { return n.Vault == v.address })
}

// inForce returns the last NAV in chain order whose block time is before a moment.
func inForce(navs []navState, moment int64) *navState {
	for _, n := range slices.Backward(navs) {
		if int64(n.Time) < moment {
			return &n
		}
	}
	return nil
}

// never is a moment after every block.
const never = 1 << 40

func (s *State) seriesJSON(v *vaultState, interval string, in span) Object {
	return Object{"vaultAddress": v.address.Hex(), "vaultName": v.name, "interval": interval,
		"points": s.points(v, interval, in), "yields": s.yields(v), "sinceFirst": s.sinceFirst(v)}
}

// points returns the intervals from the first one that shows something to that of the newest block, or of the last
// thing to show, because the times of blocks may go back.
func (s *State) points(v *vaultState, interval string, in span) []any {
	from, to := began(interval, in.fromMs/1000), int64(never)
	if in.to != "" {
		to = in.toMs / 1000
	}
	begins, last := int64(never), int64(s.now)
	show := func(at int64, carried bool) {
		switch early := at < from.Unix(); {
		case early && carried:
			begins = min(begins, from.Unix())
		case !early && at < ended(interval, began(interval, to)).Unix():
			begins, last = min(begins, at), max(last, at)
		}
	}
	navs, flows := s.navsOf(v), s.flows(v)
	for _, n := range navs {
		show(int64(n.Time), true)
	}
	for _, f := range flows {
		show(f.at, false)
	}
	for _, u := range v.users { // whom to does not limit
		begins = min(begins, max(from.Unix(), int64(u.firstSeen)))
	}
	start := began(interval, begins)
	if start.Before(from) {
		start = from
	}
	out := []any{}
	for ; start.Unix() <= min(last, to); start = ended(interval, start) {
		out = append(out, s.point(v, navs, flows, start, ended(interval, start)))
	}
	return out
}

func (s *State) point(v *vaultState, navs []navState, flows []flow, start, end time.Time) Object {
	within := func(at int64) bool { return start.Unix() <= at && at < end.Unix() }
	users, fresh := 0, 0
	for _, u := range v.users {
		if int64(u.firstSeen) < end.Unix() {
			users++
		}
		if within(int64(u.firstSeen)) {
			fresh++
		}
	}
	out := Object{"start": instant(uint64(start.Unix())), "end": instant(uint64(end.Unix())),
		"complete": end.Unix() <= int64(s.now), "nav": nil, "totalAssets": nil, "totalSupply": nil,
		"newUsers": integer(fresh), "users": integer(users)}
	for _, field := range []string{"deposits", "requested", "claimed"} {
		of := filter(flows, func(f flow) bool { return f.field == field && within(f.at) })
		out[field] = Object{"count": integer(len(of)), "assets": sum(of, func(f flow) *big.Int { return f.assets }).String()}
	}
	updates := filter(navs, func(n navState) bool { return within(int64(n.Time)) })
	shown := updates
	if before := inForce(navs, start.Unix()); before != nil {
		shown = append([]navState{*before}, updates...)
	}
	if closing := inForce(navs, end.Unix()); closing != nil {
		byPrice := func(a, b navState) int { return a.NavPerShare.Cmp(b.NavPerShare) }
		out["nav"] = Object{"open": shown[0].NavPerShare.String(),
			"high": slices.MaxFunc(shown, byPrice).NavPerShare.String(),
			"low":  slices.MinFunc(shown, byPrice).NavPerShare.String(), "close": closing.NavPerShare.String(),
			"updates": integer(len(updates))}
		out["totalAssets"], out["totalSupply"] = closing.TotalAssets.String(), closing.TotalSupply.String()
	}
	return out
}

const day = 86400

// yields returns the yields from the NAVs that were in force some days before the newest block.
func (s *State) yields(v *vaultState) []any {
	out, navs := []any{}, s.navsOf(v)
	for _, days := range []int64{1, 7, 30, 90} {
		if from := inForce(navs, int64(s.now)-days*day+1); from != nil && from.NavPerShare.Sign() != 0 {
			out = append(out, s.yieldJSON(days*day, *from, navs[len(navs)-1]))
		}
	}
	return out
}

// sinceFirst returns the yield since the first NAV on the chain.
func (s *State) sinceFirst(v *vaultState) any {
	navs := s.navsOf(v)
	if len(navs) == 0 || navs[0].NavPerShare.Sign() == 0 {
		return nil
	}
	return s.yieldJSON(max(0, int64(s.now)-int64(navs[0].Time)), navs[0], navs[len(navs)-1])
}

func (s *State) yieldJSON(seconds int64, from, to navState) Object {
	gain := new(big.Int).Sub(to.NavPerShare, from.NavPerShare)
	fraction := new(big.Rat).SetFrac(gain, from.NavPerShare)
	out := Object{"days": integer(uint64(seconds / day)), "from": s.navJSON(from), "to": s.navJSON(to),
		"numerator": gain.String(), "denominator": from.NavPerShare.String(), "percent": percent(fraction),
		"annualPercent": nil}
	if seconds >= day {
		out["annualPercent"] = percent(new(big.Rat).Mul(fraction, big.NewRat(365*day, seconds)))
	}
	return out
}

// percent computes a percentage the slow way: the largest multiple of a millionth of a percent that is at most the
// fraction.
func percent(fraction *big.Rat) string {
	exact := new(big.Rat).Mul(fraction, big.NewRat(100_000_000, 1))
	n := new(big.Int).Quo(exact.Num(), exact.Denom())
	for new(big.Rat).SetInt(n).Cmp(exact) > 0 {
		n.Sub(n, big.NewInt(1))
	}
	return new(big.Rat).SetFrac(n, big.NewInt(1_000_000)).FloatString(6)
}

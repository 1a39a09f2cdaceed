package vaults

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
)

// A series shows the value of a vault, the flows through it and its yields, by hour, day or week.
//
// A log belongs to the bucket that contains its block's time; a bucket includes its start. A NAV is in force until
// the next one: a bucket opens with the closing NAV of the previous one, and a bucket without an update has that NAV
// throughout. Flows are differences of the vault's running totals at the ends of the buckets: a deposit that becomes
// void is subtracted in the bucket in which it does.

const maxPoints = 2000

type seriesJSON struct {
	VaultAddress string      `json:"vaultAddress"`
	VaultName    string      `json:"vaultName"`
	Interval     string      `json:"interval"`
	Points       []pointJSON `json:"points"`
	Yields       []yieldJSON `json:"yields"`
	SinceFirst   *yieldJSON  `json:"sinceFirst"`
}

type pointJSON struct {
	Start       string      `json:"start" file:"time"`
	End         string      `json:"end" file:"time"`
	Complete    bool        `json:"complete"`
	Nav         *candleJSON `json:"nav"`
	TotalAssets *string     `json:"totalAssets"`
	TotalSupply *string     `json:"totalSupply"`
	Deposits    flowJSON    `json:"deposits"`
	Requested   flowJSON    `json:"requested"`
	Claimed     flowJSON    `json:"claimed"`
	NewUsers    int64       `json:"newUsers"`
	Users       int64       `json:"users"`
}

type candleJSON struct {
	Open    string `json:"open"`
	High    string `json:"high"`
	Low     string `json:"low"`
	Close   string `json:"close"`
	Updates int64  `json:"updates"`
}

type flowJSON struct {
	Count  int64  `json:"count"`
	Assets string `json:"assets"`
}

// Series returns the series of a vault, oldest first.
func Series(r *serve.Request) (*serve.Answer, error) {
	address := r.PathAddress()
	from, to := r.Params.Times()
	interval := r.Params.OneOf("interval", "day", "hour", "day", "week")
	return r.WithVault(address, func(ctx context.Context, p *ask.Pin, v *state.Vault) (*serve.Answer, error) {
		out := seriesJSON{VaultAddress: v.Written, VaultName: v.Name, Interval: interval}
		now, err := p.Now(ctx)
		if err != nil {
			return nil, err
		}
		b := intervals[interval]
		p.Lapses(uint64(b.start(b.of(int64(now)) + 1))) // when the current bucket ends and the next one begins
		asking := []func() error{func() (err error) {
			out.Points, err = points(ctx, p, v, b, b.within(from, to), int64(now))
			return
		}}
		if !r.AsFile() { // the columns of a file are those of points
			asking = append(asking,
				func() (err error) { out.Yields, out.SinceFirst, err = gains(ctx, p, v, int64(now)); return })
		}
		if err := ask.Together(asking...); err != nil {
			return nil, err
		}
		if r.AsFile() {
			return serve.Short(ctx, r, p, out.Points)
		}
		return &serve.Answer{Data: out}, nil
	})
}

// buckets divides time into parts of one width, in seconds. They are numbered, and bucket 0 began shift seconds
// before 1970.
type buckets struct{ width, shift int64 }

const day = 24 * 60 * 60

// intervals are the buckets by name. 1970 began on a Thursday, and weeks begin on Mondays.
var intervals = map[string]buckets{"hour": {day / 24, 0}, "day": {day, 0}, "week": {7 * day, 3 * day}}

// of returns the number of the bucket that contains a time, in Unix seconds; times before 1970 are all in the first.
func (b buckets) of(seconds int64) int64 { return (max(0, seconds) + b.shift) / b.width }

// start returns when a bucket begins.
func (b buckets) start(number int64) int64 { return number*b.width - b.shift }

// extent is the range of buckets that a series may have, both ends included.
type extent struct{ first, last int64 }

// within returns the buckets that overlap a time range; nil is no limit.
func (b buckets) within(from, to *time.Time) extent {
	e := extent{0, math.MaxInt64}
	if from != nil {
		e.first = b.of(from.Unix())
	}
	switch {
	case to == nil:
	case to.Unix() < 0:
		e.last = -1
	default:
		e.last = b.of(to.Unix())
	}
	return e
}

// until returns when the last of the buckets ends.
func (e extent) until(b buckets) int64 {
	if e.last == math.MaxInt64 {
		return math.MaxInt64
	}
	return b.start(e.last + 1)
}

// ofSeries selects a vault, in buckets.
type ofSeries struct {
	Vault common.Address `ask:"vault" reads:"vault_events.valuation,totals"`
	Width int64          `ask:"width"`
	Shift int64          `ask:"shift"`
	Until int64          `ask:"until"`
}

type navsOfSeries struct {
	ofSeries
	First int64 `ask:"first"`
}

type updates struct {
	ask.Mark
	Bucket    int64    `ch:"bucket"`
	Count     int64    `ch:"updates"`
	Open      *big.Int `ch:"opened"`
	High      *big.Int `ch:"high"`
	Low       *big.Int `ch:"low"`
	Close     *big.Int `ch:"closed"`
	Assets    *big.Int `ch:"total_assets"`
	Supply    *big.Int `ch:"total_supply"`
	LastBlock uint64   `ch:"last_block"`
	LastLog   uint32   `ch:"last_log"`
}

// bucketEnd is the totals of a vault from a block onwards, where the bucket after it begins.
type bucketEnd struct {
	ask.Mark
	Bucket    int64  `ch:"bucket"`
	Block     uint64 `ch:"from_block"`
	Deposits  uint64 `ch:"deposit_count"`
	Deposited string `ch:"deposit_sum"`
	Requests  uint64 `ch:"request_count"`
	Estimated string `ch:"estimate_sum"`
	Claims    uint64 `ch:"claim_count"`
	Claimed   string `ch:"claim_sum"`
	Users     uint64 `ch:"user_count"`
}

var (
	seriesNavs   = ask.New[navsOfSeries, updates](state.SQL(files, "series_navs"))
	seriesTotals = ask.New[ofSeries, bucketEnd](state.SQL(files, "series_totals"))
)

type flows struct {
	deposits, requested, claimed flow
	users                        int64
}

// flow has a number of logs, and the sum of their assets; nil: 0.
type flow struct {
	count  int64
	assets *big.Int
}

// found is the result of the queries, by bucket.
type found struct {
	flows map[int64]flows
	navs  map[int64]updates
}

// points reads some buckets, and makes points of them.
func points(
	ctx context.Context, p *ask.Pin, v *state.Vault, b buckets, e extent, now int64,
) ([]pointJSON, error) {
	f, err := find(ctx, p, v.Address, b, e)
	if err != nil {
		return nil, err
	}
	e, any := f.narrowed(e, b.of(now))
	if !any {
		return []pointJSON{}, nil
	}
	if n := e.last - e.first + 1; n > maxPoints {
		return nil, serve.InvalidParameter(serve.Fault{Field: "from",
			Reason: fmt.Sprintf("would give %d points, and at most %d are given: choose a later from, an earlier to, or a "+
				"longer interval", n, maxPoints)})
	}
	return f.points(v, b, e, now), nil
}

// find reads the flows and NAVs of the buckets up to the last one, and the NAV in force before the first.
func find(ctx context.Context, p *ask.Pin, vault common.Address, b buckets, e extent) (f found, err error) {
	args := ofSeries{Vault: vault, Width: b.width, Shift: b.shift, Until: e.until(b)}
	var navs []updates
	var ends []bucketEnd
	err = ask.Together(
		func() (err error) { navs, err = seriesNavs.Rows(ctx, p, navsOfSeries{args, e.first}); return },
		func() (err error) { ends, err = seriesTotals.Rows(ctx, p, args); return },
	)
	f.navs = make(map[int64]updates, len(navs))
	for _, u := range navs {
		f.navs[u.Bucket] = u
	}
	f.flows = differences(ends, e.last)
	return f, err
}

// differences returns the flows of the buckets up to the last one; buckets whose totals do not change are missing. A
// bucket can end several times if a block's time is earlier than that of the previous block.
func differences(ends []bucketEnd, last int64) map[int64]flows {
	slices.SortFunc(ends, func(a, b bucketEnd) int { return cmp.Compare(a.Block, b.Block) })
	out := make(map[int64]flows, len(ends))
	before := bucketEnd{Deposited: "0", Estimated: "0", Claimed: "0"}
	for _, end := range ends {
		f := flows{
			flow{int64(end.Deposits - before.Deposits), minus(end.Deposited, before.Deposited)},
			flow{int64(end.Requests - before.Requests), minus(end.Estimated, before.Estimated)},
			flow{int64(end.Claims - before.Claims), minus(end.Claimed, before.Claimed)},
			int64(end.Users - before.Users),
		}
		if f.some() && end.Bucket <= last {
			was := out[end.Bucket]
			out[end.Bucket] = flows{was.deposits.plus(f.deposits), was.requested.plus(f.requested),
				was.claimed.plus(f.claimed), was.users + f.users}
		}
		before = end
	}
	return out
}

// some reports whether anything changes. A void deposit and a new one cancel out in the number of deposits.
func (f *flows) some() bool {
	return f.users != 0 || slices.ContainsFunc([]flow{f.deposits, f.requested, f.claimed},
		func(one flow) bool { return one.count != 0 || one.assets.Sign() != 0 })
}

func (f flow) plus(other flow) flow {
	if f.assets != nil {
		other.assets.Add(other.assets, f.assets)
	}
	return flow{f.count + other.count, other.assets}
}

func (f flow) json() flowJSON {
	if f.assets == nil {
		return flowJSON{Assets: "0"}
	}
	return flowJSON{f.count, f.assets.String()}
}

func minus(a, b string) *big.Int { return new(big.Int).Sub(ask.Number(a), ask.Number(b)) }

// narrowed removes the buckets before the vault's first data, and those after the current time of the chain; it
// returns false if none remain.
func (f *found) narrowed(e extent, now int64) (extent, bool) {
	lowest, highest := int64(math.MaxInt64), now
	see := func(bucket int64) { lowest, highest = min(lowest, bucket), max(highest, bucket) }
	for bucket := range f.flows {
		see(bucket)
	}
	for bucket := range f.navs {
		see(bucket)
	}
	e.first, e.last = max(e.first, lowest), min(e.last, highest)
	return e, lowest != math.MaxInt64 && e.first <= e.last
}

// points returns a point for each bucket.
func (f *found) points(v *state.Vault, b buckets, e extent, now int64) []pointJSON {
	var inForce *updates
	total := int64(0)
	for bucket, flow := range f.flows {
		if bucket < e.first {
			total += flow.users
		}
	}
	if before, ok := f.navs[e.first-1]; ok {
		inForce = &before
	}
	out := make([]pointJSON, 0, e.last-e.first+1)
	for bucket := e.first; bucket <= e.last; bucket++ {
		end := b.start(bucket + 1)
		point := pointJSON{Start: serve.Millis(time.Unix(b.start(bucket), 0)), End: serve.Millis(time.Unix(end, 0)),
			Complete: end <= now}
		in := f.flows[bucket]
		point.Deposits, point.Requested, point.Claimed = in.deposits.json(), in.requested.json(), in.claimed.json()
		point.NewUsers = in.users
		total += point.NewUsers
		point.Users = total
		point.Nav, inForce = f.nav(bucket, inForce)
		if inForce != nil {
			point.TotalAssets, point.TotalSupply = worth(v, inForce.LastBlock, inForce.LastLog, inForce.Assets.String(),
				inForce.Supply.String())
		}
		out = append(out, point)
	}
	return out
}

// nav returns the NAVs of a bucket that begins with before in force, and the NAV in force at its end; nil means none.
func (f *found) nav(bucket int64, before *updates) (*candleJSON, *updates) {
	u, updated := f.navs[bucket]
	switch {
	case !updated && before == nil:
		return nil, nil
	case !updated:
		price := before.Close.String()
		return &candleJSON{Open: price, High: price, Low: price, Close: price}, before
	}
	after, open, high, low := &u, u.Open, u.High, u.Low
	if before != nil {
		open = before.Close
		if open.Cmp(high) > 0 {
			high = open
		}
		if open.Cmp(low) < 0 {
			low = open
		}
		if before.laterThan(after) {
			after = before
		}
	}
	return &candleJSON{Open: open.String(), High: high.String(), Low: low.String(), Close: after.Close.String(),
		Updates: u.Count}, after
}

// laterThan reports whether the last of the updates comes after that of the others in chain order.
func (u *updates) laterThan(other *updates) bool {
	return u.LastBlock > other.LastBlock || u.LastBlock == other.LastBlock && u.LastLog > other.LastLog
}

// Package series answers what a vault was worth and what flowed through it, hour by hour,
// day by day or week by week, and what it yielded.
//
//	users ───────┐
//	navs ────────┤ by bucket, whole     ┌─▶ points
//	deposits ────┤ intervals of UTC ────┤
//	withdrawals ─┘                      └─▶ 400: more than are given at once
//	newest NAVs of now and of 1, 7, 30 days before ─▶ yields
//
// A log belongs to the bucket that its block's time is in, the beginning included. What
// a NAV says holds until the next one: a bucket opens with what the one before it closed
// with, and one without an update has that all along. Where the times of blocks go back,
// the later block still says what is in force.
//
// Every live log counts: so the sums of all points are the totals of the users, claims of
// requests that nobody made included.
package series

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/schemas/readmodel"
)

var (
	//go:embed users.sql
	sqlUsers string
	//go:embed navs.sql
	sqlNavs string
	//go:embed deposits.sql
	sqlDeposits string
	//go:embed withdrawals.sql
	sqlWithdrawals string
)

// maxPoints is the most points of one answer.
const maxPoints = 2000

type seriesJSON struct {
	VaultAddress string      `json:"vaultAddress"`
	VaultName    string      `json:"vaultName"`
	Interval     string      `json:"interval"`
	Points       []pointJSON `json:"points"`
	Yields       []yieldJSON `json:"yields"`
}

type pointJSON struct {
	Start       string   `json:"start"`
	End         string   `json:"end"`
	Complete    bool     `json:"complete"`
	Nav         *navJSON `json:"nav"`
	TotalAssets *string  `json:"totalAssets"`
	TotalSupply *string  `json:"totalSupply"`
	Deposits    flowJSON `json:"deposits"`
	Requested   flowJSON `json:"requested"`
	Claimed     flowJSON `json:"claimed"`
	NewUsers    int64    `json:"newUsers"`
	Users       int64    `json:"users"`
}

type navJSON struct {
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

// OfVault is the series of a vault, oldest first.
func OfVault(r *httpapi.Request) (*httpapi.Answer, error) {
	address, span := r.PathAddress(), r.Params.Span()
	interval := r.Params.OneOf("interval", "day", "hour", "day", "week")
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		v, ok := p.Vault(address)
		if !ok {
			return nil, httpapi.NoSuchVault()
		}
		out := seriesJSON{VaultAddress: v.Written, VaultName: v.Name, Interval: interval}
		now, err := p.Now(ctx)
		if err != nil {
			return nil, err
		}
		asking := []func() error{func() (err error) {
			out.Points, err = points(ctx, p, address, intervals[interval], span, int64(now))
			return
		}}
		if !r.AsFile() { // its columns are those of points
			asking = append(asking, func() (err error) { out.Yields, err = yields(ctx, p, v, int64(now)); return })
		}
		if err := pin.Together(asking...); err != nil {
			return nil, err
		}
		if r.AsFile() {
			return httpapi.Whole(ctx, r, p, columns, httpapi.Once(out.Points))
		}
		return &httpapi.Answer{Data: out}, nil
	})
}

// buckets cuts time into parts of one width, in seconds. They are numbered, and shift is
// by how much the one with number 0 began before 1970.
type buckets struct{ width, shift int64 }

const day = 24 * 60 * 60

// intervals are the buckets by their name. 1970 began on a Thursday, and weeks begin on
// Mondays.
var intervals = map[string]buckets{"hour": {day / 24, 0}, "day": {day, 0}, "week": {7 * day, 3 * day}}

// of is the number of the bucket that holds a time, in Unix seconds; those before 1970
// are all in the first.
func (b buckets) of(seconds int64) int64 { return (max(0, seconds) + b.shift) / b.width }

// start is when a bucket begins.
func (b buckets) start(number int64) int64 { return number*b.width - b.shift }

// extent is the buckets that a series may have, both ends included.
type extent struct{ first, last int64 }

// within are the buckets of which a span has a part.
func (b buckets) within(span httpapi.Span) extent {
	e := extent{b.of(span.From), math.MaxInt64}
	switch {
	case span.To < 0:
		e.last = -1
	case span.To != math.MaxInt64:
		e.last = b.of(span.To)
	}
	return e
}

// until is when the last of them is over.
func (e extent) until(b buckets) int64 {
	if e.last == math.MaxInt64 {
		return math.MaxInt64
	}
	return b.start(e.last + 1)
}

// Rows of the questions: what is in one bucket.
type (
	users struct {
		Bucket   int64    `ch:"bucket"`
		Users    int64    `ch:"users"`
		Fence    []uint64 `ch:"fence"`
		IsCursor uint8    `ch:"is_cursor"`
	}
	updates struct {
		Bucket    int64    `ch:"bucket"`
		Count     int64    `ch:"updates"`
		Open      *big.Int `ch:"opened"`
		High      *big.Int `ch:"high"`
		Low       *big.Int `ch:"low"`
		Close     *big.Int `ch:"closed"`
		Assets    *big.Int `ch:"assets"`
		Supply    *big.Int `ch:"supply"`
		LastBlock uint64   `ch:"last_block"`
		LastLog   uint32   `ch:"last_log"`
	}
	deposits struct {
		Bucket int64    `ch:"bucket"`
		Count  int64    `ch:"total"`
		Assets *big.Int `ch:"amount"`
	}
	withdrawals struct {
		Bucket    int64    `ch:"bucket"`
		Requested int64    `ch:"requested"`
		Estimate  *big.Int `ch:"estimate"`
		Claimed   int64    `ch:"claimed"`
		Paid      *big.Int `ch:"paid"`
	}
)

// found is all that the questions found, by bucket.
type found struct {
	users       map[int64]int64
	navs        map[int64]updates
	deposits    map[int64]deposits
	withdrawals map[int64]withdrawals
}

// points reads what is in the buckets of a span, and makes points of it.
func points(ctx context.Context, p *pin.Pin, vault common.Address, b buckets, span httpapi.Span, now int64) ([]pointJSON, error) {
	e := b.within(span)
	f, err := find(ctx, p, vault, b, e)
	if err != nil {
		return nil, err
	}
	e, any := f.narrowed(e, b.of(now))
	if !any {
		return []pointJSON{}, nil
	}
	if n := e.last - e.first + 1; n > maxPoints {
		return nil, httpapi.InvalidParameter(httpapi.Fault{Field: "from",
			Reason: fmt.Sprintf("would give %d points, and at most %d are given: choose a later from, an earlier to, or a longer interval", n, maxPoints)})
	}
	return f.points(b, e, now), nil
}

// find asks for what is in some buckets, and for the users and NAVs before them.
func find(ctx context.Context, p *pin.Pin, vault common.Address, b buckets, e extent) (f found, err error) {
	args := pin.Args{"vault": vault, "width": b.width, "shift": b.shift, "first": e.first, "from": b.start(e.first), "until": e.until(b)}
	err = pin.Together(
		func() (err error) { f.users, err = askUsers(ctx, p, args); return },
		func() (err error) {
			f.navs, err = ask(ctx, p, sqlNavs, args, func(u *updates) (int64, bool) { return u.Bucket, true })
			return
		},
		func() (err error) {
			f.deposits, err = ask(ctx, p, sqlDeposits, args, func(d *deposits) (int64, bool) { return d.Bucket, d.Count != 0 })
			return
		},
		func() (err error) {
			f.withdrawals, err = ask(ctx, p, sqlWithdrawals, args, func(w *withdrawals) (int64, bool) { return w.Bucket, w.Requested != 0 || w.Claimed != 0 })
			return
		},
	)
	return f, err
}

// ask puts a question, and keeps of each bucket what counts: what was taken back all the
// same leaves a row of zeros.
func ask[T any](ctx context.Context, p *pin.Pin, question string, args pin.Args, bucket func(*T) (number int64, counts bool)) (map[int64]T, error) {
	rows, err := pin.Ask[T](ctx, p, question, args)
	out := make(map[int64]T, len(rows))
	for _, row := range rows {
		if number, counts := bucket(&row); counts {
			out[number] = row
		}
	}
	return out, err
}

func askUsers(ctx context.Context, p *pin.Pin, args pin.Args) (map[int64]int64, error) {
	rows, err := pin.Ask[users](ctx, p, sqlUsers, args)
	out := make(map[int64]int64, len(rows))
	for _, r := range rows {
		if r.IsCursor == 1 {
			p.See(readmodel.FenceOf(r.Fence))
		} else if r.Users != 0 {
			out[r.Bucket] = r.Users
		}
	}
	return out, err
}

// narrowed leaves out the buckets before the vault had anything, and those after the one
// in which the chain is now; false: there are none.
func (f *found) narrowed(e extent, now int64) (extent, bool) {
	lowest, highest := int64(math.MaxInt64), now
	see := func(bucket int64) { lowest, highest = min(lowest, bucket), max(highest, bucket) }
	for bucket := range f.users {
		see(bucket)
	}
	for bucket := range f.navs {
		see(bucket)
	}
	for bucket := range f.deposits {
		see(bucket)
	}
	for bucket := range f.withdrawals {
		see(bucket)
	}
	e.first, e.last = max(e.first, lowest), min(e.last, highest)
	return e, lowest != math.MaxInt64 && e.first <= e.last
}

// points makes a point of each bucket.
func (f *found) points(b buckets, e extent, now int64) []pointJSON {
	var inForce *updates
	total := int64(0)
	for bucket, n := range f.users {
		if bucket < e.first {
			total += n
		}
	}
	if before, ok := f.navs[e.first-1]; ok {
		inForce = &before
	}
	out := make([]pointJSON, 0, e.last-e.first+1)
	for bucket := e.first; bucket <= e.last; bucket++ {
		end := b.start(bucket + 1)
		point := pointJSON{Start: httpapi.Millis(time.Unix(b.start(bucket), 0)), End: httpapi.Millis(time.Unix(end, 0)), Complete: end <= now, NewUsers: f.users[bucket]}
		d, w := f.deposits[bucket], f.withdrawals[bucket]
		point.Deposits, point.Requested, point.Claimed = flow(d.Count, d.Assets), flow(w.Requested, w.Estimate), flow(w.Claimed, w.Paid)
		total += point.NewUsers
		point.Users = total
		point.Nav, inForce = f.nav(bucket, inForce)
		if inForce != nil {
			assets, supply := inForce.Assets.String(), inForce.Supply.String()
			point.TotalAssets, point.TotalSupply = &assets, &supply
		}
		out = append(out, point)
	}
	return out
}

// nav is what a bucket that begins with one NAV in force says, and the one that it ends
// with; nil for none.
func (f *found) nav(bucket int64, before *updates) (*navJSON, *updates) {
	u, updated := f.navs[bucket]
	switch {
	case !updated && before == nil:
		return nil, nil
	case !updated:
		price := before.Close.String()
		return &navJSON{Open: price, High: price, Low: price, Close: price}, before
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
	return &navJSON{Open: open.String(), High: high.String(), Low: low.String(), Close: after.Close.String(), Updates: u.Count}, after
}

// laterThan tells whether the last of some updates is after that of others on the chain.
func (u *updates) laterThan(other *updates) bool {
	return u.LastBlock > other.LastBlock || u.LastBlock == other.LastBlock && u.LastLog > other.LastLog
}

func flow(count int64, assets *big.Int) flowJSON {
	if assets == nil {
		return flowJSON{Assets: "0"}
	}
	return flowJSON{Count: count, Assets: assets.String()}
}

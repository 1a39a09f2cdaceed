package vaults

import (
	"context"
	"fmt"
	"math"
	"math/big"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/state"
)

// yieldJSON is the gain of a share over a number of days: (to - from) / from, where to and from are the NAVs in force
// at the end and at the beginning.
type yieldJSON struct {
	Days          int64   `json:"days"`
	From          navJSON `json:"from"`
	To            navJSON `json:"to"`
	Numerator     string  `json:"numerator"`
	Denominator   string  `json:"denominator"`
	Percent       string  `json:"percent"`
	AnnualPercent *string `json:"annualPercent"` // null for less than a day
}

// yieldDays are the numbers of days for which yields are computed.
var yieldDays = [...]int64{1, 7, 30, 90}

// yields returns the yields over the last days before now, except those over more days than there are NAVs, and those
// from a NAV of zero. The next block may change a yield if its first NAV is not the newest one, and may add one if
// there was no NAV early enough.
func yields(ctx context.Context, p *ask.Pin, v *state.Vault, now int64) ([]yieldJSON, error) {
	out := []yieldJSON{}
	to, err := ask.NewestNav(ctx, p, v.Address, math.MaxInt64)
	if err != nil || to == nil {
		return out, err
	}
	for _, days := range yieldDays {
		from, err := ask.NewestNav(ctx, p, v.Address, now-days*day)
		if err != nil {
			return nil, err
		}
		if from == nil {
			p.Lapses(uint64(now) + 1)
			break // nor is there a yield over more days
		}
		if from.Place() != to.Place() {
			p.Lapses(uint64(now) + 1)
		}
		if from.NavPerShare != "0" {
			out = append(out, yield(days*day, from, to, v))
		}
	}
	return out, nil
}

// sinceFirst returns the yield from the first NAV of a vault to the one in force now, or nil if there is none or the
// first is zero. Its number of days counts complete days from the first NAV to now.
func sinceFirst(ctx context.Context, p *ask.Pin, v *state.Vault, now int64) (*yieldJSON, error) {
	args := ask.OfNavs{Vault: v.Address, Last: p.Block}
	var to *ask.Nav
	var updates int64
	err := ask.Together(
		func() (err error) { to, err = ask.NewestNav(ctx, p, v.Address, math.MaxInt64); return },
		func() (err error) { updates, err = countNavs(ctx, p, args); return },
	)
	if err != nil || to == nil || updates == 0 {
		return nil, err
	}
	first, err := ask.Navs.Read(ctx, p, args, uint64(updates-1), 1)
	if err != nil || len(first) == 0 || first[0].NavPerShare == "0" {
		return nil, err
	}
	p.Lapses(uint64(now) + 1) // the time range grows with each block
	out := yield(max(0, now-int64(first[0].Time)), &first[0], to, v)
	return &out, nil
}

// year is the number of seconds in 365 days.
const year = 365 * day

// yield returns the gain of a share over a number of seconds.
func yield(seconds int64, from, to *ask.Nav, v *state.Vault) yieldJSON {
	gain, price := minus(to.NavPerShare, from.NavPerShare), ask.Number(from.NavPerShare)
	out := yieldJSON{Days: seconds / day, From: navOf(from, v), To: navOf(to, v),
		Numerator: gain.String(), Denominator: from.NavPerShare, Percent: percent(gain, price)}
	if seconds >= day {
		annual := percent(new(big.Int).Mul(gain, big.NewInt(year)), new(big.Int).Mul(price, big.NewInt(seconds)))
		out.AnnualPercent = &annual
	}
	return out
}

// percent formats a fraction as a percentage with six decimals, rounded down so that it never overstates a gain. The
// denominator is positive.
func percent(numerator, denominator *big.Int) string {
	const decimals = 1_000_000
	scaled := new(big.Int).Mul(numerator, big.NewInt(100*decimals))
	scaled.Div(scaled, denominator) // rounds down, also below zero
	sign := ""
	if scaled.Sign() < 0 {
		sign = "-"
	}
	whole, rest := new(big.Int).QuoRem(scaled.Abs(scaled), big.NewInt(decimals), new(big.Int))
	return fmt.Sprintf("%s%s.%06d", sign, whole, rest)
}

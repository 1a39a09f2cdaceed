package vaults

import (
	"context"
	"fmt"
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

var yieldDays = [...]int64{1, 7, 30, 90}

// gains returns the yields over the last days before now, and the yield since the first NAV of a vault, up to the NAV
// in force now. There is none over more days than there are NAVs, and none from a NAV of zero. The number of days since
// the first NAV counts complete days. The next block may change a yield if its first NAV is not the newest one, and may
// add one if there was no NAV early enough; the time since the first NAV grows with each block.
func gains(
	ctx context.Context, p *ask.Pin, v *state.Vault, now int64,
) (last []yieldJSON, sinceFirst *yieldJSON, err error) {
	all := ask.OfVault{Vault: v.Address, Kind: ask.Valuation, Blocks: ask.Blocks{Last: p.Block}}
	first := all
	first.Oldest = true
	of := []ask.OfVault{all, first}
	for _, days := range yieldDays {
		before := all
		before.Timed, before.At = true, now-days*day
		of = append(of, before)
	}
	last = []yieldJSON{}
	navs, err := ask.VaultEvents.FirstOfEach(ctx, p, of)
	if err != nil || navs[0] == nil {
		return last, nil, err
	}
	to, from := navs[0], navs[2:]
	for i, days := range yieldDays {
		if from[i] == nil {
			p.Lapses(uint64(now) + 1)
			break // nor is there a yield over more days
		}
		if from[i].Place != to.Place {
			p.Lapses(uint64(now) + 1)
		}
		if from[i].NavPerShare != "0" {
			last = append(last, yield(days*day, from[i], to, v))
		}
	}
	if oldest := navs[1]; oldest != nil && oldest.NavPerShare != "0" {
		p.Lapses(uint64(now) + 1)
		sinceFirst = new(yield(max(0, now-int64(oldest.Time)), oldest, to, v))
	}
	return last, sinceFirst, nil
}

// year is the number of seconds in 365 days.
const year = 365 * day

// yield returns the gain of a share over a number of seconds.
func yield(seconds int64, from, to *ask.VaultEvent, v *state.Vault) yieldJSON {
	gain, price := minus(to.NavPerShare, from.NavPerShare), ask.Number(from.NavPerShare)
	out := yieldJSON{Days: seconds / day, From: navOf(from, v), To: navOf(to, v),
		Numerator: gain.String(), Denominator: from.NavPerShare, Percent: percent(gain, price)}
	if seconds >= day {
		out.AnnualPercent = new(percent(
			new(big.Int).Mul(gain, big.NewInt(year)), new(big.Int).Mul(price, big.NewInt(seconds))))
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

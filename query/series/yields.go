package series

import (
	"context"
	"fmt"
	"math"
	"math/big"

	"github.com/navlog/navlog/query/navs"
	"github.com/navlog/navlog/query/pin"
)

// yieldJSON is what a share gained while some days passed: (to - from) / from, where
// those are the NAVs in force at the end and at the beginning.
type yieldJSON struct {
	Days        int64     `json:"days"`
	From        navs.JSON `json:"from"`
	To          navs.JSON `json:"to"`
	Numerator   string    `json:"numerator"`
	Denominator string    `json:"denominator"`
	Percent     string    `json:"percent"`
}

// yieldDays are the numbers of days.
var yieldDays = [...]int64{1, 7, 30}

// yields are those over the last days before now, without those over more days than
// there are NAVs, or from a NAV of zero.
func yields(ctx context.Context, p *pin.Pin, v *pin.Vault, now int64) ([]yieldJSON, error) {
	out := []yieldJSON{}
	to, err := navs.Newest(ctx, p, v.Address, math.MaxInt64)
	if err != nil || to == nil {
		return out, err
	}
	for _, days := range yieldDays {
		from, err := navs.Newest(ctx, p, v.Address, now-days*day)
		if err != nil {
			return nil, err
		}
		if from == nil {
			break // nor over more days
		}
		if from.NavPerShare.Sign() != 0 {
			out = append(out, yield(days, from, to, v))
		}
	}
	return out, nil
}

func yield(days int64, from, to *navs.Nav, v *pin.Vault) yieldJSON {
	gain := new(big.Int).Sub(to.NavPerShare, from.NavPerShare)
	return yieldJSON{Days: days, From: from.JSON(v), To: to.JSON(v),
		Numerator: gain.String(), Denominator: from.NavPerShare.String(), Percent: percent(gain, from.NavPerShare)}
}

// percent writes a fraction in hundredths with six decimals, rounded down: what it says
// is never more than what was gained. The denominator is positive.
func percent(numerator, denominator *big.Int) string {
	const decimals = 1_000_000
	scaled := new(big.Int).Mul(numerator, big.NewInt(100*decimals))
	scaled.Div(scaled, denominator) // which rounds down, also below zero
	sign := ""
	if scaled.Sign() < 0 {
		sign = "-"
	}
	whole, rest := new(big.Int).QuoRem(scaled.Abs(scaled), big.NewInt(decimals), new(big.Int))
	return fmt.Sprintf("%s%s.%06d", sign, whole, rest)
}

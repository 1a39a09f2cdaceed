package bench

import "testing"

func TestBar(t *testing.T) {
	for want, b := range map[string]Bar{
		"bar wall-ratio 1.4 1.5 ok":        {Name: "wall-ratio", Value: 1.4, Bound: 1.5},
		"bar wall-ratio 1.6 1.5 short":     {Name: "wall-ratio", Value: 1.6, Bound: 1.5},
		"bar rate 210000 200000 ok":        {Name: "rate", Value: 210_000, Bound: 200_000, Least: true},
		"bar deliveries-s 4999 5000 short": {Name: "deliveries-s", Value: 4999, Bound: 5000, Least: true},
		"bar lost 0 0 ok":                  {Name: "lost"},
	} {
		if got := b.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

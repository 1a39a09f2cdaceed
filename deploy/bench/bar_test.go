package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

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

// Parts run in their order, those that are requested; an error names its part, no later part runs, and what the earlier
// ones measured is printed.
func TestRun(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer func(terminal *os.File) { os.Stdout = terminal }(os.Stdout)
	os.Stdout = out
	var ran []string
	gone := errors.New("gone")
	part := func(name string, err error) Part {
		return func(context.Context) ([]Bar, error) { ran = append(ran, name); return []Bar{{Name: name}}, err }
	}
	names := []string{"first", "second", "third"}
	parts := map[string]Part{"first": part("first", nil), "second": part("second", gone), "third": part("third", nil)}
	if err := Run(t.Context(), names, []string{"third", "first"}, parts); err != nil ||
		!slices.Equal(ran, []string{"first", "third"}) {
		t.Errorf("%v ran: %v", ran, err)
	}
	ran = nil
	if err := Run(t.Context(), names, names, parts); !errors.Is(err, gone) ||
		!strings.HasPrefix(err.Error(), "second: ") || len(ran) != 2 {
		t.Errorf("%v ran: %v", ran, err)
	}
	printed, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	const first, third = "bar first 0 0 ok\n", "bar third 0 0 ok\n"
	if want := "\n" + first + third + "\n" + first; string(printed) != want {
		t.Errorf("%q is printed, want %q", printed, want)
	}
}

func TestQuantile(t *testing.T) {
	all := make([]time.Duration, 100) // 100 to 1 ms
	for i := range all {
		all[i] = time.Duration(100-i) * time.Millisecond
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 50, 0.99: 99, 0.991: 100, 1: 100} {
		if got := Quantile(all, q); got != want {
			t.Errorf("quantile %g is %g ms, should be %g", q, got, want)
		}
	}
	if got := Quantile(nil, 0.5); got != 0 {
		t.Errorf("of no times it is %g", got)
	}
}

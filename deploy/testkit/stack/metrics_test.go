package stack

import (
	"maps"
	"strings"
	"testing"
)

// A metric is found with labels and without, and the largest of its series counts.
func TestMetrics(t *testing.T) {
	got, err := Metrics(strings.NewReader("# HELP blocks a b\n# TYPE blocks gauge\nblocks{chain=\"1\",of=\"a b\"} " +
		"12\nplain 3.5\nlag{n=\"1\"} NaN\nlag{n=\"2\"} 4\nlag{n=\"3\"} 2\n"))
	if want := map[string]float64{"blocks": 12, "plain": 3.5, "lag": 4}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if _, err := Metrics(strings.NewReader("blocks twelve\n")); err == nil {
		t.Error("a value that is not a number is accepted")
	}
}

package dispatch

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/dispatch/lane"
)

// The alerts ask for metrics that there are. An alert about one that does not
// exist would never come.
func TestAlertsNameMetrics(t *testing.T) {
	text, err := os.ReadFile("../deploy/alerts/dispatch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	m := newMetrics(reg)
	lane.NewMetrics(reg)
	m.show(Status{Deliveries: map[string]int64{}}, 0)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range families {
		known[f.GetName()] = true
	}
	named := regexp.MustCompile(`navlog_\w+`).FindAllString(string(text), -1)
	if len(named) < 8 {
		t.Errorf("the alerts name %v", named)
	}
	for _, name := range named {
		if !known[name] {
			t.Errorf("an alert asks for %s; there are %v", name, slices.Sorted(maps.Keys(known)))
		}
	}
	// A dispatcher that cannot measure shows its last figures for ever, and one
	// that does not run shows none: no comparison of these would ever fire.
	for _, rule := range []string{"expr: time() - max(navlog_dispatch_measured_timestamp_seconds) > ", "expr: absent(navlog_dispatch_oldest_seconds)"} {
		if !strings.Contains(string(text), rule) {
			t.Errorf("no alert has %q", rule)
		}
	}
}

// Package alerts checks deploy/alerts and the configuration of Prometheus with Prometheus' own packages.
package alerts

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	_ "github.com/prometheus/prometheus/discovery/dns"  // registers the discovery that a configuration may name
	_ "github.com/prometheus/prometheus/discovery/file" // this one too
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// load reads deploy/alerts as Prometheus does: names, expressions, labels and the templates of annotations.
func load(t *testing.T) map[string]*rules.AlertingRule {
	t.Helper()
	files, err := filepath.Glob("../../../alerts/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("rule files %v: %v", files, err)
	}
	files = append(files, "../../../alerts/exporters/machine.yaml")
	manager := rules.NewManager(&rules.ManagerOptions{
		Context: t.Context(), Logger: promslog.NewNopLogger(), Parser: parser.NewParser(parser.Options{}),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
	})
	groups, faults := manager.LoadGroups(15*time.Second, labels.EmptyLabels(), "", nil, false, files...)
	for _, err := range faults {
		t.Error(err)
	}
	found := map[string]*rules.AlertingRule{}
	for _, group := range groups {
		for _, rule := range group.Rules() {
			alert, is := rule.(*rules.AlertingRule)
			if !is {
				t.Errorf("%s is not an alert", rule.Name())
				continue
			}
			if found[alert.Name()] != nil {
				t.Errorf("two alerts are named %s", alert.Name())
			}
			found[alert.Name()] = alert
		}
	}
	if len(found) < 30 {
		t.Fatalf("%d alerts were read", len(found))
	}
	return found
}

// A trial is how an alert responds to series, each with one value per interval, from the start.
type trial struct {
	what   string
	at     time.Duration
	every  time.Duration // the interval
	series []string
	fires  []string // the labels of each alert that fires, without severity: "chain=1 program=ingest"
}

// fires returns a trial at whose end alerts with these labels fire, separated by ", ".
func fires(labels, what string, at time.Duration, series ...string) trial {
	return trial{what: what, at: at, every: time.Minute, series: series, fires: strings.Split(labels, ", ")}
}

// silent returns a trial at whose end the alert does not fire.
func silent(what string, at time.Duration, series ...string) trial {
	return trial{what: what, at: at, every: time.Minute, series: series}
}

// hourly makes an hour of the interval.
func (t trial) hourly() trial {
	t.every = time.Hour
	return t
}

// step returns the interval between two evaluations: that of prometheus.yaml, or more for a trial of hours.
func (t trial) step() time.Duration {
	switch {
	case t.every == time.Hour:
		return time.Hour
	case t.at >= 8*time.Hour:
		return 5 * time.Minute
	case t.at >= 2*time.Hour:
		return time.Minute
	default:
		return 15 * time.Second
	}
}

// Each alert fires on the series of its condition, and stays silent on similar ones.
func TestAlerts(t *testing.T) {
	alerts := load(t)
	for _, name := range slices.Sorted(maps.Keys(trials)) {
		if alerts[name] == nil {
			t.Errorf("the trials name the alert %s, which does not exist", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(alerts)) {
		fired, silent := 0, 0
		for _, try := range trials[name] {
			if len(try.fires) > 0 {
				fired++
			} else {
				silent++
			}
			t.Run(name+"/"+try.what, func(t *testing.T) {
				got := run(t, load(t)[name], try)
				if !slices.Equal(got, try.fires) {
					t.Errorf("the alert fires %q, want %q", got, try.fires)
				}
			})
		}
		if fired == 0 || silent == 0 {
			t.Errorf("the trials of alert %s expect it to fire %d times and to be silent %d times: each must be at least once",
				name, fired, silent)
		}
	}
}

// run evaluates an alert from the start to the time of the trial, and returns what fires then, sorted.
func run(t *testing.T, alert *rules.AlertingRule, try trial) (firing []string) {
	t.Helper()
	suite, err := promqltest.NewLazyLoader(fmt.Sprintf("load %s\n  %s\n", try.every, strings.Join(try.series, "\n  ")),
		promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer suite.Close()
	query := rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage())
	for after := time.Duration(0); after <= try.at; after += try.step() {
		now := time.Unix(0, 0).UTC().Add(after)
		suite.WithSamplesTill(now, func(err error) {
			if err == nil {
				_, err = alert.Eval(suite.Context(), 0, now, query, nil, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, a := range alert.ActiveAlerts() {
		if a.State != rules.StateFiring {
			continue
		}
		var has []string
		a.Labels.Range(func(l labels.Label) {
			if l.Name != labels.AlertName && l.Name != "severity" {
				has = append(has, l.Name+"="+l.Value)
			}
		})
		if summary := a.Annotations.Get("summary"); summary == "" || strings.Contains(summary, "<error") {
			t.Errorf("its summary is %q", summary)
		}
		firing = append(firing, strings.Join(has, " "))
	}
	slices.Sort(firing)
	return firing
}

// Prometheus accepts the configuration of compose.prometheus.yaml.
func TestPrometheusAcceptsItsConfiguration(t *testing.T) {
	c, err := config.LoadFile("../../../docker/prometheus/prometheus.yaml", false, promslog.NewNopLogger())
	if err != nil {
		t.Fatal(err)
	}
	scrapes, err := c.GetScrapeConfigs()
	if err != nil || len(scrapes) != 4 {
		t.Fatalf("%d jobs: %v", len(scrapes), err)
	}
	if len(c.RuleFiles) != 2 || !strings.HasSuffix(c.RuleFiles[0], "/alerts/*.yaml") ||
		!strings.HasSuffix(c.RuleFiles[1], "/alerts/exporters/*.yaml") {
		t.Errorf("the rules are %v", c.RuleFiles)
	}
}

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/navlog/navlog/deploy/testkit/stack"
)

// series holds what programs export on /metrics: the labels of each metric's series.
type series map[string][]map[string]string

// An expression belongs to an alert or to a panel.
type expression struct {
	where, text string
	// shown is the text that presents the result to people, with names of its labels.
	shown string
}

// Alerts and dashboard use only metrics and labels that the programs export. An expression with any other name would
// never return anything, which looks like a healthy system.
func metrics(t *testing.T, w *world) {
	response, err := w.client.HTTP.Get(w.Ops + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("/metrics: %d, %v", response.StatusCode, err)
	}
	shown := readMetrics(t, string(text))
	documented := readPage(t)
	for name, all := range shown {
		for _, fault := range documented.faults(name, all) {
			t.Error(fault)
		}
	}
	alerts, panels := readAlerts(t), readDashboard(t)
	if len(alerts) < 10 || len(panels) < 30 {
		t.Errorf("only %d alerts and %d expressions of panels were looked at", len(alerts), len(panels))
	}
	for _, e := range slices.Concat(alerts, panels) {
		for _, fault := range e.check(shown) {
			t.Errorf("%s: %s", e.where, fault)
		}
	}
	// A dispatcher that cannot measure keeps exporting its last figures, and one that is down exports none, so no
	// comparison of these figures would ever fire.
	for _, rule := range []string{"time() - max by (chain) (navlog_dispatch_measured_timestamp_seconds) > ",
		"absent(navlog_dispatch_oldest_seconds)"} {
		if !slices.ContainsFunc(alerts, func(e expression) bool { return strings.HasPrefix(e.text, rule) }) {
			t.Errorf("no alert is %q", rule)
		}
	}
}

var (
	// matcher matches a matcher of a selector.
	matcher = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*")`)
	// A range or a subquery, which contains no name.
	duration = regexp.MustCompile(`\[[^\]]*\]`)
	// The labels that a result keeps, or on which two sides are joined.
	grouping = regexp.MustCompile(`\b(?:by|on|group_left|group_right)\s*\(([^)]*)\)`)
	// A name, with its matchers if it is a selector, or followed by a parenthesis if it is a function.
	selector = regexp.MustCompile(`\b([a-zA-Z_:][\w:]*)(?:\s*\{((?:[^"{}]|"(?:[^"\\]|\\.)*")*)\})?(\s*\()?`)
	// A string argument of a function.
	argument = regexp.MustCompile(`,\s*"(?:[^"\\]|\\.)*"`)
	label    = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)
)

// Words of an expression that are neither metrics nor functions, and the labels that Prometheus itself adds.
var (
	operators = []string{"and", "or", "unless", "bool", "offset"}
	ofTarget  = []string{"job", "instance"}
)

// check returns the faults of an expression.
func (e expression) check(shown series) (faults []string) {
	text := argument.ReplaceAllString(duration.ReplaceAllString(e.text, ""), "")
	grouped, known := slices.Clone(ofTarget), slices.Clone(ofTarget)
	for _, g := range grouping.FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(g[1], ",") {
			if name = strings.TrimSpace(name); name != "" {
				grouped = append(grouped, name)
			}
		}
	}
	for _, s := range selector.FindAllStringSubmatch(grouping.ReplaceAllString(text, ""), -1) {
		name, matchers := s[1], matcher.FindAllStringSubmatch(s[2], -1)
		if s[3] != "" || slices.Contains(operators, name) {
			continue
		}
		found := shown[name]
		if len(found) == 0 {
			faults = append(faults, "no program shows "+name)
			known = append(known, grouped...) // its labels are unknown
			continue
		}
		for _, one := range found {
			for name := range one {
				known = append(known, name)
			}
		}
		for _, m := range matchers {
			if m[2] == "=" {
				grouped = append(grouped, m[1])
			}
			if !slices.ContainsFunc(shown[name], func(one map[string]string) bool { return one[m[1]] != "" }) {
				faults = append(faults, name+" has no label "+m[1])
			}
			found = slices.DeleteFunc(slices.Clone(found), func(one map[string]string) bool { return !selects(m, one[m[1]]) })
		}
		if len(found) == 0 {
			faults = append(faults, fmt.Sprintf("no program shows %s with %s", name, s[2]))
		}
	}
	for _, name := range grouped {
		if !slices.Contains(known, name) {
			faults = append(faults, "nothing in it has the label "+name)
		}
	}
	for _, l := range label.FindAllStringSubmatch(e.shown, -1) {
		if !slices.Contains(grouped, l[1]) {
			faults = append(faults, "its result has no label "+l[1])
		}
	}
	return faults
}

// selects reports whether a matcher of a selector accepts a label's value.
func selects(matcher []string, value string) bool {
	want, err := strconv.Unquote(matcher[3])
	if err != nil {
		return false
	}
	switch matcher[2] {
	case "=":
		return value == want
	case "!=":
		return value != want
	}
	whole, err := regexp.Compile("^(?:" + want + ")$")
	return err == nil && whole.MatchString(value) == (matcher[2] == "=~")
}

// readMetrics reads the text format of Prometheus.
func readMetrics(t *testing.T, text string) series {
	t.Helper()
	samples, err := stack.Samples(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all := series{}
	for _, s := range samples {
		labels := map[string]string{}
		for name, value := range s.Metric {
			labels[string(name)] = string(value)
		}
		delete(labels, model.MetricNameLabel)
		name := string(s.Metric[model.MetricNameLabel])
		all[name] = append(all[name], labels)
	}
	return all
}

// page holds the labels of each metric that docs/metrics.md lists.
type page map[string][]string

// row matches a row of its table: the name, and the labels.
var row = regexp.MustCompile("(?m)^\\| `(navlog_\\w+)` \\| \\w+ \\| (?:counter|gauge|histogram) \\| ([^|]*) \\|")

func readPage(t *testing.T) page {
	t.Helper()
	b, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := page{}
	for _, r := range row.FindAllStringSubmatch(string(b), -1) {
		labels := strings.FieldsFunc(r[2], func(c rune) bool { return strings.ContainsRune("`, ", c) })
		listed[r[1]] = append(labels, "chain")
	}
	if len(listed) < 70 {
		t.Fatalf("docs/metrics.md lists %d metrics", len(listed))
	}
	return listed
}

// faults returns how the series of a metric differ from its row. Metrics that are missing here have no series yet: a
// test of the programs compares the page with all that they register.
func (p page) faults(name string, all []map[string]string) (faults []string) {
	if !strings.HasPrefix(name, "navlog_") {
		return nil
	}
	labels, listed := p[name]
	if base := histogramSeries.ReplaceAllString(name, ""); !listed && base != name {
		labels, listed = p[base]
		labels = append(slices.Clone(labels), "le")
	}
	if !listed {
		return []string{"docs/metrics.md lacks " + name}
	}
	for _, one := range all {
		for l := range one {
			if fault := fmt.Sprintf("docs/metrics.md does not list the label %s of %s", l, name); !slices.Contains(labels, l) &&
				!slices.Contains(faults, fault) {
				faults = append(faults, fault)
			}
		}
	}
	return faults
}

var histogramSeries = regexp.MustCompile(`_(bucket|sum|count)$`)

// readAlerts reads the rules of deploy/alerts.
func readAlerts(t *testing.T) (all []expression) {
	t.Helper()
	files, err := filepath.Glob("../../alerts/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("the alerts are %v, %v", files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rules struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr string
					Annotations struct{ Summary string }
				}
			}
		}
		if err := yaml.Unmarshal(b, &rules); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, g := range rules.Groups {
			for _, r := range g.Rules {
				if r.Alert == "" || r.Expr == "" || r.Annotations.Summary == "" {
					t.Errorf("%s: alert %q has no name, no expression or no summary", file, r.Alert)
				}
				all = append(all, expression{where: r.Alert, text: r.Expr, shown: r.Annotations.Summary})
			}
		}
	}
	return all
}

// readDashboard reads deploy/dashboards. Each panel describes what to do and names the alert that belongs to it, if
// there is one; and each alert belongs to a panel.
func readDashboard(t *testing.T) (all []expression) {
	t.Helper()
	b, err := os.ReadFile("../../dashboards/navlog.json")
	if err != nil {
		t.Fatal(err)
	}
	type source struct{ UID string }
	var dashboard struct {
		UID    string
		Panels []struct {
			ID                       int
			Type, Title, Description string
			Datasource               source
			Targets                  []struct {
				Datasource         source
				Expr, LegendFormat string
			}
		}
	}
	if err := json.Unmarshal(b, &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.UID != "navlog" || strings.Contains(string(b), "://") {
		t.Errorf("the dashboard has the uid %q, or names a host", dashboard.UID)
	}
	const chosen = "${datasource}" // chosen above the panels
	ids, alerting := map[int]bool{}, map[string]bool{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || p.Datasource.UID != chosen || len(p.Targets) == 0 {
			t.Errorf("panel %d (%s) has no title, description, datasource of choice or expression", p.ID, p.Title)
		}
		for _, target := range p.Targets {
			if target.LegendFormat == "" || target.Datasource.UID != chosen {
				t.Errorf("panel %q: %s has no legend, or another datasource", p.Title, target.Expr)
			}
			text := strings.NewReplacer("$__rate_interval", "5m", "$chain", ".+").Replace(target.Expr)
			all = append(all, expression{where: "panel " + strconv.Quote(p.Title), text: text, shown: target.LegendFormat})
		}
		if _, alerts, found := strings.Cut(p.Description, "Alert"); found {
			for name := range strings.SplitSeq(strings.TrimLeft(alerts, "s: "), ", ") {
				alerting[name] = true
			}
		}
	}
	for _, alert := range readAlerts(t) {
		if !alerting[alert.where] {
			t.Errorf("no panel says that %s belongs to it", alert.where)
		}
		delete(alerting, alert.where)
	}
	for name := range alerting {
		t.Errorf("a panel names the alert %q, which does not exist", name)
	}
	return all
}

// TestPageFaults checks that a metric and a label that docs/metrics.md does not list are found.
func TestPageFaults(t *testing.T) {
	listed := readPage(t)
	for name, want := range map[string]string{
		`navlog_ready{chain="1",program="serve"} 1`:                         "",
		`navlog_query_request_seconds_bucket{chain="1",route="/",le="1"} 1`: "",
		`go_goroutines 1`:                          "",
		`navlog_readiness{chain="1"} 1`:            "docs/metrics.md lacks navlog_readiness",
		`navlog_ready{chain="1",instrument="a"} 1`: "docs/metrics.md does not list the label instrument of navlog_ready",
		`navlog_ingest_head_block{chain="1",le="1"} 1`: "docs/metrics.md does not list the label le of " +
			"navlog_ingest_head_block",
	} {
		for metric, all := range readMetrics(t, name+"\n") {
			if got := strings.Join(listed.faults(metric, all), "; "); got != want {
				t.Errorf("%s: found %q, want %q", name, got, want)
			}
		}
	}
}

// TestExpressionFaults checks that names which are not exported are found wherever an expression can contain them.
func TestExpressionFaults(t *testing.T) {
	shown := readMetrics(t, `# TYPE ready gauge
ready{program="ingest"} 1
seconds_bucket{route="/a/{b}",le="+Inf"} 3
seconds_count{route="/a/{b}"} 3
cpu_total 4.5
`)
	for _, try := range []struct {
		text, shown string
		want        string
	}{
		{text: `max by (program) (ready) == 0`, shown: "{{ $labels.program }}"},
		{text: `absent(ready{program="ingest"})`, shown: "{{ $labels.program }}"},
		{text: `label_replace(ready{program="ingest"}, "program", "none", "", "")`, shown: "{{ $labels.program }}"},
		{text: `histogram_quantile(0.5, sum by (le, route) (rate(seconds_bucket{route=~"/a/.*",route!="/b"}[5m]))) > 1e3`,
			shown: "{{route}}"},
		{text: `max by (program, instance) (rate(cpu_total[5m]) * on (job, instance) group_right () (ready >= bool 0)) or vector(-1)`, shown: "{{program}} {{instance}}"},
		{text: `deriv(max(cpu > 0)[5m:15s])`, want: "no program shows cpu"},
		{text: `absent(ready{program="serve"})`, want: `no program shows ready with program="serve"`},
		{text: `ready{program!="ingest"}`, want: `no program shows ready with program!="ingest"`},
		{text: `ready{program=~"in"}`, want: `no program shows ready with program=~"in"`},
		{text: `ready{instrument!="a"}`, want: "ready has no label instrument"},
		{text: `sum by (path) (seconds_count)`, want: "nothing in it has the label path"},
		{text: `sum(seconds_count)`, shown: "{{route}}", want: "its result has no label route"},
		{text: `ready and $cpu_total_of_grafana`, want: "no program shows cpu_total_of_grafana"},
	} {
		faults := expression{text: try.text, shown: try.shown}.check(shown)
		if try.want == "" && len(faults) > 0 || try.want != "" && !slices.Contains(faults, try.want) {
			t.Errorf("%s: found %q, want %q", try.text, faults, try.want)
		}
	}
}

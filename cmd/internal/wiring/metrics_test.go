package wiring

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/projections"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md")

// TestMetricsPage compares docs/metrics.md with the metrics that the four programs register and with the alerts. The
// page is generated: run this test with -update.
func TestMetricsPage(t *testing.T) {
	const file = "../../../docs/metrics.md"
	want := metricsPage(t, registered(t), alertsOf(t))
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	has, wants := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for _, line := range has {
		if !slices.Contains(wants, line) {
			t.Errorf("docs/metrics.md has the line %s", line)
		}
	}
	for _, line := range wants {
		if !slices.Contains(has, line) {
			t.Errorf("docs/metrics.md lacks the line %s", line)
		}
	}
	t.Error("docs/metrics.md differs from the code: go test ./cmd/internal/wiring -run TestMetricsPage -update")
}

// metric is a metric of one program, or of each.
type metric struct {
	program, name, kind, help string
	labels                    []string // without chain, which all have
}

// registered returns the metrics that the programs register, also those that have no series yet. No program runs.
func registered(t *testing.T) (all []metric) {
	t.Helper()
	c := config.Default()
	c.Chain.ID, c.Chain.RPC = 1, []rpc.Endpoint{{URL: "http://node.example"}}
	c.SecretKey = base64.StdEncoding.EncodeToString(make([]byte, 32))
	for _, program := range []struct {
		name     string
		register func(d *Deps)
	}{
		{"each", func(d *Deps) { d.showBuild(); d.ShowReady("ingest", new(fakeProgram)) }},
		{"ingest", func(d *Deps) { d.Ingest() }},
		{"project", func(d *Deps) { d.Project(); projections.ListMetrics(d.registerer) }},
		{"serve", func(d *Deps) {
			if _, err := d.Serve(); err != nil {
				t.Fatal(err)
			}
		}},
		{"dispatch", func(d *Deps) {
			if _, err := d.Dispatch(); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		r := &recorder{Registry: prometheus.NewRegistry()}
		program.register(&Deps{Config: c, registerer: r, Log: slog.New(slog.DiscardHandler)})
		all = append(all, r.metrics(t, program.name)...)
	}
	return all
}

// recorder is a registry that remembers its collectors, because a metric with labels has no series before an event.
type recorder struct {
	*prometheus.Registry
	collectors []prometheus.Collector
}

func (r *recorder) Register(c prometheus.Collector) error {
	r.collectors = append(r.collectors, c)
	return r.Registry.Register(c)
}

func (r *recorder) MustRegister(collectors ...prometheus.Collector) {
	for _, c := range collectors {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// description matches the text of a prometheus.Desc, which has no other accessor.
var description = regexp.MustCompile(`^Desc\{fqName: "(.*?)", help: (".*"), constLabels: \{(.*?)\}, variableLabels: \{(.*?)\}\}$`)

func (r *recorder) metrics(t *testing.T, program string) (all []metric) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{} // types of the metrics that have series
	for _, f := range families {
		shown[f.GetName()] = strings.ToLower(f.GetType().String())
	}
	for _, c := range r.collectors {
		var found []metric
		for d := range described(c) {
			parts := description.FindStringSubmatch(d.String())
			if parts == nil {
				t.Fatalf("a descriptor is %s", d)
			}
			m := metric{program: program, name: parts[1]}
			if _, err := fmt.Sscanf(parts[2], "%q", &m.help); err != nil {
				t.Fatalf("%s: %v", d, err)
			}
			for label := range strings.SplitSeq(parts[3]+","+parts[4], ",") {
				if name, _, _ := strings.Cut(label, "="); name != "" {
					m.labels = append(m.labels, name)
				}
			}
			m.kind = cmp.Or(shown[m.name], kindOf(c))
			found = append(found, m)
		}
		slices.SortFunc(found, func(a, b metric) int { return cmp.Compare(a.name, b.name) }) // a registry has no order
		for _, m := range found {
			if m.kind == "" { // a collector of several metrics, some of which have series
				i := slices.IndexFunc(found, func(other metric) bool { return other.kind != "" })
				switch {
				case strings.HasSuffix(m.name, "_total"): // no call yet, or hidden by the label of the generation
					m.kind = "counter"
				case i >= 0:
					m.kind = found[i].kind
				case strings.HasSuffix(m.name, "_timestamp_seconds"): // a separate collector, which has no value yet
					m.kind = "gauge"
				default:
					t.Errorf("%s has no series and no known type: give it a series when it is registered", m.name)
				}
			}
			if (m.kind == "counter") != strings.HasSuffix(m.name, "_total") {
				t.Errorf("%s is a %s; only names of counters end in _total", m.name, m.kind)
			}
			if !strings.HasSuffix(m.help, ".") {
				t.Errorf("%s: its help is not a sentence: %s", m.name, m.help)
			}
			if !slices.ContainsFunc(all, func(other metric) bool { return other.name == m.name }) {
				all = append(all, m) // one of several with fixed values of a label
			}
		}
	}
	return all
}

func described(c prometheus.Collector) <-chan *prometheus.Desc {
	to := make(chan *prometheus.Desc)
	go func() { defer close(to); c.Describe(to) }()
	return to
}

func kindOf(c prometheus.Collector) string {
	switch c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	case *prometheus.HistogramVec:
		return "histogram"
	}
	return ""
}

// alertsOf returns the alerts that use each metric, in the order of the files. A histogram is used by its series.
func alertsOf(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("../../../deploy/alerts/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("rule files %v: %v", files, err)
	}
	name := regexp.MustCompile(`\bnavlog_\w+`)
	alerts := map[string][]string{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rules struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
		if err := yaml.Unmarshal(b, &rules); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, group := range rules.Groups {
			for _, rule := range group.Rules {
				for _, metric := range name.FindAllString(rule.Expr, -1) {
					metric = histogram.ReplaceAllString(metric, "")
					if !slices.Contains(alerts[metric], rule.Alert) {
						alerts[metric] = append(alerts[metric], rule.Alert)
					}
				}
			}
		}
	}
	return alerts
}

var histogram = regexp.MustCompile(`_(bucket|sum|count)$`)

// units are the units by the ends of names; the first match applies.
var units = []struct{ suffix, unit string }{
	{"_timestamp_seconds", "Unix time in seconds"}, {"_seconds", "seconds"}, {"_bytes", "bytes"},
	{"_block", "block number"}, {"_blocks", "blocks"}, {"_records", "records"}, {"_seq", "seq"},
}

func unitOf(m metric) string {
	for _, u := range units {
		if strings.HasSuffix(strings.TrimSuffix(m.name, "_total"), u.suffix) {
			return u.unit
		}
	}
	return ""
}

const metricsIntroduction = `# Metrics

<!-- Generated from the code: go test ./cmd/internal/wiring -run TestMetricsPage -update -->

These are the metrics of the four programs, at ` + "`/metrics` on `ops.listen`" +
	` ([operations.md](operations.md#see-how-it-is)). Each also has the
label ` + "`chain`" + `, the id of the chain. A metric without a unit is a count, or 1 for yes and 0 for no. A histogram has the series ` + "`_bucket`" + `
(with the label ` + "`le`), `_sum` and `_count`" +
	`. A metric with labels may have no series before the first event. The programs also export the
metrics of the Go runtime and of the process (` + "`go_...`, `process_...`" +
	`). Each alert links to its section, which explains what to do.

| metric | program | type | labels | unit | meaning | alerts |
|---|---|---|---|---|---|---|
`

func metricsPage(t *testing.T, all []metric, alerts map[string][]string) []byte {
	t.Helper()
	page := bytes.NewBufferString(metricsIntroduction)
	for _, m := range all {
		var labels, links []string
		for _, l := range m.labels {
			labels = append(labels, "`"+l+"`")
		}
		for _, a := range alerts[m.name] {
			links = append(links, fmt.Sprintf("[%s](operations.md#%s)", a, strings.ToLower(a)))
		}
		fmt.Fprintf(page, "| `%s` | %s | %s | %s | %s | %s | %s |\n", m.name, m.program, m.kind,
			strings.Join(labels, ", "), unitOf(m), m.help, strings.Join(links, ", "))
		delete(alerts, m.name)
	}
	for name, used := range alerts {
		t.Errorf("the alerts %v use %s, which no program exports", used, name)
	}
	return page.Bytes()
}

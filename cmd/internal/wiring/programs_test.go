package wiring

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// fakeProgram is ready if it has no fault.
type fakeProgram struct {
	fault  error
	stands bool
}

func (p *fakeProgram) Run(context.Context) error { return nil }
func (p *fakeProgram) Ready() error              { return p.fault }
func (p *fakeProgram) StandsBy() bool            { return p.stands }

// Each program exports its readiness, and there is an alert for each program that is not ready, or that is silent
// because it does not run.
func TestReadinessIsAlerted(t *testing.T) {
	metrics := prometheus.NewRegistry()
	d := &Deps{Metrics: metrics, registerer: metrics}
	works, waits := new(fakeProgram), &fakeProgram{fault: errors.New("no engine")}
	d.ShowReady("serve", works)
	d.ShowReady("ingest", waits)
	const metric = `# HELP navlog_ready 1 while the program is ready, as on /readyz.
# TYPE navlog_ready gauge
`
	if err := testutil.GatherAndCompare(d.Metrics,
		strings.NewReader(metric+"navlog_ready{program=\"ingest\"} 0\nnavlog_ready{program=\"serve\"} 1\n"),
		"navlog_ready"); err != nil {
		t.Error(err)
	}
	works.fault, waits.fault = waits.fault, nil
	if err := testutil.GatherAndCompare(d.Metrics,
		strings.NewReader(metric+"navlog_ready{program=\"ingest\"} 1\nnavlog_ready{program=\"serve\"} 0\n"),
		"navlog_ready"); err != nil {
		t.Error(err)
	}

	// A standby is ready but does not do the work: it must not hide a missing active instance.
	waits.stands = true
	const standby = `# HELP navlog_standby 1 while the program stands by for another instance that does the work.
# TYPE navlog_standby gauge
navlog_standby{program="ingest"} 1
navlog_standby{program="serve"} 0
`
	if err := testutil.GatherAndCompare(d.Metrics, strings.NewReader(standby), "navlog_standby"); err != nil {
		t.Error(err)
	}

	alerts, err := os.ReadFile("../../../deploy/alerts/programs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{
		"max by (chain, program) (navlog_ready * (1 - navlog_standby)) == 0", "(navlog_standby * (1 - navlog_ready)) == 1",
		`absent(navlog_ready{program="ingest"})`, `absent(navlog_ready{program="project"})`,
		`absent(navlog_ready{program="serve"})`, `absent(navlog_ready{program="dispatch"})`,
		// chainlog.HangingAfter
		"max by (chain) (navlog_projections_open_transaction_seconds) > 90",
		"max by (chain) (navlog_dispatch_open_transaction_seconds) > 90",
	} {
		if !strings.Contains(string(alerts), rule) {
			t.Errorf("no alert has %q", rule)
		}
	}
}

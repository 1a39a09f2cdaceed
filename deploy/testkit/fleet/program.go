package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/link"
	"github.com/navlog/navlog/deploy/testkit/stack"
)

// A Program is one of navlog's programs, running as a process.
type Program struct {
	*stack.Process
	Name    string
	API     string // URL of the HTTP API of serve, or empty
	MayExit bool   // that it exits, and that it is not ready, is no fault

	t   *testing.T
	ops string // URL of /readyz and /metrics
}

// Start starts programs (ingest, project, serve, dispatch) under their own names.
func (f *Fleet) Start(programs ...string) {
	f.t.Helper()
	for _, program := range programs {
		f.Launch(program, program)
	}
}

// Launch starts a program under a name, which also names its output in the fleet's folder. If the test fails, the end
// of the output is shown.
func (f *Fleet) Launch(program, name string, settings ...string) *Program {
	f.t.Helper()
	return f.LaunchAt(nil, program, name, settings...)
}

// LaunchAt starts a program at the other end of a link, or on this machine if that is nil.
func (f *Fleet) LaunchAt(at *link.Link, program, name string, settings ...string) *Program {
	f.t.Helper()
	listen := func() string {
		address, err := engines.FreeAddr()
		f.must(err)
		if at == nil {
			return address
		}
		_, port, err := net.SplitHostPort(address)
		f.must(err)
		return net.JoinHostPort(at.Host, port)
	}
	p := &Program{Name: name, t: f.t, ops: "http://" + listen()}
	settings = append(slices.Clone(settings), "NAVLOG_OPS_LISTEN="+p.ops[len("http://"):])
	if program == "serve" {
		p.API = "http://" + listen()
		settings = append(settings, "NAVLOG_HTTP_LISTEN="+p.API[len("http://"):])
	}
	cmd := exec.Command(f.navlog, program)
	if at != nil {
		cmd = exec.Command("ip", "netns", "exec", at.Namespace, f.navlog, program)
	}
	cmd.Dir, cmd.Env = f.Dir, f.environment(settings...)
	var err error
	p.Process, err = stack.Launch(cmd, filepath.Join(f.Dir, name+".log"))
	f.must(err)
	f.Programs[name] = p
	f.t.Cleanup(func() {
		p.Kill()
		if f.t.Failed() && f.Programs[name] == p {
			f.t.Logf("%s said:\n%s", name, p.Output())
		}
	})
	return p
}

var opsClient = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// Standby is the role of an instance that waits for another one to end.
const Standby = "standby"

// A Readiness is the body of /readyz.
type Readiness struct {
	OK           bool     // the program is ready for its role
	Role, Reason string   // active or standby; why it is not ready
	Unreachable  []string // a sentence for each engine and node that does not respond
}

// Readiness returns what the program reports about itself.
func (p *Program) Readiness() (state Readiness, _ error) {
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.ops+"/readyz", nil)
	if err != nil {
		return state, err
	}
	response, err := opsClient.Do(request)
	if err != nil {
		return state, fmt.Errorf("%s: %w", p.Name, err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&state); err != nil {
		return state, fmt.Errorf("%s: read its readiness: %w", p.Name, err)
	}
	return state, nil
}

// Ready returns nil if the program is ready, or else the reason.
func (p *Program) Ready() error {
	state, err := p.Readiness()
	if err == nil && !state.OK {
		err = fmt.Errorf("%s is not ready: %s", p.Name, state.Reason)
	}
	return err
}

// Metrics returns the program's metrics (see stack.Metrics).
func (p *Program) Metrics() (map[string]float64, error) {
	metrics, err := stack.Metrics(p.t.Context(), p.ops)
	if err != nil {
		err = fmt.Errorf("%s: %w", p.Name, err)
	}
	return metrics, err
}

// Metric returns one metric. It is an error if the program does not export it, or if another instance does that work.
func (p *Program) Metric(name string) (float64, error) {
	all, err := p.Metrics()
	if err != nil {
		return 0, err
	}
	value, ok := all[name]
	if !ok || math.IsNaN(value) {
		return 0, errors.New(p.Name + " exports no " + name)
	}
	return value, nil
}

// Writes waits until an ingest has added n blocks to the log.
func (f *Fleet) Writes(ingest *Program, n float64) {
	f.t.Helper()
	const metric = "navlog_ingest_indexed_block"
	var before float64
	f.Until(func() (err error) {
		before, err = ingest.Metric(metric)
		return err
	})
	f.Until(func() error {
		now, err := ingest.Metric(metric)
		if err == nil && now < before+n {
			err = fmt.Errorf("%s is at block %.0f, and was at %.0f", ingest.Name, now, before)
		}
		return err
	})
}

// Follows waits until project is ready and has the whole log that an ingest has written so far.
func (f *Fleet) Follows(project, ingest *Program) {
	f.t.Helper()
	var written float64
	f.Until(func() (err error) {
		written, err = ingest.Metric("navlog_ingest_seq")
		return err
	})
	f.Until(func() error {
		now, err := project.Metric("navlog_projections_seq")
		if err == nil && now < written {
			err = fmt.Errorf("%s is at seq %.0f of %.0f", project.Name, now, written)
		}
		return cmp.Or(err, project.Ready())
	})
}

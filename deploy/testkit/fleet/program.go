package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/stack"
)

// A Program is one of navlog's programs, running as a process.
type Program struct {
	*stack.Process
	Name string
	API  string // URL of the HTTP API of serve, or empty

	ops string // URL of /readyz and /metrics
}

// A Place is where a program runs. The zero value is this machine's own network.
type Place struct {
	Namespace string // network namespace, if it is not the machine's own
	Host      string // address of the program in that namespace, at which this process reaches it
}

// Launch starts a program (ingest, project, serve or dispatch) under a name, which also names its output in the fleet's
// folder.
func (f *Fleet) Launch(program, name string, settings ...string) (*Program, error) {
	return f.LaunchAt(Place{}, program, name, settings...)
}

// LaunchAt starts a program in a place.
func (f *Fleet) LaunchAt(at Place, program, name string, settings ...string) (*Program, error) {
	listen := func() (string, error) {
		address, err := engines.FreeAddr()
		if err != nil || at.Host == "" {
			return address, err
		}
		_, port, err := net.SplitHostPort(address)
		return net.JoinHostPort(at.Host, port), err
	}
	ops, err := listen()
	if err != nil {
		return nil, err
	}
	p := &Program{Name: name, ops: "http://" + ops}
	settings = append(slices.Clone(settings), "NAVLOG_OPS_LISTEN="+ops)
	if program == "serve" {
		api, err := listen()
		if err != nil {
			return nil, err
		}
		p.API = "http://" + api
		settings = append(settings, "NAVLOG_HTTP_LISTEN="+api)
	}
	cmd := exec.Command(f.navlog, program)
	if at.Namespace != "" {
		cmd = exec.Command("ip", "netns", "exec", at.Namespace, f.navlog, program)
	}
	cmd.Dir, cmd.Env = f.Dir, f.Environment(settings...)
	if p.Process, err = stack.Launch(cmd, filepath.Join(f.Dir, name+".log")); err != nil {
		return nil, err
	}
	f.programs = append(f.programs, p)
	return p, nil
}

// Forget makes the fleet accept that a program exits.
func (f *Fleet) Forget(p *Program) {
	f.programs = slices.DeleteFunc(f.programs, func(other *Program) bool { return other == p })
}

// exited returns an error if the program has exited.
func (p *Program) exited() error {
	if err := p.Running(); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return nil
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
func (p *Program) Readiness(ctx context.Context) (state Readiness, _ error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.ops+"/readyz", nil)
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
func (p *Program) Ready(ctx context.Context) error {
	state, err := p.Readiness(ctx)
	if err == nil && !state.OK {
		err = fmt.Errorf("%s is not ready: %s", p.Name, state.Reason)
	}
	return err
}

// Metrics returns the program's metrics (see stack.Metrics).
func (p *Program) Metrics(ctx context.Context) (map[string]float64, error) {
	metrics, err := stack.Metrics(ctx, p.ops)
	if err != nil {
		err = fmt.Errorf("%s: %w", p.Name, err)
	}
	return metrics, err
}

// Metric returns one metric. It is an error if the program does not export it.
func (p *Program) Metric(ctx context.Context, name string) (float64, error) {
	all, err := p.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	value, ok := all[name]
	if !ok {
		return 0, errors.New(p.Name + " exports no " + name)
	}
	return value, nil
}

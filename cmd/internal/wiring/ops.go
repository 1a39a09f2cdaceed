package wiring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// ListenOps opens the port of an ops server.
func ListenOps(listen string) (net.Listener, error) {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("listen on ops.listen %q: %w; give each program on a host its own port (NAVLOG_OPS_LISTEN)",
			listen, err)
	}
	return listener, nil
}

// ServeOps serves the paths of ops.listen for the programs of this process, by their names, until ctx ends. It watches
// whether their engines respond.
func (d *Deps) ServeOps(ctx context.Context, listener net.Listener, programs map[string]Program) error {
	reach, err := d.newReach(programs)
	if err != nil {
		listener.Close()
		return err
	}
	defer reach.Close()
	watching, end := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { reach.Run(watching) })
	defer watch.Wait()
	defer end()
	return serveOps(ctx, listener, d.Metrics, readinessOf(programs, reach.Outages))
}

// readiness is what /readyz reports about the programs of a process.
type readiness struct {
	ready   func() error    // nil while the programs do the work of their roles
	role    func() string   // nil if several programs share the process
	outages func() []string // of their engines, whether or not their work needs them at the moment
}

func readinessOf(programs map[string]Program, outages func() []string) readiness {
	names := slices.Sorted(maps.Keys(programs))
	if len(names) == 1 {
		p := programs[names[0]]
		return readiness{p.Ready, func() string { return RoleOf(p) }, outages}
	}
	ready := func() error {
		var faults []error
		for _, name := range names {
			if err := programs[name].Ready(); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", name, err))
			}
		}
		return errors.Join(faults...)
	}
	return readiness{ready, nil, outages}
}

func serveOps(ctx context.Context, listener net.Listener, gatherer prometheus.Gatherer, r readiness) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeOps(w, opsAnswer{OK: true}) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { writeOps(w, r.answer()) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second,
		MaxHeaderBytes: 16 << 10}
	stop := context.AfterFunc(ctx, func() {
		bound, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(bound)
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve ops: %w", err)
	}
	return nil
}

type opsAnswer struct {
	OK          bool     `json:"ok"`
	Role        string   `json:"role,omitempty"`
	Reason      string   `json:"reason,omitempty"`
	Unreachable []string `json:"unreachable,omitempty"`
}

// answer returns the body of /readyz. The reason begins with the engines that do not respond: what the program cannot
// do is mostly their consequence.
func (r readiness) answer() opsAnswer {
	a := opsAnswer{OK: true, Unreachable: r.outages()}
	if r.role != nil {
		a.Role = r.role()
	}
	if fault := r.ready(); fault != nil {
		a.OK, a.Reason = false, strings.Join(append(slices.Clone(a.Unreachable), fault.Error()), "; ")
	}
	return a
}

func writeOps(w http.ResponseWriter, answer opsAnswer) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if !answer.OK {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

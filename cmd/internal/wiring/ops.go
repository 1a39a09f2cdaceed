package wiring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
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

// Readiness is what /readyz reports about the programs of a process.
type Readiness struct {
	Ready   func() error    // nil while the program does the work of its role
	Role    func() string   // nil if several programs share the process
	Outages func() []string // of its engines, whether or not the work of its role needs them at the moment
}

// ServeOps serves until ctx ends.
func ServeOps(ctx context.Context, listener net.Listener, gatherer prometheus.Gatherer, readiness Readiness) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeOps(w, opsAnswer{OK: true}) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { writeOps(w, readiness.answer()) })
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
func (r Readiness) answer() opsAnswer {
	a := opsAnswer{OK: true, Unreachable: r.Outages()}
	if r.Role != nil {
		a.Role = r.Role()
	}
	if fault := r.Ready(); fault != nil {
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

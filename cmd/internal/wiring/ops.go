package wiring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// ListenOps opens the port of an ops server.
func ListenOps(listen string) (net.Listener, error) {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("listen on ops.listen %q: %w; give each program on a host its own port (NAVLOG_OPS_LISTEN)", listen, err)
	}
	return listener, nil
}

// ServeOps serves until ctx ends. ready returns nil while the program does the work of its role, which role returns;
// role is nil if several programs share the process.
func ServeOps(ctx context.Context, listener net.Listener, gatherer prometheus.Gatherer, ready func() error, role func() string) error {
	if role == nil {
		role = func() string { return "" }
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeOps(w, nil, "") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { writeOps(w, ready(), role()) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
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

func writeOps(w http.ResponseWriter, fault error, role string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	answer := map[string]any{"ok": fault == nil}
	if role != "" {
		answer["role"] = role
	}
	if fault != nil {
		answer["reason"] = fault.Error()
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

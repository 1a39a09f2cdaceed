package wiring

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestOpsServer checks the responses for a program that is ready and for one that is not, and what `navlog probe`, the
// health check of a container, makes of them.
func TestOpsServer(t *testing.T) {
	metrics, fault, role := prometheus.NewRegistry(), atomic.Pointer[error]{}, atomic.Pointer[string]{}
	active, standby := Active, Standby
	role.Store(&active)
	metrics.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "seen_total", Help: "For the test."}))
	ready := func() error {
		if err := fault.Load(); err != nil {
			return *err
		}
		return nil
	}
	ctx, stop := context.WithCancel(t.Context())
	listener, err := ListenOps("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, done := listener.Addr().String(), make(chan error, 1)
	var outages atomic.Pointer[[]string]
	outages.Store(new([]string))
	go func() {
		done <- serveOps(ctx, listener, metrics,
			readiness{ready, func() string { return *role.Load() }, func() []string { return *outages.Load() }})
	}()
	probe := func(path string) error {
		return Probe(t.Context(), "http://"+addr+path)
	}
	answers := func(path string, status int, ok bool, reason, role string, unreachable ...string) {
		t.Helper()
		response, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var got struct {
			OK           bool
			Reason, Role string
			Unreachable  []string
		}
		if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != status || got.OK != ok || got.Reason != reason || got.Role != role ||
			!slices.Equal(got.Unreachable, unreachable) {
			t.Errorf("%s responds with %d, %+v", path, response.StatusCode, got)
		}
	}
	answers("/healthz", http.StatusOK, true, "", "")
	answers("/readyz", http.StatusOK, true, "", "active")
	role.Store(&standby)
	answers("/readyz", http.StatusOK, true, "", "standby")
	if err := probe("/readyz"); err != nil {
		t.Error(err)
	}
	trouble := errors.New("the chain is down")
	fault.Store(&trouble)
	answers("/healthz", http.StatusOK, true, "", "")
	answers("/readyz", http.StatusServiceUnavailable, false, "the chain is down", "standby")
	if err := probe("/readyz"); err == nil || !strings.Contains(err.Error(), "503") ||
		!strings.Contains(err.Error(), "the chain is down") {
		t.Errorf("the probe returns %v", err)
	}
	outages.Store(&[]string{"Kafka is down", "PostgreSQL is down"})
	answers("/readyz", http.StatusServiceUnavailable, false, "Kafka is down; PostgreSQL is down; the chain is down",
		"standby", "Kafka is down", "PostgreSQL is down")
	fault.Store(nil)
	answers("/readyz", http.StatusOK, true, "", "standby", "Kafka is down", "PostgreSQL is down")
	response, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(text), "seen_total 0") {
		t.Errorf("the metrics are %q, %v", text, err)
	}
	if _, err := ListenOps(addr); err == nil || !strings.Contains(err.Error(), "NAVLOG_OPS_LISTEN") {
		t.Errorf("a port that is in use: %v", err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := probe("/readyz"); err == nil {
		t.Error("the probe succeeds although no server listens")
	}
}

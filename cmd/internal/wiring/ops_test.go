package wiring

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/cmd/internal/config"
)

// TestOpsServer: what it says of a program that is ready and of one that is not,
// and what `navlog probe`, which a container is judged by, makes of it.
func TestOpsServer(t *testing.T) {
	metrics, fault := prometheus.NewRegistry(), atomic.Pointer[error]{}
	metrics.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "seen_total", Help: "For the test."}))
	ready := func() error {
		if err := fault.Load(); err != nil {
			return *err
		}
		return nil
	}
	ctx, stop := context.WithCancel(t.Context())
	addr, done := startOps(t, ctx, metrics, ready)
	probe := func(path string) error {
		return Probe(t.Context(), "http://"+addr+path)
	}
	answers := func(path string, status int, ok bool, reason string) {
		t.Helper()
		response, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var got struct {
			OK     bool
			Reason string
		}
		if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != status || got.OK != ok || got.Reason != reason {
			t.Errorf("%s answers %d, %+v", path, response.StatusCode, got)
		}
	}
	answers("/healthz", http.StatusOK, true, "")
	answers("/readyz", http.StatusOK, true, "")
	if err := probe("/readyz"); err != nil {
		t.Error(err)
	}
	trouble := errors.New("the chain is away")
	fault.Store(&trouble)
	answers("/healthz", http.StatusOK, true, "")
	answers("/readyz", http.StatusServiceUnavailable, false, "the chain is away")
	if err := probe("/readyz"); err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "the chain is away") {
		t.Errorf("the probe says %v", err)
	}
	response, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(text), "seen_total 0") {
		t.Errorf("the metrics are %q, %v", text, err)
	}
	if err := ServeOps(t.Context(), config.Ops{Listen: addr}, metrics, ready); err == nil || !strings.Contains(err.Error(), "NAVLOG_OPS_LISTEN") {
		t.Errorf("a port that is taken: %v", err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := probe("/readyz"); err == nil {
		t.Error("the probe is content where nobody listens")
	}
}

// startOps starts an ops server on a free port and waits until it answers. The
// port may be taken by somebody else before it is used: then another is tried.
func startOps(t *testing.T, ctx context.Context, metrics prometheus.Gatherer, ready func() error) (addr string, done chan error) {
	t.Helper()
	for {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr, done = free.Addr().String(), make(chan error, 1)
		if err := free.Close(); err != nil {
			t.Fatal(err)
		}
		go func() { done <- ServeOps(ctx, config.Ops{Listen: addr}, metrics, ready) }()
		for len(done) == 0 {
			if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
				_ = conn.Close()
				return addr, done
			}
		}
	}
}

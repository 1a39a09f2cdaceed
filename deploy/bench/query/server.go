package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/navlog/navlog/deploy/bench/workload"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

// server is a process that serves HTTP.
type server struct {
	*stack.Process
	addr  string
	began time.Time
}

const readyWithin = 30 * time.Second

// serve starts `navlog serve` on the data set, and waits until it is ready.
func (w *world) serve(ctx context.Context, cacheBytes int) (*server, error) {
	addr, err := engines.FreeAddr()
	if err != nil {
		return nil, err
	}
	cmd := w.program("serve", "NAVLOG_HTTP_LISTEN="+addr, "NAVLOG_HTTP_ROUTER="+workload.Router.Hex(),
		"NAVLOG_HTTP_PUBLIC_RATE_LIMIT=0", "NAVLOG_HTTP_PUBLIC_ENGINE_TIME=0",
		"NAVLOG_HTTP_CACHE_BYTES="+strconv.Itoa(cacheBytes))
	return start(ctx, cmd, addr, "/readyz")
}

// serveLive is serve with the cache off while the chain grows. stop ends ctx and the chain.
func (w *world) serveLive(ctx context.Context) (_ context.Context, s *server, stop func(), err error) {
	if s, err = w.serve(ctx, 0); err != nil {
		return nil, nil, nil, err
	}
	ctx, end := context.WithCancel(ctx)
	go w.live(ctx)
	return ctx, s, func() { end(); s.stop() }, nil
}

// program returns the command that starts one of navlog's programs on the data set, with additional settings.
func (w *world) program(name string, settings ...string) *exec.Cmd {
	cmd := exec.Command(w.Navlog, name)
	cmd.Dir, cmd.Env = w.dir, w.Environment(append(settings, "NAVLOG_CHAIN_ID="+strconv.Itoa(workload.ChainID),
		"NAVLOG_OPS_LISTEN=127.0.0.1:0")...)
	return cmd
}

// bare starts a handler that does nothing but write these bytes.
func (w *world) bare(ctx context.Context, body []byte) (*server, error) {
	file := w.dir + "/bare.json"
	if err := os.WriteFile(file, body, 0o644); err != nil {
		return nil, err
	}
	addr, err := engines.FreeAddr()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return start(ctx, exec.Command(self, "--navlog", w.Navlog, "--bare", file, "--listen", addr), addr, "/")
}

// runBare is the handler's side of bare; it runs until ctx ends.
func runBare(ctx context.Context, file, addr string) error {
	body, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: addr, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})}
	context.AfterFunc(ctx, func() { server.Close() })
	return server.ListenAndServe()
}

func start(ctx context.Context, cmd *exec.Cmd, addr, path string) (*server, error) {
	log := filepath.Join(os.TempDir(), "server-"+strings.ReplaceAll(addr, ":", "-")+".log")
	defer os.Remove(log)
	s := &server{addr: addr, began: time.Now()}
	var err error
	if s.Process, err = stack.Launch(cmd, log); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	var unready error
	err = wait.Poll(bounded, 20*time.Millisecond, func() (bool, error) {
		unready = wait.Answers(bounded, "http://"+addr+path)
		return unready == nil, s.Running()
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it is not ready after %s: %w; if the data set was made by a newer version, build it again (make "+
			"build)", readyWithin, unready)
	}
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("wait for %s: %w", cmd, err)
	}
	return s, nil
}

// memory returns the peak resident memory of the process, in MiB.
func (s *server) memory() (float64, error) {
	peak := stack.Peak(s.Pid)
	if peak == 0 {
		return 0, fmt.Errorf("this system does not report the memory of process %d: run the benchmark on Linux", s.Pid)
	}
	return float64(peak) / (1 << 20), nil
}

func (s *server) stop() { _ = s.Stop() } // the exit status does not matter

// fetch returns the body of one response.
func fetch(url string) ([]byte, error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

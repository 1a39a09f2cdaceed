package ingest

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// A supervisor keeps an ingest running: however it ends, another one is started, also after the planned deaths are used
// up. The supervisor only stops at an exit that it cannot recover from.
type supervisor struct {
	spec  func() childSpec
	count func(what string)
	dir   string // of the processes' output

	mu     sync.Mutex
	wanted bool
	now    *process
	deaths []Death
	fatal  error
	last   *process // the newest one, for its output
	all    []*process
}

// restartPause prevents a process that fails at its start from using up the CPU.
const restartPause = 50 * time.Millisecond

// start keeps an ingest running from now on.
func (s *supervisor) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = true
	s.launch()
}

// launch starts a process, which gets the next planned death, and supervises it. The lock must be held.
func (s *supervisor) launch() {
	var d Death
	if len(s.deaths) > 0 {
		d, s.deaths = s.deaths[0], s.deaths[1:]
	}
	p, err := s.spawn(d)
	if err != nil {
		s.fatal = errors.Join(s.fatal, err)
		return
	}
	s.now = p
	go s.watch(p)
}

func (s *supervisor) spawn(d Death) (*process, error) {
	spec := s.spec()
	spec.Death = d
	p, err := startProcess(spec, filepath.Join(s.dir, fmt.Sprintf("ingest-%d.log", len(s.all)+1)))
	if err != nil {
		return nil, err
	}
	s.last = p
	s.all = append(s.all, p)
	if d.Wait > 0 {
		timer := time.AfterFunc(d.Wait, func() { p.killed.Store(true); p.Signal(syscall.SIGKILL) })
		go func() { <-p.Ended(); timer.Stop() }()
	}
	return p, nil
}

// watch waits for the end of a process and starts the next one.
func (s *supervisor) watch(p *process) {
	<-p.Ended()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != p {
		return
	}
	s.now = nil
	switch {
	case p.deathBegun():
		what := "SIGKILL at some moment"
		if p.death.Step != "" {
			what = "SIGKILL " + p.death.Step
		}
		s.count(what)
	case p.code() != exitFailed:
		s.fatal = errors.Join(s.fatal, fmt.Errorf("ingest exited by itself with %s", p.State()))
		return
	}
	if !s.wanted {
		return
	}
	s.mu.Unlock()
	time.Sleep(restartPause)
	s.mu.Lock()
	if s.wanted && s.now == nil {
		s.launch()
	}
}

// release takes the running process, if any, away from the supervisor, which does not start another one.
func (s *supervisor) release() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.now
	s.now, s.wanted = nil, false
	return p
}

// end kills every process that was ever started, because a script may end while a standby runs that is no longer
// supervised.
func (s *supervisor) end() {
	s.release()
	for _, p := range s.all {
		p.kill()
	}
}

// stop stops the running process, gracefully or not, and starts no other one.
func (s *supervisor) stop(orderly bool) error {
	p := s.release()
	if p == nil {
		return s.err() // it may just have exited by itself
	}
	if !orderly {
		return p.killAndCheck()
	}
	p.stdin.Close()
	select {
	case <-p.Ended():
	case <-time.After(patience):
		p.kill()
		return fmt.Errorf("ingest did not end within %s of the signal", patience)
	}
	if code := p.code(); code != exitDone && code != exitFailed && !p.deathBegun() {
		return fmt.Errorf("ingest ended with %s after the signal", p.State())
	}
	return nil
}

// supervise puts a process that was released or spawned under supervision.
func (s *supervisor) supervise(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted, s.now = true, p
	go s.watch(p)
}

func (s *supervisor) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fatal
}

func (s *supervisor) outputTail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return ""
	}
	return s.last.Output()
}

package main

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// A supervisor keeps an ingest running: whatever way it ends, another one is started, until the deaths are used up and
// beyond. Only what a supervisor cannot cure ends it.
type supervisor struct {
	spec  func() childSpec
	count func(what string)

	mu     sync.Mutex
	wanted bool
	now    *process
	deaths []Death
	fatal  error
	last   *process // the newest, for what it says
	all    []*process
}

// restartPause keeps a process that cannot start from eating the machine.
const restartPause = 50 * time.Millisecond

// start wants an ingest to run, with the next death.
func (s *supervisor) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = true
	s.launch(s.nextDeath())
}

func (s *supervisor) nextDeath() (d Death) {
	if len(s.deaths) > 0 {
		d, s.deaths = s.deaths[0], s.deaths[1:]
	}
	return d
}

// launch starts a process as the one that is kept running. The lock is held.
func (s *supervisor) launch(d Death) *process {
	p, err := s.spawn(d)
	if err != nil {
		s.fatal = errors.Join(s.fatal, err)
		return nil
	}
	s.now = p
	go s.watch(p)
	return p
}

func (s *supervisor) spawn(d Death) (*process, error) {
	spec := s.spec()
	spec.Death = d
	p, err := startProcess(spec)
	if err != nil {
		return nil, err
	}
	s.last = p
	s.all = append(s.all, p)
	if d.Wait > 0 {
		timer := time.AfterFunc(d.Wait, func() { p.once.Do(func() { close(p.struck) }); p.signal(syscall.SIGKILL) })
		go func() { <-p.done; timer.Stop() }()
	}
	return p, nil
}

// watch waits for the end of a process and starts the next one.
func (s *supervisor) watch(p *process) {
	<-p.done
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != p {
		return
	}
	s.now = nil
	select {
	case <-p.struck:
		what := "SIGKILL at some moment"
		if p.death.Step != "" {
			what = "SIGKILL " + p.death.Step
		}
		s.count(what)
	default:
		switch p.code() {
		case exitFailed:
		default:
			s.fatal = errors.Join(s.fatal, fmt.Errorf("ingest ended with %s although nobody asked it to", p.cmd.ProcessState))
			return
		}
	}
	if !s.wanted {
		return
	}
	s.mu.Unlock()
	time.Sleep(restartPause)
	s.mu.Lock()
	if s.wanted && s.now == nil {
		s.launch(s.nextDeath())
	}
}

// release takes the running process, if any, out of the supervisor's hands, which starts no other one.
func (s *supervisor) release() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.now
	s.now, s.wanted = nil, false
	return p
}

// end ends every process that was ever started: a script may end while one stands by that nobody runs any more.
func (s *supervisor) end() {
	s.release()
	for _, p := range s.all {
		p.kill()
	}
}

// stop ends the running process, in good order or not, and starts no other one.
func (s *supervisor) stop(orderly bool) error {
	p := s.release()
	if p == nil {
		return s.err() // it may have ended by itself just now
	}
	if !orderly {
		return p.putDown()
	}
	p.stdin.Close()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.kill()
		return fmt.Errorf("ingest did not end within %s of being asked to", patience)
	}
	select {
	case <-p.struck:
		return nil
	default:
	}
	if code := p.code(); code != exitDone && code != exitFailed {
		return fmt.Errorf("ingest ended with %s when it was asked to end", p.cmd.ProcessState)
	}
	return nil
}

// adopt makes a process that was released or spawned the one that is kept running.
func (s *supervisor) adopt(p *process) {
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

func (s *supervisor) lastWords() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return ""
	}
	return s.last.says.String()
}

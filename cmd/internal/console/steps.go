package console

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/navlog/navlog/cmd/internal/cli"
)

// Steps shows the progress of a command that works in several steps: as a progress line on a terminal, otherwise as a
// log line now and then, and so not at all if the command ends sooner. It always goes to standard error, whatever the
// format of the result.
type Steps struct {
	c   *Console
	log *slog.Logger
	now func() time.Time

	mu          sync.Mutex
	what        string // empty: no step is running
	done, of    uint64
	first       uint64    // done at the first Report of this step
	began       time.Time // time of the first Report of this step
	ended, gone chan struct{}
	end         sync.Once
}

// Progress shows the progress of a command on standard error. The caller ends it before writing the result, which may
// go to the same terminal.
func Progress(f cli.Flags, s *cli.Streams) *Steps {
	screen := New(s.Err)
	return screen.Steps(f.Logger(screen))
}

// Steps starts to show progress. Call End before writing the result.
func (c *Console) Steps(log *slog.Logger) *Steps {
	s := c.steps(log, time.Now)
	go s.watch()
	return s
}

func (c *Console) steps(log *slog.Logger, now func() time.Time) *Steps {
	return &Steps{c: c, log: log, now: now, ended: make(chan struct{}), gone: make(chan struct{})}
}

// Report sets the current step and how much of it is done; of is 0 if the total is unknown. It may be called as often
// as needed, also concurrently.
func (s *Steps) Report(what string, done, of uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if what != s.what {
		s.what, s.first, s.began = what, done, s.now()
	}
	s.done, s.of = done, of
}

// End removes the progress line. It may be called more than once.
func (s *Steps) End() {
	s.end.Do(func() { close(s.ended) })
	<-s.gone
}

func (s *Steps) watch() {
	defer close(s.gone)
	tick := time.NewTicker(s.c.every)
	defer tick.Stop()
	for {
		select {
		case <-s.ended:
			s.c.end()
			return
		case <-tick.C:
			s.show()
		}
	}
}

// show shows the current step.
func (s *Steps) show() {
	s.mu.Lock()
	what, done, of, took := s.what, s.done, s.of, s.now().Sub(s.began)
	left := s.left(took)
	s.mu.Unlock()
	took = took.Round(time.Second)
	switch {
	case what == "":
	case !s.c.terminal && of == 0:
		s.log.Info(what, "done", done, "since", took)
	case !s.c.terminal:
		s.log.Info(what, "done", done, "of", of, "left", left)
	case of == 0 && done == 0:
		s.c.show(0, fmt.Sprintf("%s  since %s", what, took))
	case of == 0:
		s.c.show(0, fmt.Sprintf("%s  %d  since %s", what, done, took))
	default:
		part := min(1, float64(done)/float64(of))
		s.c.show(part, fmt.Sprintf("%3.0f %%  %s  %d of %d  %s left", 100*part, what, done, of, left))
	}
}

// left estimates the time that the rest takes at the speed since the first Report of the step; "?" if it is unknown.
func (s *Steps) left(took time.Duration) string {
	if s.done <= s.first || s.of < s.done {
		return "?"
	}
	return time.Duration(float64(took) * float64(s.of-s.done) / float64(s.done-s.first)).Round(time.Second).String()
}

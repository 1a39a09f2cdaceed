package console

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Steps shows how far a command is that does one thing after the other: as a line that
// moves on a terminal, else as a log line now and then, and so not at all where the
// command is done sooner. All of it goes to standard error, whatever the answer is
// written as.
type Steps struct {
	c   *Console
	log *slog.Logger
	now func() time.Time

	mu          sync.Mutex
	what        string // empty: nothing goes on
	done, of    uint64
	first       uint64    // done, when it was told first
	began       time.Time // when it was told first
	ended, gone chan struct{}
	end         sync.Once
}

// Steps begins to show. End it before the answer is written.
func (c *Console) Steps(log *slog.Logger) *Steps {
	s := c.steps(log, time.Now)
	go s.watch()
	return s
}

func (c *Console) steps(log *slog.Logger, now func() time.Time) *Steps {
	return &Steps{c: c, log: log, now: now, ended: make(chan struct{}), gone: make(chan struct{})}
}

// Tell says what goes on and how much of it is done; of is 0 where nobody knows how much
// there is. It may be called as often as anything happens, and by several at a time.
func (s *Steps) Tell(what string, done, of uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if what != s.what {
		s.what, s.first, s.began = what, done, s.now()
	}
	s.done, s.of = done, of
}

// End removes the line of progress. It may be called again.
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
			s.c.end(true)
			return
		case <-tick.C:
			s.show()
		}
	}
}

// show shows what goes on now.
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

// left is the time that the rest takes, if it goes on as it did since it was told of
// first; "?" where that is not known.
func (s *Steps) left(took time.Duration) string {
	if s.done <= s.first || s.of < s.done {
		return "?"
	}
	return time.Duration(float64(took) * float64(s.of-s.done) / float64(s.done-s.first)).Round(time.Second).String()
}

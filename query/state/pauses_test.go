package state

import (
	"testing"
	"time"
)

// TestPauses covers the state machine that decides how long a look may wait.
func TestPauses(t *testing.T) {
	for _, c := range []struct {
		name                           string
		listening, missed, heard, same bool
		want                           time.Duration
		after                          bool // missed afterwards
	}{
		{"nobody to hear", false, false, false, true, lookEvery, false},
		{"nobody to hear, and something new", false, false, false, false, lookEvery, true},
		{"nothing said, nothing new", true, false, false, true, lookRarely, false},
		{"something new that was said", true, false, true, false, lookRarely, false},
		{"something new that nobody said", true, false, false, false, lookEvery, true},
		{"still nothing said", true, true, false, true, lookEvery, true},
		{"said again", true, true, true, false, lookRarely, false},
		{"said late", true, true, true, true, lookRarely, false},
	} {
		l := newListener()
		l.missed = c.missed
		l.listening.Store(c.listening)
		if got := l.pause(c.heard, c.same); got != c.want || l.missed != c.after {
			t.Errorf("%s: %s, missed %v", c.name, got, l.missed)
		}
	}
}

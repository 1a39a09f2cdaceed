package state

import (
	"testing"
	"time"
)

// TestPauses covers the state machine that decides how long a look may wait.
func TestPauses(t *testing.T) {
	for _, c := range []struct {
		name                              string
		listening, missed, notified, same bool
		want                              time.Duration
		after                             bool // missed afterwards
	}{
		{"not listening", false, false, false, true, lookEvery, false},
		{"not listening, and a change", false, false, false, false, lookEvery, true},
		{"no notification, no change", true, false, false, true, lookRarely, false},
		{"a change with a notification", true, false, true, false, lookRarely, false},
		{"a change without a notification", true, false, false, false, lookEvery, true},
		{"still no notification", true, true, false, true, lookEvery, true},
		{"notified again", true, true, true, false, lookRarely, false},
		{"notified late", true, true, true, true, lookRarely, false},
	} {
		l := newListener()
		l.missed = c.missed
		l.listening.Store(c.listening)
		if got := l.pause(c.notified, c.same); got != c.want || l.missed != c.after {
			t.Errorf("%s: %s, missed %v", c.name, got, l.missed)
		}
	}
}

package lane

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/registry"
)

// The API document promises 1 attempt and 3 retries, after 1 s, 5 s and 15 s, up to a fifth
// later and never earlier.
func TestSpecifiedRetries(t *testing.T) {
	s := Specified()
	if !slices.Equal(
		s.Retries, []time.Duration{time.Second, 5 * time.Second, 15 * time.Second},
	) || s.Deadline != 10*time.Second ||
		s.OpenMin != 5*time.Second || s.OpenMax != 15*time.Minute {
		t.Errorf("%+v", s)
	}
	for attempts, base := range s.Retries {
		var waits []time.Duration
		for range 1000 {
			v := s.judge(int32(attempts), false, false)
			if v.State != registry.Pending || v.Finished || v.Attempts != int32(attempts)+1 || v.Wait < base ||
				v.Wait > base+base/5 {
				t.Fatalf("after %d attempts: %+v", attempts, v)
			}
			waits = append(waits, v.Wait)
		}
		if spread := slices.Max(waits) - slices.Min(waits); spread < base/10 {
			t.Errorf("retry %d is spread over only %s", attempts+1, spread)
		}
	}
	for what, c := range map[string]struct{ got, want Verdict }{
		"the last attempt": {s.judge(3, false, false), Verdict{
			State: registry.Failed, Attempts: 4, Finished: true,
		}},
		"a rejected probe": {s.judge(2, false, true), Verdict{State: registry.Parked, Attempts: 2}},
		"an answered probe": {s.judge(2, true, true), Verdict{
			State: registry.Delivered, Attempts: 3, Finished: true,
		}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v, want %+v", what, c.got, c.want)
		}
	}
}

// A replay starts a finished delivery over, and leaves others as they are.
func TestReplayableStates(t *testing.T) {
	f := newFixture(t).withPostgres()
	id := uuid.New()
	for state, want := range map[string]bool{
		registry.Pending: false, registry.Parked: false, registry.Delivered: true, registry.Failed: true,
		registry.NoEndpoint: true,
	} {
		f.exec("DELETE FROM delivery")
		f.exec("INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, attempts, finished_at) VALUES "+
			"($1, 7, 1, 'deposit.referral', '{}', $2, 4, now())", id, state)
		if again := f.replays(7, id); again != want {
			t.Errorf("replay of a %s delivery: %t", state, again)
		} else if want && f.number("SELECT count(*) FROM delivery WHERE state = 'pending' AND attempts = 0 AND "+
			"finished_at IS NULL") != 1 {
			t.Errorf("a replayed %s delivery does not start over", state)
		}
	}
}

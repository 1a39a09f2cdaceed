package dispatch

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/registry"
)

// What partners are promised: after a refused attempt up to three more follow, each at least this long after the
// previous one.
var waits = []time.Duration{time.Second, 5 * time.Second, 15 * time.Second}

// rounding is how much the readings of two clocks of one machine may differ.
const rounding = 5 * time.Millisecond

// lost lists the events that were not delivered and for which PostgreSQL shows no valid reason: an open breaker, no
// endpoint, or attempts that ran out because all were refused.
func (l *ledger) lost(histories map[uuid.UUID]history, down, mute uint32) []error {
	var lost []error
	for id, s := range histories {
		now, known := l.states[id]
		why := ""
		switch partner := s.referral.Partner; {
		case !known:
			why = "PostgreSQL does not know it"
		case partner == mute:
			if now.state != registry.NoEndpoint || len(s.posts) > 0 {
				why = "its partner has no URL"
			}
		case now.state == registry.Delivered:
			if !s.accepted {
				why = "its receiver has accepted none of its POSTs"
			}
		case now.state == registry.Parked:
			if partner != down || !l.opened[partner] {
				why = "no breaker of its partner is open"
			}
		case now.state == registry.Failed:
			if !s.stubborn && partner != down || s.accepted || now.attempts != 1+len(waits) || len(s.posts) < 1+len(waits) {
				why = fmt.Sprintf("of %d POSTs one was accepted: %t", len(s.posts), s.accepted)
			}
		default:
			why = "it is due and was not sent"
		}
		if why != "" {
			lost = append(lost, fmt.Errorf("event %s of partner %d is %q after %d attempts: %s", id, s.referral.Partner,
				now.state, now.attempts, why))
		}
	}
	return lost
}

// extra counts, per partner, the arrivals that the responses do not explain.
func extra(histories map[uuid.UUID]history) map[uint32]int {
	more := map[uint32]int{}
	for _, s := range histories {
		unexplained := -1 // the first arrival needs no explanation
		for _, p := range s.posts {
			if !p.refused {
				unexplained++
			}
		}
		more[s.referral.Partner] += max(0, unexplained)
	}
	return more
}

// attempts returns the POSTs of an event, without the first POST of an attempt that sent two. A dispatcher may send a
// request again within an attempt once, on a new connection, if the receiver closed a connection that may have been
// reused. Both POSTs have the attempt's signature.
func (s history) attempts() (last []post) {
	again := false // the newest POST is the second of its attempt
	for _, p := range s.posts {
		if n := len(last); n > 0 && !again && last[n-1].hungUp && p.own && last[n-1].second == p.second {
			last[n-1], again = p, true
			continue
		}
		last, again = append(last, p), false
	}
	return last
}

// schedule checks the attempts of each event against what partners are promised. If the event's partner changed hands
// meanwhile, each change allows one more POST; otherwise every wait is checked. The partner that is down is skipped,
// because probes do not count.
func (l *ledger) schedule(histories map[uuid.UUID]history, down uint32) (judged int, err error) {
	var faults []error
	for id, s := range histories {
		if s.referral.Partner == down {
			continue
		}
		refused, causes := 0, l.possibleCauses(s)
		attempts := s.attempts()
		for i, p := range attempts {
			if i > 0 && causes == 0 {
				before := attempts[i-1]
				switch gap := p.at.Sub(before.at); {
				case !before.refused:
					faults = append(faults, fmt.Errorf("event %s came again although it was accepted and its partner was not taken "+
						"away", id))
				case i > len(waits):
					faults = append(faults, fmt.Errorf("event %s came %d times, and no more than 1 + %d are promised", id, i+1,
						len(waits)))
				case gap < waits[i-1]-rounding:
					faults = append(faults, fmt.Errorf("event %s came again %s after POST %d was refused, and %s are promised", id,
						gap, i, waits[i-1]))
				}
			}
			if p.refused {
				refused++
			}
		}
		if refused > 1+len(waits)+causes {
			faults = append(faults, fmt.Errorf("event %s was refused %d times, and its partner changed hands %d times meanwhile",
				id, refused, causes))
		}
		if refused > 0 && causes == 0 {
			judged++
		}
	}
	return judged, errors.Join(faults...)
}

// sequences checks that each healthy partner received every sequence from 1 on.
func sequences(histories map[uuid.UUID]history, down, mute uint32) error {
	seen, events := map[uint32]map[int64]bool{}, map[uint32]int64{}
	for _, s := range histories {
		p := s.referral.Partner
		if p == down || p == mute {
			continue
		}
		if seen[p] == nil {
			seen[p] = map[int64]bool{}
		}
		seen[p][s.sequence] = true
		events[p]++
	}
	var faults []error
	for partner, n := range events {
		for sequence := int64(1); sequence <= n; sequence++ {
			if !seen[partner][sequence] {
				faults = append(faults, fmt.Errorf("partner %d: sequence %d of %d is missing", partner, sequence, n))
			}
		}
	}
	return errors.Join(faults...)
}

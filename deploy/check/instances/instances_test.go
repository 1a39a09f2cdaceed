// Package instances checks that limits, leases and revocations hold over one, two and four processes of serve and
// dispatch on the same engines.
package instances

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/fleet"
)

const (
	partners = 8
	// limit of the requests of a partner in a minute.
	limit = 60
	// senders of concurrent requests to each instance.
	senders = 3
	// interval of the traffic: a block.
	interval = 200 * time.Millisecond
	lease    = 5 * time.Second
	// concurrency of the requests to a partner.
	concurrency = 4
	route       = "/api/v1/partner/router"
)

// system is the fleet and the instances that run.
type system struct {
	*fleet.Fleet
	t               *testing.T
	serve, dispatch []*fleet.Program
}

func newSystem(t *testing.T) *system {
	t.Helper()
	s := &system{t: t}
	o := fleet.Options{Partners: partners, SlotsInEpoch: 1, Settings: []string{
		fmt.Sprint("NAVLOG_HTTP_PARTNER_RATE_LIMIT=", limit),
		fmt.Sprintf("NAVLOG_WEBHOOKS_LEASE_SECONDS=%.0f", lease.Seconds()),
		fmt.Sprint("NAVLOG_WEBHOOKS_PER_PARTNER_CONCURRENCY=", concurrency),
	}}
	s.Fleet = fleet.New(t, o)
	s.Start("ingest", "project")
	return s
}

// grow starts instances of serve and dispatch until there are n of each, and waits until all are ready.
func (s *system) grow(n int) {
	s.t.Helper()
	for i := len(s.serve); i < n; i++ {
		for program, of := range map[string]*[]*fleet.Program{"serve": &s.serve, "dispatch": &s.dispatch} {
			*of = append(*of, s.Launch(program, fmt.Sprint(program, "-", i+1)))
		}
	}
	s.Until(s.Ready)
}

// get sends a request of a partner to an instance and returns the status of the response.
func (s *system) get(p *fleet.Program, partner int) (status int, header http.Header, err error) {
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, p.API+route, nil)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("X-API-Key", s.Partners[partner-1].APIKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	return response.StatusCode, response.Header, response.Body.Close()
}

// limited sends more requests of a partner than the limit to all instances at the same time, and checks that they
// together grant exactly the limit.
func (s *system) limited(partner int) {
	s.t.Helper()
	began := time.Now()
	var granted, rejected atomic.Int64
	var group sync.WaitGroup
	for _, p := range s.serve {
		for range senders {
			group.Go(func() {
				for {
					status, header, err := s.get(p, partner)
					switch {
					case err != nil:
						s.t.Error(err)
						return
					case status == http.StatusOK:
						granted.Add(1)
						continue
					case status != http.StatusTooManyRequests:
						s.t.Errorf("%s responds with %d", p.Name, status)
						return
					}
					rejected.Add(1)
					if wait, err := strconv.Atoi(header.Get("Retry-After")); err != nil || wait < 1 || wait > 60 {
						s.t.Errorf("%s responds with Retry-After %q", p.Name, header.Get("Retry-After"))
					}
					return
				}
			})
		}
	}
	group.Wait()
	took := time.Since(began)
	s.t.Logf("%d instances grant %d requests of partner %d in %s, and reject %d",
		len(s.serve), granted.Load(), partner, took.Round(time.Millisecond), rejected.Load())
	if want := int64(len(s.serve) * senders); granted.Load() != limit || rejected.Load() != want {
		s.t.Errorf("%d granted of %d, %d rejected of %d", granted.Load(), limit, rejected.Load(), want)
	}
}

// revoked revokes a partner's key, and waits until every instance rejects it.
func (s *system) revoked(partner int) {
	s.t.Helper()
	for _, p := range s.serve { // which then have the key in their caches
		if status, _, err := s.get(p, partner); err != nil || status != http.StatusOK {
			s.t.Fatalf("%s responds with %d: %v", p.Name, status, err)
		}
	}
	if _, err := s.Pool.Exec(s.t.Context(), "UPDATE api_key SET revoked_at = now() WHERE partner_id = $1",
		partner); err != nil {
		s.t.Fatal(err)
	}
	began := time.Now()
	s.Until(func() error {
		for _, p := range s.serve {
			if status, _, err := s.get(p, partner); err != nil || status != http.StatusUnauthorized {
				return fmt.Errorf("%s responds with %d to a revoked key: %w", p.Name, status, err)
			}
		}
		return nil
	})
	took := time.Since(began)
	s.t.Logf("%d instances reject a revoked key after %s", len(s.serve), took.Round(time.Millisecond))
	if took > 10*time.Second {
		s.t.Errorf("%d instances reject a revoked key only after %s", len(s.serve), took)
	}
}

// shared waits until all partners have a live lease, and no dispatcher has more than its share and the one partner more
// that it may keep.
func (s *system) shared(dispatchers int) {
	s.t.Helper()
	began := time.Now()
	most := (partners+dispatchers-1)/dispatchers + 1
	var owners, live, largest int
	s.Until(func() error {
		row := s.Pool.QueryRow(s.t.Context(), `SELECT count(*), coalesce(sum(n), 0), coalesce(max(n), 0)
			FROM (SELECT count(*) AS n FROM lease WHERE until > now() GROUP BY owner) o`)
		if err := row.Scan(&owners, &live, &largest); err != nil {
			return err
		}
		if owners > dispatchers || live != partners || largest > most {
			return fmt.Errorf("%d leases of %d dispatchers, at most %d each; want %d of %d, at most %d",
				live, owners, largest, partners, dispatchers, most)
		}
		return nil
	})
	s.t.Logf("%d of %d dispatchers have %d partners, at most %d each, after %.1f s",
		owners, dispatchers, partners, largest, time.Since(began).Seconds())
}

// arrive waits until more events have arrived.
func (s *system) arrive() {
	s.t.Helper()
	before := s.Receiver.Count()
	s.Until(func() error {
		if now := s.Receiver.Count(); now < before+2*partners {
			return fmt.Errorf("%d events have arrived, and %d had before", now, before)
		}
		return nil
	})
}

func TestInstances(t *testing.T) {
	s := newSystem(t)
	stopTraffic := s.Traffic(interval)
	partner := 0
	next := func() int { partner++; return partner }
	for _, n := range []int{1, 2, 4} {
		s.grow(n)
		s.shared(n)
		s.arrive()
		s.limited(next())
		s.revoked(next())
	}
	// Until here every lease was handed over in order. Now one of four dispatchers dies.
	dead := s.dispatch[0]
	dead.MayExit = true
	dead.Kill()
	s.arrive()
	stopTraffic()
	verdict := s.Compare(s.Finish(s.Programs["ingest"], s.Programs["project"]))
	most := concurrency * ((partners+3)/4 + 1)
	if verdict.Repeated > most {
		t.Errorf("a dispatcher that dies may repeat at most %d events: %s", most, verdict)
	}
}

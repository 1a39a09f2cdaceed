// Package underload checks that the whole of navlog keeps responding while its read models are rebuilt, switched, and
// switched back.
package underload

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/fleet"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

// interval of the traffic: a block.
const interval = 50 * time.Millisecond

// system is ingest, project and serve on a chain that has a history.
type system struct {
	*fleet.Fleet
	api string
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newSystem(t *testing.T) *system {
	t.Helper()
	f := fleet.New(t, fleet.Options{Partners: 2, SlotsInEpoch: 1, Settings: []string{
		"NAVLOG_HTTP_PUBLIC_RATE_LIMIT=0", "NAVLOG_HTTP_PUBLIC_ENGINE_TIME=0",
		// No request waits for a slot or ends at its time limit, however busy the machine is: then a failure is a fault.
		"NAVLOG_HTTP_CONCURRENCY=32", "NAVLOG_HTTP_REQUEST_TIMEOUT=2m", "NAVLOG_HTTP_WRITE_TIMEOUT=3m",
	}})
	f.Start("ingest", "project", "serve")
	f.Until(f.Ready)
	return &system{f, f.Programs["serve"].API}
}

// answer is the response to one request.
type answer struct {
	generation, seq, block, body string
}

// ask requests a path. Any status except 200, and a response without a position, is an error.
func (s *system) ask(ctx context.Context, path string) (answer, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, s.api+path, nil)
	if err != nil {
		return answer{}, err
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return answer{}, err
	}
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	a := answer{r.Header.Get("X-Generation"), r.Header.Get("X-Indexed-Seq"), r.Header.Get("X-Indexed-Block"), string(body)}
	if err == nil && (r.StatusCode != http.StatusOK || a.generation == "" || a.seq == "" || a.block == "") {
		err = fmt.Errorf("%s: %s, %v, %s", path, r.Status, r.Header, body)
	}
	return a, err
}

// load sends requests until it is stopped, and keeps the responses.
type load struct {
	mu      sync.Mutex
	asked   map[string]int // by generation
	bodies  map[string]answer
	faults  []string
	stopped chan struct{}
	wait    sync.WaitGroup
}

// load asks the newest-block questions hot up to 200 times a second, with at most 16 requests in flight, and cold
// ones, each different, 10 times a second. More would take the cores from the packages beside this one; a response from
// two generations would occur only around a switch.
func (s *system) load(hot []string, cold func(i int) string) *load {
	l := &load{asked: map[string]int{}, bodies: map[string]answer{}, stopped: make(chan struct{})}
	l.asking(s, 5*time.Millisecond, 16, func(i int) string { return hot[i%len(hot)] })
	l.asking(s, 100*time.Millisecond, 2, cold)
	return l
}

func (l *load) asking(s *system, every time.Duration, atOnce int, path func(int) string) {
	turns := make(chan string)
	l.wait.Go(func() {
		defer close(turns)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
			case <-l.stopped:
				return
			}
			select {
			case turns <- path(i):
			case <-l.stopped:
				return
			}
		}
	})
	for range atOnce {
		l.wait.Go(func() {
			for path := range turns {
				a, err := s.ask(context.Background(), path)
				l.note(path, a, err)
			}
		})
	}
}

// note records an answer. Two answers to the same question from the same generation at the same seq must be identical,
// byte for byte.
func (l *load) note(path string, a answer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.faults = append(l.faults, err.Error())
		return
	}
	l.asked[a.generation]++
	key := path + " generation " + a.generation + " seq " + a.seq
	if before, ok := l.bodies[key]; ok && before != a {
		l.faults = append(l.faults, fmt.Sprintf("%s: %+v and %+v", key, before, a))
	}
	l.bodies[key] = a
}

// answered returns how many requests a generation answered.
func (l *load) answered(generation string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[generation]
}

func (l *load) stop() {
	close(l.stopped)
	l.wait.Wait()
}

// TestRebuildUnderLoad rebuilds, switches and rolls back while the API responds and the chain advances. No request
// fails, answers of both generations at the same seq are identical, and in the end the read model matches the log and
// the log matches the chain. Then it switches to a generation with deliberately different numbers, to reveal answers
// composed of two generations.
func TestRebuildUnderLoad(t *testing.T) {
	s := newSystem(t)
	vault := s.Contracts.Vaults[0].Address.Hex()
	hot := []string{"/api/v1/vaults", "/api/v1/vaults/" + vault, "/api/v1/users", "/api/v1/settlement/summary",
		"/api/v1/queues/withdrawals"}
	first, err := s.ask(t.Context(), hot[0])
	must(t, err)
	cold := func(i int) string { return fmt.Sprintf("/api/v1/users?asOfBlock=%s&pageSize=%d", first.block, 1+i%100) }

	l := s.load(hot, cold)
	stopTraffic := s.Traffic(interval)
	s.Run("projection", "rebuild")
	s.answers(t, l, "2", 20)
	s.Run("projection", "switch", "1")
	s.answers(t, l, "1", 20)
	stopTraffic()
	// The chain stops growing: from now on both generations answer at the same seq.
	for range 2 {
		s.Run("projection", "switch", "2")
		s.answers(t, l, "2", 40)
		s.Run("projection", "switch", "1")
		s.answers(t, l, "1", 40)
	}
	s.Run("projection", "switch", "2")
	l.stop()
	l.judge(t, true)
	s.Run("verify")

	// A generation with different numbers.
	s.Run("projection", "rebuild", "--no-switch")
	s.spoil(t, 3)
	l = s.load(hot[:2], func(i int) string { return fmt.Sprintf("/api/v1/vaults/%s/nav?limit=%d", vault, 1+i%100) })
	s.answers(t, l, "2", 20)
	s.Run("projection", "switch", "3")
	s.answers(t, l, "3", 20)
	s.Run("projection", "rollback")
	s.answers(t, l, "2", 20)
	l.stop()
	l.judge(t, false)
}

// answers waits until a generation has answered that many more requests.
func (s *system) answers(t *testing.T, l *load, generation string, more int) {
	t.Helper()
	want := l.answered(generation) + more
	wait.Until(t, func() error {
		if n := l.answered(generation); n < want {
			return fmt.Errorf("generation %s answered %d requests, want %d", generation, n, want)
		}
		return nil
	})
}

// judge fails the test if a request failed. If the generations are equal, so are their answers at the same seq, except
// for the name of the generation.
func (l *load) judge(t *testing.T, equal bool) {
	t.Helper()
	for i, f := range l.faults {
		if i < 5 {
			t.Error(f)
		}
	}
	both, same := 0, 0
	for key, a := range l.bodies {
		b, ok := l.bodies[strings.Replace(key, " generation 2 ", " generation 1 ", 1)]
		if !strings.Contains(key, " generation 2 ") {
			continue
		}
		if !equal {
			b, ok = l.bodies[strings.Replace(key, " generation 2 ", " generation 3 ", 1)]
		}
		if !ok {
			continue
		}
		both++
		if a.body == b.body && a.block == b.block {
			same++
		}
	}
	t.Logf("answers by generation: %v, failed: %d; %d answers of two generations at one seq, %d of them the same", l.asked,
		len(l.faults), both, same)
	if equal && same != both || !equal && same != 0 || both == 0 {
		t.Errorf("%d of %d answers of two generations at one seq are the same", same, both)
	}
}

// spoil changes every valuation of a generation, also in the totals of vaults.
func (s *system) spoil(t *testing.T, id int32) {
	t.Helper()
	for table, valuations := range map[string]string{"events": "effect = 'valuation'",
		"lists": "kind = 'valuation' OR list = 'totals' AND valued_block > 0"} {
		ask := "ALTER TABLE " + s.ReadModel().Database(id) + "." + table +
			" UPDATE nav = nav + 1, assets = assets + 1 WHERE " + valuations + " SETTINGS mutations_sync = 2"
		must(t, s.Conn.Exec(t.Context(), ask))
	}
}

// Package underload checks that the whole of navlog keeps responding while its read models are rebuilt, switched, and
// switched back.
package underload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/query"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
)

const chainID = 31337

// system is ingest, project and serve on the test's engines, with a chain that has a history.
type system struct {
	kafka    chainlog.Config
	ch       readmodel.Config
	pool     *pgxpool.Pool
	node     string
	scenario *devchain.Scenario
	deployed *devchain.Contracts
	project  *projections.Projections
	api      string
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newSystem(t *testing.T) *system {
	t.Helper()
	s := &system{kafka: chainlog.DefaultConfig(), ch: readmodel.DefaultConfig()}
	s.kafka.Brokers = enginetest.Kafka(t)
	s.ch.Addr, s.ch.Prefix = enginetest.ClickHouse(t), fmt.Sprintf("u%d", os.Getpid())
	conn, err := s.ch.Open("")
	must(t, err)
	t.Cleanup(func() { // after the programs have exited
		for id := range int32(5) {
			if err := conn.Exec(context.Background(), "DROP DATABASE IF EXISTS "+s.ch.Database(id)); err != nil {
				t.Error(err)
			}
		}
		conn.Close()
	})
	pg := registry.DefaultConfig()
	pg.URL = enginetest.Postgres(t)
	s.pool, err = registry.Open(t.Context(), pg)
	must(t, err)
	t.Cleanup(s.pool.Close)

	anvil := enginetest.Anvil(t, engines.AnvilOptions{SlotsInEpoch: 1, States: 100_000})
	s.node = anvil.URL
	s.deployed, err = devchain.Deploy(t.Context(), s.node)
	must(t, err)
	s.scenario = devchain.New(s.node, s.deployed, 1, []uint32{1, 2}, slog.New(slog.DiscardHandler))
	must(t, s.scenario.Steps(t.Context(), 80))
	s.programs(t)
	return s
}

// programs starts what `navlog-dev up` would start in one process.
func (s *system) programs(t *testing.T) {
	t.Helper()
	chain := ingest.DefaultConfig()
	chain.ID, chain.PollInterval = chainID, 50*time.Millisecond
	chain.RPC = []rpc.Endpoint{{URL: s.node}}
	for _, v := range s.deployed.Vaults {
		chain.Vaults = append(chain.Vaults, vaults.Config{Address: v.Address.Hex(), StartBlock: v.StartBlock})
	}
	must(t, chain.Validate())
	log := slog.New(slog.DiscardHandler)
	s.run(t, ingest.New(chain, s.kafka, s.pool, prometheus.NewRegistry(), log).Run)
	s.project = projections.New(projections.DefaultConfig(), chainID, s.kafka, s.ch, s.pool, prometheus.NewRegistry(), log)
	s.run(t, s.project.Run)
	http := query.DefaultConfig()
	http.Listen, http.Router, http.PublicRateLimit, http.PublicEngineTime = "127.0.0.1:0", s.deployed.Router.Hex(), 0, 0
	// No request waits for a slot or ends at its time limit, however busy the machine is: then a failure is a fault.
	http.Concurrency, http.RequestTimeout, http.WriteTimeout = 32, 2*time.Minute, 3*time.Minute
	noURL := func(context.Context, string) (string, error) { return "", errors.New("no URL is in use") }
	serve := query.New(http, chainID, s.ch, s.pool, noURL, prometheus.NewRegistry(), log)
	s.run(t, serve.Run)
	wait.Until(t, s.project.Ready)
	wait.Until(t, serve.Ready)
	s.api = "http://" + serve.Addr()
}

// run runs a program until the end of the test.
func (s *system) run(t *testing.T, program func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- program(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
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

// start asks the newest-block questions hot up to 500 times a second, with at most 16 requests in flight, and cold
// ones, each different, 10 times a second.
func (s *system) start(hot []string, cold func(i int) string) *load {
	l := &load{asked: map[string]int{}, bodies: map[string]answer{}, stopped: make(chan struct{})}
	l.asking(s, 2*time.Millisecond, 16, func(i int) string { return hot[i%len(hot)] })
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
	o, err := projections.NewOperator(chainID, s.kafka, s.ch, s.pool)
	must(t, err)
	t.Cleanup(func() { must(t, o.Close()) })
	vault := s.deployed.Vaults[0].Address.Hex()
	hot := []string{"/api/v1/vaults", "/api/v1/vaults/" + vault, "/api/v1/users", "/api/v1/settlement/summary", "/api/v1/queues/withdrawals"}
	first, err := s.ask(t.Context(), hot[0])
	must(t, err)
	cold := func(i int) string { return fmt.Sprintf("/api/v1/users?asOfBlock=%s&pageSize=%d", first.block, 1+i%100) }

	l := s.start(hot, cold)
	traffic, stopTraffic := context.WithCancel(t.Context())
	var steps sync.WaitGroup
	steps.Go(func() {
		for traffic.Err() == nil {
			if err := s.scenario.Steps(traffic, 1); err != nil && traffic.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	out, err := o.Rebuild(t.Context(), projections.RebuildOptions{})
	must(t, err)
	if !out.Live || out.Generation != 2 || out.Parity == nil || out.Parity.Err() != nil {
		t.Fatalf("rebuilt %+v", out)
	}
	s.answers(t, l, "2", 20)
	must(t, o.Switch(t.Context(), 1))
	s.answers(t, l, "1", 20)
	stopTraffic()
	steps.Wait()
	// The chain stops growing: from now on both generations answer at the same seq.
	for range 2 {
		must(t, o.Switch(t.Context(), 2))
		s.answers(t, l, "2", 40)
		must(t, o.Switch(t.Context(), 1))
		s.answers(t, l, "1", 40)
	}
	must(t, o.Switch(t.Context(), 2))
	l.stop()
	l.judge(t, true)
	s.verify(t)

	// A generation with different numbers.
	spoilt := false
	o.Progress = func(what string, done, of uint64) {
		if what == "generation 3: building, records" && done > 0 && done == of && !spoilt {
			spoilt = true
			s.spoil(t, 3)
		}
	}
	_, err = o.Rebuild(t.Context(), projections.RebuildOptions{})
	if !errors.Is(err, projections.ErrDiffers) {
		t.Fatalf("a spoilt generation was compared with %v", err)
	}
	l = s.start(hot[:2], func(i int) string { return fmt.Sprintf("/api/v1/vaults/%s/nav?limit=%d", vault, 1+i%100) })
	s.answers(t, l, "2", 20)
	_, err = o.Rebuild(t.Context(), projections.RebuildOptions{AcceptDiff: true})
	must(t, err)
	s.answers(t, l, "3", 20)
	back, err := o.Rollback(t.Context())
	if err != nil || back != 2 {
		t.Fatalf("rolled back to %d, %v", back, err)
	}
	s.answers(t, l, "2", 20)
	l.stop()
	l.judge(t, false)
	shown, err := o.Show(t.Context(), 3)
	if err != nil || !shown.Accepted || shown.Live || shown.Parity == nil || shown.Parity.FirstSeq == 0 || len(shown.Parity.Events) == 0 {
		t.Errorf("the report that was kept is %+v, %v", shown, err)
	}
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
	t.Logf("answers by generation: %v, failed: %d; %d answers of two generations at one seq, %d of them the same", l.asked, len(l.faults), both, same)
	if equal && same != both || !equal && same != 0 || both == 0 {
		t.Errorf("%d of %d answers of two generations at one seq are the same", same, both)
	}
}

// verify proves that the read model matches the log, and the log matches the chain.
func (s *system) verify(t *testing.T) {
	t.Helper()
	r, err := verify.Verify(t.Context(), chainID, s.kafka, s.ch, s.pool, verify.Options{Node: s.node})
	must(t, err)
	if r.Err() != nil {
		t.Fatalf("not equal:\n%s", r)
	}
	chain := 0
	for _, c := range r.Checks {
		if strings.HasPrefix(c.Name, "chain: ") && c.Compared > 8 {
			chain++
		}
	}
	if chain != 2+len(s.deployed.Vaults) { // blocks, ranges, and each vault's totals
		t.Errorf("the chain was compared in %d ways:\n%s", chain, r)
	}
}

// spoil changes every valuation of a generation, also in the totals of vaults.
func (s *system) spoil(t *testing.T, id int32) {
	conn, err := s.ch.Open("")
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	for table, valuations := range map[string]string{"events": "effect = 'valuation'", "lists": "kind = 'valuation' OR list = 'totals' AND valued_block > 0"} {
		ask := "ALTER TABLE " + s.ch.Database(id) + "." + table + " UPDATE nav = nav + 1, assets = assets + 1 WHERE " + valuations + " SETTINGS mutations_sync = 2"
		if err := conn.Exec(context.Background(), ask); err != nil {
			t.Error(err)
		}
	}
}

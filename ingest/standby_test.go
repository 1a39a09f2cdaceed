package ingest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/writer"
)

// Of several ingests one writes and the others stand by, in whatever order they start. When the writer ends, it is
// replaced once. After a regular shutdown the others do not wait for config.Standby.
func TestStandby(t *testing.T) {
	onEachBroker(t, func(t *testing.T, brokers func(testing.TB) []string) {
		r := newRig(t, brokers)
		r.config.Standby = time.Second
		r.steps(10)
		first := r.follow()
		second, third := r.start(), r.start()
		for _, p := range []*process{second, third} {
			p.until("standby", func(st status.Status) bool { return st.State == status.Standby })
			p.until("standby that could take over", func(status.Status) bool { return p.Ready() == nil && p.StandsBy() })
			if why := p.Status().Reason; !strings.Contains(why,
				"another ingest writes this chain's log: "+first.Status().Instance) {
				t.Errorf("the reason of a standby is %q", why)
			}
		}
		r.steps(3)
		first.caughtUp()
		if n := len(r.writers()); n != 1 {
			t.Fatalf("%d ingests wrote while two stood by, want 1", n)
		}

		began := time.Now()
		first.halt()
		writer, other := second, third
		r.eventually("single takeover with one standby left", func() bool {
			r.feed()
			if writer.Status().State == status.Standby {
				writer, other = other, writer
			}
			return writer.Status().State == status.Following && other.Status().State == status.Standby
		})
		t.Logf("taken over %s after the end of the first", time.Since(began))
		r.steps(3)
		writer.caughtUp()
		if n := len(r.writers()); n > 3 {
			t.Errorf("the log changed hands to %d ingests, want one writer and one standby left", n)
		}
		r.verify()
		writer.halt()
		other.caughtUp()
		r.verify()
	})
}

// If several start together while none writes, one ends up as the writer and the others stand by: none ends.
func TestStandbysStartTogether(t *testing.T) {
	r := newRig(t, kfake)
	r.config.Standby = 300 * time.Millisecond
	r.steps(10)
	all := []*process{r.start(), r.start(), r.start()}
	r.eventually("single writer with two standbys", func() bool {
		r.feed()
		standing := 0
		for _, p := range all {
			if p.Status().State == status.Standby {
				standing++
			}
		}
		return standing == len(all)-1
	})
	for _, p := range all {
		select {
		case <-p.done:
			t.Errorf("an ingest ended: %v", p.err)
		default:
		}
	}
	before := len(r.writers())
	r.steps(5)
	for _, p := range all {
		if p.Status().State != status.Standby {
			p.caughtUp()
		}
	}
	if n := len(r.writers()); n > before+1 {
		t.Errorf("after the start the changes of the writer went from %d to %d", before, n)
	}
	r.verify()
}

// If a writer is killed or hangs, a standby takes over. When a writer that hung continues, it finds that it was
// replaced, and stands by.
func TestStandbyTakesOver(t *testing.T) {
	r := newRig(t, kfake)
	r.config.Standby = 500 * time.Millisecond
	r.steps(10)
	hangs := r.process(writer.BeforeProduce, 2)
	r.eventually("hang of the writer", hangs.stopped)
	p := r.start()
	p.until("standby", func(st status.Status) bool { return st.State == status.Standby })
	p.until("takeover", func(st status.Status) bool { return st.State != status.Standby })
	r.steps(2)
	p.caughtUp()
	r.must(hangs.Process.Signal(syscall.SIGCONT))
	for range 3 {
		r.steps(1)
		p.caughtUp()
	}
	if hangs.gone.Load() {
		t.Error("the replaced writer ended instead of standing by")
	}
	r.verify()
	p.halt()
	height := r.height()
	r.eventually("second takeover by the replaced writer", func() bool {
		r.feed()
		return r.cursor().GetHead().GetNumber() > height
	})
	r.must(hangs.Process.Signal(syscall.SIGKILL))
	r.eventually("end of the process", hangs.gone.Load)
	r.follow()
	r.verify()
}

// A process that hung sends another heartbeat, which overwrites those of its successor, before it learns that it was
// replaced. It then reads its own heartbeat, but waits for the live writer all the same; and when it ends, it commits
// no empty one.
func TestStandbyReadsItsOwnHeartbeat(t *testing.T) {
	r := newRig(t, kfake)
	r.config.Standby = 10 * time.Second // longer than it can take to send the live writer's heartbeat
	woken, living := New(r.config, r.kafka, nil, newRegistry(), slog.New(slog.DiscardHandler)),
		New(r.config, r.kafka, nil, newRegistry(), slog.New(slog.DiscardHandler))
	r.must(living.ensureTopics(r.ctx))
	client, err := kgo.NewClient(r.kafka.Options()...)
	r.must(err)
	defer client.Close()
	heartbeat := func(of *Ingest, n int) string { return fmt.Sprintf("%x %d %d", of.instance, time.Now().UnixMilli(), n) }
	standing := func() <-chan error {
		done := make(chan error, 1)
		go func() { done <- woken.standBy(r.ctx) }()
		return done
	}
	stands := func(done <-chan error, why string) {
		t.Helper()
		r.eventually("a standby with the reason: "+why, func() bool {
			select {
			case err := <-done:
				t.Fatalf("it takes over (%v) instead of standing by because: %s", err, why)
			default:
			}
			return woken.Status().State == status.Standby && strings.Contains(woken.Status().Reason, why)
		})
	}

	r.must(woken.commitHeartbeat(r.ctx, client, heartbeat(woken, 7)))
	done := standing()
	stands(done, "another one may have taken over")
	r.must(woken.commitHeartbeat(r.ctx, client, heartbeat(living, 8)))
	stands(done, living.Status().Instance)
	r.must(woken.commitHeartbeat(r.ctx, client, ""))
	r.must(<-done)

	// If no other ingest sends a heartbeat, the last writer was this one: it takes over, but not before that is known.
	woken.config.Standby = 2 * time.Second
	r.must(woken.commitHeartbeat(r.ctx, client, heartbeat(woken, 9)))
	began := time.Now()
	r.must(<-standing())
	if after := time.Since(began); after < woken.config.Standby {
		t.Errorf("it took over after only %s without another heartbeat", after)
	}
}

// A writer that was replaced and stands by ends without clearing the heartbeat, even if it reads its own heartbeat: a
// third ingest would take an empty one for the end of the writer.
func TestStandbyEndsWithoutClearingTheHeartbeat(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(5)
	p := r.start(func(i *Ingest) { i.config.Standby = time.Minute })
	p.caughtUp()
	r.start().caughtUp() // takes over without waiting, and sends no heartbeat
	r.mine(1)
	p.until("standby", func(st status.Status) bool { return st.State == status.Standby })
	p.halt()
	client, err := kgo.NewClient(r.kafka.Options()...)
	r.must(err)
	defer client.Close()
	if heartbeat, err := p.readHeartbeat(r.ctx, client); err != nil || !p.isOwn(heartbeat) {
		t.Errorf("the newest heartbeat is %q, %v", heartbeat, err)
	}
}

// An ingest that is refused after it has fenced other writers clears the heartbeat: the next start does not wait.
func TestHeartbeatIsClearedAfterARefusal(t *testing.T) {
	r := newRig(t, kfake)
	r.config.Standby = time.Minute
	r.steps(5)
	r.follow().halt()
	r.config.Vaults[0].StartBlock--
	p := r.start()
	if err := p.wait(); err == nil || !strings.Contains(err.Error(), "start block of vault") {
		t.Fatalf("it ended with %v", err)
	}
	client, err := kgo.NewClient(r.kafka.Options()...)
	r.must(err)
	defer client.Close()
	if heartbeat, err := p.readHeartbeat(r.ctx, client); err != nil || heartbeat != "" {
		t.Errorf("the newest heartbeat is %q, %v", heartbeat, err)
	}
}

// While Kafka does not return the heartbeat, no writer counts as silent.
func TestStandbyWithoutHeartbeats(t *testing.T) {
	r := newRig(t, kfake)
	r.config.Standby = 100 * time.Millisecond
	r.steps(5)
	p := r.follow()
	broken := r.kafka
	r.kafka.Brokers = []string{"127.0.0.1:1"}
	away := New(r.config, r.kafka, nil, newRegistry(), p.log)
	r.kafka = broken
	done := make(chan error, 1)
	go func() { done <- away.standBy(r.ctx) }()
	r.eventually("the reason", func() bool { return strings.Contains(away.Status().Reason, "read from the Kafka group") })
	select {
	case err := <-done:
		t.Errorf("it takes over although Kafka does not respond: %v", err)
	case <-time.After(5 * r.config.Standby):
	}
	client, err := kgo.NewClient(r.kafka.Options()...)
	r.must(err)
	defer client.Close()
	if heartbeat, err := p.readHeartbeat(r.ctx, client); err != nil || !p.isOwn(heartbeat) {
		t.Errorf("the newest heartbeat is %q, %v", heartbeat, err)
	}
	p.halt()
	if heartbeat, err := p.readHeartbeat(r.ctx, client); err != nil || heartbeat != "" {
		t.Errorf("after the end of the writer the heartbeat is %q, %v", heartbeat, err)
	}
}

// A standby whose brokers fail calls one that was silent before: it looks again which brokers respond.
func TestStandbyLooksForBrokersAgain(t *testing.T) {
	first, err := engines.StartKafka(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Close() })
	r := newRig(t, kfake)
	second := newRelay(t, r.kafka.Brokers[0])
	second.mu.Lock() // it accepts connections and is silent
	responds := sync.OnceFunc(second.mu.Unlock)
	t.Cleanup(responds)
	r.config.Standby = 100 * time.Millisecond // less than it can take to connect
	r.kafka.Brokers = []string{first.Addr, second.listener.Addr().String()}
	i := New(r.config, r.kafka, nil, newRegistry(), slog.New(slog.DiscardHandler))
	if up, down, err := i.kafka.Reach(r.ctx, time.Minute); err != nil || len(up) != 1 || len(down) > 0 {
		t.Fatalf("%v respond and %v fail, %v", up, down, err)
	}
	r.must(first.Close())
	done := make(chan error, 1)
	go func() { done <- i.standBy(r.ctx) }()
	r.eventually("standby without a broker", func() bool { return i.Status().HeartbeatError != "" })
	responds()
	select {
	case err = <-done:
		r.must(err)
	case <-time.After(patience):
		t.Fatalf("it does not call the broker that responds now: %s", i.Status().HeartbeatError)
	}
}

// `resume` checks that the log is frozen before it fences a writer.
func TestResumeOfALogThatFollows(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(5)
	p := r.follow()
	var refused *rpc.RefusedError
	if _, err := r.resume(true); !errors.As(err, &refused) || !strings.Contains(err.Error(), "is not frozen") {
		t.Errorf("resuming a log that is not frozen: %v", err)
	}
	r.steps(1)
	p.caughtUp()
	if st := p.Status(); st.Reason != "" {
		t.Errorf("the writer was disturbed: %s", st.Reason)
	}
	r.verify()
}

// After a takeover the status names what ingest waits for, and no longer that another one writes, even if it cannot
// continue: here its node is gone.
func TestTakeoverWithoutANode(t *testing.T) {
	r := newRig(t, kfake)
	r.config.Standby = 300 * time.Millisecond
	r.steps(5)
	first := r.follow()
	node := r.throughProxy(honest)
	second := r.start()
	second.until("standby", func(st status.Status) bool { return st.State == status.Standby })
	node.use(away)
	first.halt()
	second.until("writer that waits for its node",
		func(st status.Status) bool { return st.State == status.Starting && st.Reason != "" })
	if reason := second.Status().Reason; strings.Contains(reason, "another ingest writes") {
		t.Errorf("the reason is %q", reason)
	}
}

// fences counts how often an ingest fences other writers, and lets the fence or the step fail while failing is set.
type fences struct {
	atomic.Int64
	failing atomic.Pointer[writer.Step]
}

func (f *fences) count(i *Ingest) {
	i.hook = func(at writer.Step) error {
		if at == writer.BeforeFence {
			f.Add(1)
		}
		if step := f.failing.Load(); step != nil && *step == at {
			return errors.New("the broker is gone")
		}
		return nil
	}
}

// An ingest that began to take over, and could not, stands by again before its next attempt: another one may have begun
// to write meanwhile. Without a node it fences no writer at all.
func TestFailedTakeoverStandsByAgain(t *testing.T) {
	steps := []writer.Step{"", writer.BeforeFence, writer.BeforeProduce, writer.AfterFlush}
	for _, at := range few(steps) {
		t.Run(cmp.Or(string(at), "node gone"), func(t *testing.T) {
			r := newRig(t, kfake)
			r.config.Standby = 2 * time.Second
			r.steps(5)
			first := r.follow()
			proper := r.config
			node := r.throughProxy(honest)
			var f fences
			second := r.start(f.count)
			second.until("standby", func(st status.Status) bool { return st.State == status.Standby })
			if f.failing.Store(&at); at == "" {
				node.use(away)
			}
			first.halt()
			second.until("failed takeover", func(st status.Status) bool {
				return st.State == status.Starting && st.Reason != "" && (at == "" || f.Load() > 0)
			})
			if n := f.Load(); at == "" && n > 0 {
				t.Errorf("it fenced other writers %d times", n)
			}
			r.config = proper
			third := r.follow()
			before := f.Load()

			f.failing.Store(nil)
			node.use(honest)
			second.until("standby after the failed takeover", func(st status.Status) bool {
				return st.State == status.Standby && strings.Contains(st.Reason, third.Status().Instance)
			})
			r.steps(2)
			third.caughtUp()
			if n := f.Load() - before; n > 0 {
				t.Errorf("it fenced the healthy writer %d times", n)
			}
			if hands := r.writers(); !bytes.Equal(hands[len(hands)-1], third.instance) {
				t.Error("it took over from a healthy writer")
			}
			third.halt()
			second.caughtUp()
			r.verify()
		})
	}
}

// A writer whose transaction failed and whose node is gone is replaced. When the node comes back, it finds that another
// ingest has written since, and fences no writer.
func TestReplacedWriterFencesNoWriter(t *testing.T) {
	r := newRig(t, kfake)
	r.config.Standby = 500 * time.Millisecond
	r.steps(5)
	proper := r.config
	node := r.throughProxy(honest)
	var f fences
	first := r.start(f.count)
	first.caughtUp()
	r.config = proper
	second := r.start()
	second.until("standby", func(st status.Status) bool { return st.State == status.Standby })
	at := writer.BeforeProduce
	f.failing.Store(&at)
	r.mine(1)
	first.until("failed transaction", func(st status.Status) bool { return st.State == status.Starting })
	node.use(away)
	r.eventually("failure of its node", func() bool { return first.nodes.CheckAnswers(r.ctx) != nil })
	f.failing.Store(nil)
	r.eventually("takeover by the other one", func() bool {
		return bytes.Equal(r.cursor().GetInstanceId(), second.instance)
	})
	before := f.Load()
	first.until("standby without a node", func(st status.Status) bool { return st.State == status.Standby })
	node.use(honest)
	r.steps(2)
	second.caughtUp()
	if n := f.Load() - before; n > 0 {
		t.Errorf("it fenced the healthy writer %d times", n)
	}
	r.verify()
}

// A writer whose nodes are down is replaced, once, by a standby whose nodes respond. A standby whose nodes are down
// does not take over. When its nodes are back, the replaced writer stands by.
func TestWriterWithoutANodeIsReplaced(t *testing.T) {
	r := newRig(t, kfake)
	r.config.Standby = 500 * time.Millisecond
	r.steps(5)
	proper := r.config
	node := r.throughProxy(honest)
	var f fences
	first := r.follow()
	same := r.start(f.count)
	same.until("standby of the same node", func(status.Status) bool { return same.StandsBy() && same.Ready() == nil })
	client, err := kgo.NewClient(r.kafka.Options()...)
	r.must(err)
	defer client.Close()
	node.use(away)
	withoutNode := map[string]bool{}
	r.eventually("heartbeats without a node", func() bool {
		heartbeat, err := first.readHeartbeat(r.ctx, client)
		if r.must(err); strings.HasSuffix(heartbeat, withoutNodeMark) {
			withoutNode[heartbeat] = true
		}
		return len(withoutNode) > heartbeatsPerStandby*withoutNodeStandbys
	})
	if n := f.Load(); n > 0 {
		t.Errorf("a standby without a node fenced the writer %d times", n)
	}
	r.config = proper
	second := r.start()
	r.mine(1)
	second.caughtUp()
	first.until("standby without a node", func(status.Status) bool { return first.StandsBy() && first.Ready() != nil })
	node.use(honest)
	for _, p := range []*process{first, same} {
		p.until("standby with a node", func(status.Status) bool { return p.StandsBy() && p.Ready() == nil })
		r.steps(1)
		second.caughtUp()
	}
	if n := len(r.writers()); n != 2 || f.Load() > 0 {
		t.Errorf("%d ingests wrote, want 2; the standby of the same node fenced the writer %d times", n, f.Load())
	}
	r.verify()
}

// When Kafka comes back after longer than config.Standby, one ingest writes and the other one stands by: the standby
// counts only the time in which Kafka responds.
func TestStandbyAfterKafkaCameBack(t *testing.T) {
	broker, err := engines.StartKafka(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	r := newRig(t, func(testing.TB) []string { return []string{broker.Addr} })
	r.config.Standby = 3 * time.Second
	r.steps(5)
	first := r.follow()
	second := r.start()
	second.until("standby", func(st status.Status) bool { return st.State == status.Standby })
	before := len(r.writers())

	r.must(broker.Close())
	r.mine(1)
	gone := time.Now()
	second.until("standby without Kafka for longer than config.Standby",
		func(st status.Status) bool { return st.HeartbeatError != "" && time.Since(gone) > r.config.Standby })
	r.must(broker.Restart(r.ctx))
	r.steps(2)
	var standby, writes *process
	r.eventually("single writer with one standby", func() bool {
		standby, writes = first, second
		if !first.StandsBy() {
			standby, writes = second, first
		}
		return standby.StandsBy() && writes.Status().State == status.Following
	})
	writes.caughtUp()
	if n := len(r.writers()) - before; n > 1 {
		t.Errorf("the log changed hands %d times after Kafka came back", n)
	}
	r.verify()
}

// A standby that could not take over is not ready, and reports the reason: Kafka or the nodes are gone, or its
// configuration contradicts the log.
func TestStandbyThatCannotTakeOverIsNotReady(t *testing.T) {
	r := newRig(t, kfake)
	r.config.Standby = time.Second
	r.steps(5)
	writer := r.follow()

	proper := r.config
	node := r.throughProxy(honest)
	withoutNode := r.start()
	withoutNode.until("ready standby", func(status.Status) bool { return withoutNode.StandsBy() && withoutNode.Ready() == nil })
	node.use(away)
	withoutNode.until("standby without a node", func(status.Status) bool {
		err := withoutNode.Ready()
		return withoutNode.StandsBy() && err != nil && strings.Contains(err.Error(), "no endpoint of chain.rpc answers")
	})

	r.config = proper
	r.config.Vaults = slices.Clone(proper.Vaults)
	r.config.Vaults[0].StartBlock--
	contrary := r.start()
	contrary.until("standby that contradicts the log", func(status.Status) bool {
		err := contrary.Ready()
		return contrary.StandsBy() && err != nil && strings.Contains(err.Error(), "was lowered from")
	})

	r.config = proper
	broken := r.kafka
	broken.Brokers = []string{"127.0.0.1:1"}
	away := New(r.config, broken, nil, newRegistry(), slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(r.ctx)
	done := make(chan error, 1)
	go func() { done <- away.standBy(ctx) }()
	r.eventually("standby without Kafka", func() bool {
		err := away.Ready()
		return away.StandsBy() && err != nil &&
			strings.Contains(err.Error(), "could not take over: read from the Kafka group")
	})
	stop()
	<-done
	if err := writer.Ready(); err != nil || writer.StandsBy() {
		t.Errorf("the writer was disturbed: %v", err)
	}
}

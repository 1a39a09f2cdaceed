package ingest

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
)

// killAt makes an ingest die at a step of its n-th transaction from now.
func killAt(at writer.Step, n int) func(*Ingest) {
	return func(i *Ingest) {
		i.hook = func(reached writer.Step) error {
			if reached == at {
				if n--; n == 0 {
					panic(errKilled)
				}
			}
			return nil
		}
	}
}

func TestKillAtEveryStep(t *testing.T) {
	onEachBroker(t, func(t *testing.T, brokers func(testing.TB) []string) {
		for _, at := range few(writer.Steps) {
			t.Run(string(at), func(t *testing.T) {
				r := newRig(t, brokers)
				r.config.Confirmations = 2
				r.steps(12)
				// Transaction 1 writes the vaults, 2 and 3 the first blocks.
				for n := 1; n <= 3; n++ {
					r.killed(killAt(at, n))
				}
				p := r.follow()
				r.verify()
				p.halt()

				r.reorg(3) // the next transaction is the reorganisation
				r.steps(2)
				r.killed(killAt(at, 2))
				r.follow()
				r.verify()
			})
		}
	})
}

// An error of a transaction ends the session but not the run, whatever the broker did with the transaction.
func TestFailedTransactionIsRetried(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(12)
	failures := map[writer.Step]bool{}
	p := r.start(func(i *Ingest) {
		i.hook = func(reached writer.Step) error {
			if !failures[reached] {
				failures[reached] = true
				return errors.New("the broker is gone")
			}
			return nil
		}
	})
	p.caughtUp()
	r.verify()
	if len(failures) != len(writer.Steps)+1 { // and beforeFence
		t.Errorf("only %d of %d steps failed once", len(failures), len(writer.Steps)+1)
	}
}

func TestSecondIngestFencesTheFirst(t *testing.T) {
	onEachBroker(t, func(t *testing.T, brokers func(testing.TB) []string) {
		r := newRig(t, brokers)
		r.steps(5)
		first := r.follow()
		second := r.start()
		second.until("takeover", func(status.Status) bool { return bytes.Equal(r.cursor().GetInstanceId(), second.instance) })
		r.steps(1) // so that the first one has something to write
		err := first.wait()
		if !errors.Is(err, writer.ErrFenced) || first.Status().State != status.Fenced {
			t.Fatalf("the first ingest ends with %v in state %s, want fenced", err, first.Status().State)
		}
		if err := first.Ready(); err == nil {
			t.Error("a fenced ingest is ready")
		}
		second.caughtUp()
		r.verify()
	})
}

// If one ingest claims the log after the other has seen it unclaimed, but before the other's fence, the first is alive:
// it keeps the log, and the other one ends.
func TestClaimBeforeFence(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(5)
	looked, claimed := make(chan struct{}), make(chan struct{})
	sessions, failed := 0, false
	first := r.start(func(i *Ingest) {
		i.hook = func(at writer.Step) error {
			switch {
			case at == writer.BeforeFence:
				if sessions++; sessions == 2 {
					close(looked)
					<-claimed
				}
			case at == writer.AfterEnd && !failed:
				failed = true
				return errors.New("the broker is gone")
			}
			return nil
		}
	})
	<-looked
	second := r.start()
	second.until("claim", func(status.Status) bool { return bytes.Equal(r.cursor().GetInstanceId(), second.instance) })
	close(claimed)
	if err := first.wait(); !errors.Is(err, writer.ErrFenced) {
		t.Fatalf("the first ingest ends with %v, want fenced", err)
	}
	r.steps(2)
	second.caughtUp()
	if hands := len(r.writers()); hands != 2 {
		t.Errorf("the log changed hands %d times, want 2", hands)
	}
	r.verify()
}

// Two that start together must not take over from each other forever.
func TestTwoStartTogether(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(5)
	a, b := r.start(), r.start()
	var winner, loser *process
	r.eventually("end of one of two", func() bool {
		select {
		case <-a.done:
			winner, loser = b, a
		case <-b.done:
			winner, loser = a, b
		default:
			// Only a writer with something to write learns that it was replaced.
			r.mine(1)
		}
		return loser != nil
	})
	if !errors.Is(loser.err, writer.ErrFenced) {
		t.Fatalf("the loser ends with %v, want fenced", loser.err)
	}
	winner.caughtUp()
	r.verify()
}

// The cursor must name a record from which the window can be restored, and its offset hint must be right.
func TestCursorNamesTheWindow(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(20)
	r.follow()
	cursor := r.cursor()
	for _, k := range r.topic(chainlog.LogTopic(r.config.ID)) {
		record, err := chainlog.Decode(r.config.ID, k)
		r.must(err)
		number, ofBlock := writer.BlockOf(record)
		if ofBlock && number > cursor.GetFinalBlock() && record.GetSeq() < cursor.GetWindowSeq() {
			t.Errorf("record %d of unfinalised block %d is before the window, which begins at %d", record.GetSeq(), number,
				cursor.GetWindowSeq())
		}
		if record.GetSeq() == cursor.GetWindowSeq() && k.Offset != cursor.GetWindowOffset() {
			t.Errorf("window_offset is %d, record %d is at offset %d", cursor.GetWindowOffset(), record.GetSeq(), k.Offset)
		}
	}
	if cursor.GetWindowSeq() == 0 || cursor.GetWindowSeq() > cursor.GetSeq() {
		t.Errorf("the window begins at %d of %d", cursor.GetWindowSeq(), cursor.GetSeq())
	}
}

// While Kafka does not confirm a transaction, the status reports it: ingest does not look at the chain meanwhile, and
// without a reason this would look like a fault of the nodes.
func TestSlowTransactionIsInTheStatus(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(5)
	held, release := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(held); <-release })
	var slow atomic.Bool
	p := r.start(func(i *Ingest) {
		i.hook = func(at writer.Step) error {
			if slow.Load() && at == writer.AfterFlush {
				once()
			}
			return nil
		}
	})
	p.caughtUp()
	slow.Store(true)
	r.mine(1)
	<-held
	p.until("reason", func(st status.Status) bool {
		return strings.Contains(st.Reason, "Kafka has not confirmed the transaction")
	})
	close(release)
	p.caughtUp()
	if st := p.Status(); st.Reason != "" {
		t.Errorf("after it was confirmed the status says %q", st.Reason)
	}
}

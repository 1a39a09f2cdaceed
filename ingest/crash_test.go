package ingest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/navlog/navlog/schemas/chainlog"
)

// killAt lets an ingest die at a step of its n-th transaction from now.
func killAt(at step, n int) func(*Ingest) {
	return func(i *Ingest) {
		i.hook = func(reached step) error {
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
		for _, at := range steps {
			t.Run(string(at), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, brokers)
				r.config.Confirmations = 2
				r.steps(12)
				// 1 writes the vaults, 2 and 3 the first blocks.
				for n := 1; n <= 3; n++ {
					if err := r.start(killAt(at, n)).wait(); !errors.Is(err, errKilled) {
						t.Fatalf("run %d was not killed: %v", n, err)
					}
				}
				p := r.start()
				p.caughtUp()
				r.verify()
				p.halt()

				r.reorg(3) // the next transaction is the reorganisation
				r.steps(2)
				if err := r.start(killAt(at, 2)).wait(); !errors.Is(err, errKilled) {
					t.Fatalf("the reorganisation was not killed: %v", err)
				}
				p = r.start()
				p.caughtUp()
				r.verify()
			})
		}
	})
}

// An error of a transaction ends the session, not the run, whatever the broker
// made of the transaction.
func TestFailedTransactionIsDoneAgain(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(12)
	failures := map[step]bool{}
	p := r.start(func(i *Ingest) {
		i.hook = func(reached step) error {
			if !failures[reached] {
				failures[reached] = true
				return errors.New("the broker has gone")
			}
			return nil
		}
	})
	p.caughtUp()
	r.verify()
	if len(failures) != len(steps) {
		t.Errorf("only %d of %d steps failed once", len(failures), len(steps))
	}
}

// A second ingest waits while the first one writes, which never notices it, and takes
// over when the first one ends.
func TestSecondIngestWaits(t *testing.T) {
	onEachBroker(t, func(t *testing.T, brokers func(testing.TB) []string) {
		r := newRig(t, brokers)
		r.steps(5)
		first := r.start()
		first.caughtUp()
		second := r.start()
		second.until("place in the line", func(st Status) bool { return st.State == Standby })
		for range 5 {
			r.steps(1)
			first.caughtUp()
		}
		if st := second.Status(); st.State != Standby || second.Ready() == nil {
			t.Errorf("the second is %s: %v", st.State, second.Ready())
		}
		if hands := r.writers(); len(hands) != 1 || !bytes.Equal(hands[0], first.instance) {
			t.Errorf("the log changed hands: %x", hands)
		}
		first.halt()
		r.steps(1)
		second.caughtUp()
		r.verify()
		if hands := r.writers(); len(hands) != 2 || !bytes.Equal(hands[1], second.instance) {
			t.Errorf("after the end of the first the hands are %x", hands)
		}
	})
}

// Of two that begin together one writes and the other waits.
func TestTwoStartTogether(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(5)
	a, b := r.start(), r.start()
	writer, other := a, b
	r.eventually("one of two at the head", func() bool {
		if b.Status().State == Following {
			writer, other = b, a
		}
		return writer.Status().State == Following
	})
	for range 5 {
		r.steps(1)
		writer.caughtUp()
	}
	if st := other.Status(); st.State != Standby {
		t.Errorf("the other one is %s: %s", st.State, st.Reason)
	}
	if hands := r.writers(); len(hands) != 1 {
		t.Errorf("the log changed hands %d times", len(hands))
	}
	writer.halt()
	r.steps(1)
	other.caughtUp()
	r.verify()
}

// An ingest that was fenced by one outside the line goes to its end, and does not
// fence back before it is its turn.
func TestFencedIngestWaitsAgain(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(5)
	first := r.start()
	first.caughtUp()
	outside := r.session() // fences
	r.must(outside.commit(r.ctx, &change{claim: true}))
	r.steps(1)
	first.caughtUp() // nobody else is in the line, so it is its turn again
	r.verify()
	if hands := r.writers(); len(hands) != 3 {
		t.Errorf("the log changed hands %d times, want 3", len(hands))
	}
	if err := outside.commit(r.ctx, &change{claim: true}); err == nil {
		t.Error("the one outside writes beside the other")
	}
}

// The cursor must name a record from which the window can be restored, and the
// hint beside it must be right.
func TestCursorNamesTheWindow(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(20)
	p := r.start()
	p.caughtUp()
	cursor := r.cursor()
	for _, k := range r.topic(chainlog.LogTopic(r.config.ID)) {
		record, err := chainlog.Decode(r.config.ID, k)
		r.must(err)
		number, ofBlock := blockOf(record)
		if ofBlock && number > cursor.GetFinalBlock() && record.GetSeq() < cursor.GetWindowSeq() {
			t.Errorf("record %d of unfinalised block %d is before the window, which begins at %d", record.GetSeq(), number, cursor.GetWindowSeq())
		}
		if record.GetSeq() == cursor.GetWindowSeq() && k.Offset != cursor.GetWindowOffset() {
			t.Errorf("window_offset is %d, record %d is at offset %d", cursor.GetWindowOffset(), record.GetSeq(), k.Offset)
		}
	}
	if cursor.GetWindowSeq() == 0 || cursor.GetWindowSeq() > cursor.GetSeq() {
		t.Errorf("the window begins at %d of %d", cursor.GetWindowSeq(), cursor.GetSeq())
	}
}

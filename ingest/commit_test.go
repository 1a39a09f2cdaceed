package ingest

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// unattended returns a session with a new log and without a node: only the test commits.
func unattended(t *testing.T, kafka chainlog.Config, config Config) *session {
	t.Helper()
	i := New(config, kafka, nil, newRegistry(), slog.New(slog.DiscardHandler))
	t.Cleanup(i.nodes.Close)
	client, err := i.transactional()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := chainlog.EnsureTopics(t.Context(), kadm.NewClient(client), config.ID, kafka.Topology()); err != nil {
		t.Fatal(err)
	}
	if err := fence(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	s := i.newSession(client)
	s.state = &state{logID: make([]byte, 16)}
	return s
}

// If any call of the producer fails, the session ends, and the transaction has no effect, neither in memory nor in the
// log. A session that continued would report blocks as indexed, and number records after others, that the log does not
// have.
func TestProducerFails(t *testing.T) {
	t.Parallel()
	kafka := chainlog.DefaultConfig()
	kafka.Brokers = kfake(t)
	for id, c := range []struct {
		call  string
		after step // at which the producer breaks; "" for a producer that already has a transaction open
		want  string
	}{
		{"begin", "", "begin a transaction"},
		{"take the records", beforeProduce, "append 2 records"},
		{"take the cursor", afterFlush, "append the cursor"},
		{"commit", afterCursor, "commit a transaction"},
	} {
		config := validConfig()
		config.ID = uint64(id) + 1
		s := unattended(t, kafka, config)
		i := s.ingest
		i.hook = func(reached step) error {
			if reached == c.after {
				s.client.Close()
			}
			return nil
		}
		if c.after == "" {
			if err := s.client.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
		}
		vault := &event.Record{Fact: &event.Record_Vault{Vault: &event.Vault{Address: make([]byte, 20)}}}
		block := &event.Record{Fact: &event.Record_Block{Block: &event.Block{Number: 7, Hash: make([]byte, 32), ParentHash: make([]byte, 32)}}}
		err := s.commit(t.Context(), &change{units: [][]*event.Record{{vault}, {block}}})
		var failed *commitError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a producer that does not %s: commit gives %v", c.call, err)
		}
		if st := i.Status(); st.Seq != 0 {
			t.Errorf("a producer that does not %s: the status is at seq %d", c.call, st.Seq)
		}
		next, err := i.transactional() // ends the open transaction
		if err != nil {
			t.Fatal(err)
		}
		defer next.Close()
		if err := fence(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		if cursor, err := i.readCursor(t.Context()); err != nil || cursor != nil {
			t.Errorf("a producer that does not %s: there is the cursor %v, %v", c.call, cursor, err)
		}
		if origin, err := chainlog.ReadOrigin(t.Context(), config.ID, kafka.Options()...); err != nil || origin != nil {
			t.Errorf("a producer that does not %s: there is the log %v, %v", c.call, origin, err)
		}
	}
}

// After any transaction, the next session has the same state as the one before, from the cursor and the records from
// window_seq: every record of the window, including the oldest, at its offset.
func TestNextSessionHasTheState(t *testing.T) {
	t.Parallel()
	kafka := chainlog.DefaultConfig()
	kafka.Brokers = kfake(t)
	config := validConfig()
	config.Window, config.Confirmations = 4, 6 // so that some referrals are below the window and not published
	s := unattended(t, kafka, config)
	m := &model{rng: rand.New(rand.NewPCG(3, 1)), chain: []*rpc.Header{{}}}
	s.state.head = m.chain[0]
	pruned := false
	for n := range 24 {
		c := &change{}
		switch {
		case n%6 == 5:
			c = m.reorganise(s.state, 1+m.rng.IntN(3))
		case n%6 == 2:
			c.final = s.state.head.Number - min(s.state.head.Number, 4)
		default:
			for range 1 + m.rng.IntN(2) {
				c.head = m.block()
				c.units = append(c.units, m.logs(c.head))
			}
		}
		if err := s.commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		cursor, err := s.ingest.readCursor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		next := s.ingest.newSession(nil)
		if next.state, err = stateOf(cursor); err != nil {
			t.Fatal(err)
		}
		if err := next.readTail(t.Context(), cursor); err != nil {
			t.Fatalf("after %d transactions: %v", n+1, err)
		}
		if err := same(s.state, next.state); err != nil {
			t.Fatalf("after %d transactions: %v", n+1, err)
		}
		if next.state.offset != s.state.offset {
			t.Errorf("after %d transactions record %d is at offset %d, and was at %d", n+1, s.state.seq, next.state.offset, s.state.offset)
		}
		for j, e := range s.state.window.entries {
			if got := next.state.window.entries[j].Offset; got != e.Offset {
				t.Errorf("after %d transactions record %d is at offset %d, and was at %d", n+1, e.GetSeq(), got, e.Offset)
			}
		}
		pruned = pruned || cursor.GetWindowSeq() > 1
	}
	if !pruned {
		t.Error("the window was never shorter than the log: the test proves nothing")
	}
}

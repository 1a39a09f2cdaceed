package ingest

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// A producer that fails at any of its calls ends the session: the transaction counts for
// nothing, here or in the log. A session that went on after it would say blocks to be
// indexed, and number records after some, that the log does not have.
func TestProducerFails(t *testing.T) {
	t.Parallel()
	kafka := chainlog.DefaultConfig()
	kafka.Brokers = kfake(t)
	for id, c := range []struct {
		call  string
		after step // at which the producer breaks; "" for one that has a transaction open
		want  string
	}{
		{"begin", "", "begin a transaction"},
		{"take the records", beforeProduce, "append 2 records"},
		{"take the cursor", afterFlush, "append the cursor"},
		{"commit", afterCursor, "commit a transaction"},
	} {
		config := validConfig()
		config.ID = uint64(id) + 1
		i := New(config, kafka, nil, newRegistry(), slog.New(slog.DiscardHandler))
		client, err := i.transactional()
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if err := chainlog.EnsureTopics(t.Context(), kadm.NewClient(client), config.ID, kafka.Topology()); err != nil {
			t.Fatal(err)
		}
		if err := fence(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		s := i.newSession(client)
		s.state = &state{logID: make([]byte, 16)}
		i.hook = func(reached step) error {
			if reached == c.after {
				client.Close()
			}
			return nil
		}
		if c.after == "" {
			if err := client.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
		}
		vault := &event.Record{Fact: &event.Record_Vault{Vault: &event.Vault{Address: make([]byte, 20)}}}
		block := &event.Record{Fact: &event.Record_Block{Block: &event.Block{Number: 7, Hash: make([]byte, 32), ParentHash: make([]byte, 32)}}}
		err = s.commit(t.Context(), &change{units: [][]*event.Record{{vault}, {block}}})
		var failed *commitError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a producer that does not %s: commit gives %v", c.call, err)
		}
		if st := i.Status(); st.Seq != 0 {
			t.Errorf("a producer that does not %s: the status is at seq %d", c.call, st.Seq)
		}
		next, err := i.transactional() // ends what is open
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

package chainlog

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// An open transaction is noticed because the stable end does not move. It counts as hanging after some time, until it
// ends. Transactions that end in time never count, however many there are.
func TestWatch(t *testing.T) {
	b := newBroker(t)
	topic := ReferralDeposits(chain)
	look := func(w *Watch, open bool) Tail {
		t.Helper()
		ends, err := w.Ends(b.ctx)
		b.must(err)
		if (w.Open() > 0) != open {
			t.Errorf("a transaction is open for %s, want open: %v", w.Open(), open)
		}
		return ends[topic][0]
	}
	never, soon := NewWatch(b.adm, time.Hour, topic), NewWatch(b.adm, time.Nanosecond, topic)
	if end := look(soon, false); end != (Tail{}) {
		t.Errorf("an empty topic ends at %+v", end)
	}
	client := b.client(kgo.TransactionalID("hanging"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	begin := func() {
		b.must(client.BeginTransaction())
		b.must(client.ProduceSync(b.ctx, &kgo.Record{Topic: topic, Partition: 0, Value: []byte("x")}).FirstErr())
	}
	begin()
	look(never, true)
	if end := look(soon, true); end.Written != 1 || end.Stable != 0 {
		t.Errorf("the ends are %+v", end)
	}
	if err := never.Hanging(); err != nil {
		t.Errorf("a young transaction counts as hanging: %v", err)
	}
	if err := soon.Hanging(); err == nil || !strings.Contains(err.Error(), "offset 0 of partition 0 of "+topic) {
		t.Errorf("an old transaction: %v", err)
	}
	b.must(EndTransaction(b.ctx, client, kgo.TryCommit, topic))
	first := soon.open[place{topic, 0}].since
	begin() // another one, before the next Ends
	look(soon, true)
	if again := soon.open[place{topic, 0}]; again.stable != 2 || !again.since.After(first) {
		t.Errorf("the second one is treated as the first: %+v", again)
	}
	b.must(EndTransaction(b.ctx, client, kgo.TryAbort, topic))
	soon.open[place{topic, 99}] = stop{7, first} // of a topic that was created again with fewer partitions
	if end := look(soon, false); end != (Tail{4, 4}) || soon.Hanging() != nil {
		t.Errorf("the ends are %+v, hanging: %v", end, soon.Hanging())
	}
}

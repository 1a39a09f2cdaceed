package workload

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/testkit/logoracle"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// TestUnkind checks that the chain has the properties listed in the package documentation, that ingest could have
// written its log, and that generating it again gives the same log.
func TestUnkind(t *testing.T) {
	o := Options{Events: 60_000, Users: 6_000}
	var records []*event.Record
	c := New(o, 0, func(r *event.Record) error { records = append(records, r); return nil })
	play := func(c *Chain) {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for c.Made < o.Events {
			if err := c.Next(); err != nil {
				t.Fatal(err)
			}
		}
	}
	play(c)
	reorgs, head := 0, uint64(0)
	folded := logoracle.Log{ChainID: ChainID, Fault: t.Fatalf, Unit: func(unit []*event.Record) {
		if unit[0].GetRetracts() != 0 {
			reorgs++
		}
	}}
	folded.Fold(committed(t, records))
	live := folded.Live
	for _, r := range records {
		if b := r.GetBlock(); b != nil && r.GetRetracts() == 0 {
			if head++; b.GetNumber() != head {
				t.Fatalf("block %d follows block %d", b.GetNumber(), head-1)
			}
		} else if b != nil {
			head--
		}
	}
	if c.Cursor().GetHead().GetNumber() != head {
		t.Errorf("the log ends at block %d, the cursor is %v", head, c.Cursor())
	}
	deposits, router, big, open, navs, logs := 0, 0, 0, 0, 0, 0
	for _, r := range live {
		if r.GetLog() == nil {
			continue
		}
		logs++
		switch e := decoded(t, r.GetLog()).(type) {
		case contracts.DepositAccepted:
			deposits++
			if e.Owner == Router {
				router++
			}
			if e.PartnerID == BigPartner {
				big++
			}
		case contracts.WithdrawalRequested:
			open++
		case contracts.NavUpdated:
			navs++
		case contracts.WithdrawalClaimed, contracts.WithdrawalCancelled, contracts.WithdrawalExpired:
			open--
		}
	}
	if logs != c.Made || reorgs < c.Made/logsABlock/reorgEvery/2 {
		t.Errorf("%d of %d logs are live after %d reorganisations", logs, c.Made, reorgs)
	}
	about := func(what string, got, want int) {
		t.Helper()
		if got < want*8/10 || got > want*12/10 {
			t.Errorf("%s: %d, want about %d", what, got, want)
		}
	}
	about("deposits of the router", router, o.Events/10)
	about("deposits of the big partner", big, deposits/6)
	about("open requests", open, o.Events/100)
	about("users", c.Users, o.Users)
	about("valuations", navs, o.Events/100)

	half := uint64(len(records) / 2)
	next := half
	again := New(o, half, func(r *event.Record) error {
		if next++; r.String() != records[next-1].String() {
			t.Fatalf("record %d is another one: %v", next, r)
		}
		return nil
	})
	play(again)
	if next != uint64(len(records)) {
		t.Errorf("made up again it has %d records and not %d", next, len(records))
	}
}

// committed returns records as Kafka has them.
func committed(t *testing.T, records []*event.Record) (out []*kgo.Record) {
	t.Helper()
	for _, r := range records {
		value, err := proto.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, &kgo.Record{Value: value})
	}
	return out
}

func decoded(t *testing.T, l *event.Log) contracts.Event {
	t.Helper()
	var topics []common.Hash
	for _, raw := range l.GetTopics() {
		topics = append(topics, common.Hash(raw))
	}
	e, err := devchain.Decode(topics, l.GetData())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

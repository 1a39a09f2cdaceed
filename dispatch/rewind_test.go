package dispatch

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Positions that moved past referrals without accepting them, as after brokers were restored from a backup and written
// to, are rewound: the partner gets what was missing, with the sequences after those that it has, and nothing that it
// had accepted.
func TestRewind(t *testing.T) {
	f := newFixture(t)
	f.partner7(ok)
	stop := f.run(f.dispatcher(nil))
	f.deposits(7, 0, 10)
	f.eventually("the first are delivered", func() bool { return f.states()[registry.Delivered] == 10 })
	stop()
	f.deposits(7, 10, 15)
	topics := []string{chainlog.ReferralDeposits(testChain), chainlog.ReferralWithdrawals(testChain)}
	ends, err := f.admin().ListEndOffsets(t.Context(), topics...)
	f.check(err)
	ends.Each(func(o kadm.ListedOffset) {
		f.exec("UPDATE position SET next_offset = $1 WHERE topic = $2 AND partition = $3", o.Offset, o.Topic, o.Partition)
	})
	attempts := f.number("SELECT count(*) FROM attempt")

	n, err := f.queries.RewindPositions(t.Context(), db.RewindPositionsParams{Topics: topics})
	f.check(err)
	if n == 0 {
		t.Error("no position was rewound")
	}
	f.run(f.dispatcher(nil))
	f.eventually("the missing ones are delivered", func() bool { return f.states()[registry.Delivered] == 15 })
	if now := f.number("SELECT count(*) FROM attempt"); now != attempts+5 {
		t.Errorf("%d attempts were made after the rewind, want 5", now-attempts)
	}
	if gaps := f.number("SELECT max(sequence) - count(*) FROM delivery WHERE partner_id = 7"); gaps != 0 {
		t.Errorf("the sequences have %d gaps", gaps)
	}
}

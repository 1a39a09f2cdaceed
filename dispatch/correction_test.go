package dispatch

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// mined returns a deposit of a transaction as it was mined the n-th time: with another block
// and time, log index and seq.
func (f *fixture) mined(partner uint32, tx, n int, logIndex uint32, assets int64) *event.Referral {
	r := referral(f.T, event.Referral_KIND_DEPOSIT, partner, tx, contracts.DepositAccepted{
		DepositID: big.NewInt(1), Owner: userAddress, PartnerID: partner, Sender: userAddress, Assets: big.NewInt(assets),
		Shares: big.NewInt(1),
	})
	r.Seq = uint64(1000*n) + uint64(logIndex)
	r.Log.BlockNumber, r.Log.BlockTime, r.Log.LogIndex = 1000+uint64(n), 1_700_000_000+uint64(n), logIndex
	r.Log.BlockHash[0] = byte(n)
	return r
}

func (f *fixture) encoded(referrals ...*event.Referral) (values [][]byte) {
	for _, r := range referrals {
		values = append(values, encode(f.T, proto.Clone(r).(*event.Referral)))
	}
	return values
}

// withBody counts the deliveries whose body contains all of these parts.
func (f *fixture) withBody(parts ...string) int64 {
	return f.number(
		"SELECT count(*) FROM delivery WHERE convert_from(body, 'UTF8') LIKE $1", "%"+strings.Join(parts, "%")+"%",
	)
}

// A transaction with two deposits is delivered and then mined again, in another block and at
// other log indexes, the first deposit at the second one's old index. Both keep their
// event, are not sent again, and get the new body. Reading everything again changes nothing;
// after a third mining they have that body.
func TestMinedAgain(t *testing.T) {
	f := newFixture(t)
	f.onePartition() // a partner's records are in one partition
	r := f.partner7(ok)
	d := f.start(nil)
	topic := chainlog.ReferralDeposits(testChain)
	f.produce(topic, f.encoded(f.mined(7, 1, 1, 3, 111), f.mined(7, 1, 1, 5, 222))...)
	f.eventually("delivered", f.in(registry.Delivered, 2))
	first, second := f.text("SELECT event_id::text FROM delivery WHERE sequence = 1"),
		f.text("SELECT event_id::text FROM delivery WHERE sequence = 2")
	say := func(what string, block, one, two int) {
		t.Helper()
		for id, logIndex := range map[string]string{first: fmt.Sprintf("111\"%%\"%d\",\"logIndex\":%d,", block, one),
			second: fmt.Sprintf("222\"%%\"%d\",\"logIndex\":%d,", block, two)} {
			if f.withBody(`"id":"`+id+`"`, logIndex) != 1 {
				t.Errorf("%s, event %s lacks %s: %s", what, id, logIndex, f.text(
					"SELECT convert_from(body, 'UTF8') FROM delivery WHERE event_id = $1::text::uuid", id,
				))
			}
		}
	}
	say("after the first mining", 1001, 3, 5)

	f.produce(topic, f.encoded(f.mined(7, 1, 2, 5, 111), f.mined(7, 1, 2, 7, 222))...)
	f.eventually("corrected", func() bool { return d.recordCount(recordCorrected) == 2 })
	say("mined again", 1002, 5, 7)
	if n := f.number("SELECT count(*) FROM delivery JOIN attempt USING (event_id) WHERE state = 'delivered' AND " +
		"corrected_at > started_at"); n != 2 {
		t.Errorf("%d of 2 deliveries are marked as corrected after their delivery", n)
	}

	f.exec("UPDATE position SET next_offset = 0") // the reader notices it
	f.produce(topic, f.encoded(f.mined(7, 1, 3, 0, 111), f.mined(7, 1, 3, 2, 222))...)
	f.eventually("all is read again",
		func() bool { return d.recordCount(recordKnown) == 4 && d.recordCount(recordCorrected) == 4 })
	say("mined a third time", 1003, 0, 2)
	if n := f.number("SELECT count(*) FROM correction WHERE revision IN (0, 1)"); n != 4 {
		t.Errorf("%d of 4 replaced bodies are kept", n)
	}
	for _, c := range r.got() {
		if f.number("SELECT count(*) FROM correction WHERE body = $1 AND revision = 0", c.body) != 1 {
			t.Errorf("a delivered body is not kept: %s", c.body)
		}
	}
	if n := f.number("SELECT count(*) FROM delivery"); n != 2 || len(r.got()) != 2 ||
		f.number("SELECT count(*) FROM dead_record") != 0 {
		t.Errorf("%d deliveries, %d requests for 2 events", n, len(r.got()))
	}
	f.contiguous(7, 2)
}

// All minings come in one batch, before anything is sent: the newest body is sent, once, and the partner sees no
// correction.
func TestMinedAgainBeforeItIsRead(t *testing.T) {
	f := newFixture(t)
	f.onePartition()
	r := f.partner7(ok)
	f.produce(chainlog.ReferralDeposits(testChain), f.encoded(
		f.mined(7, 1, 1, 3, 111), f.mined(7, 1, 2, 9, 111), f.mined(7, 1, 1, 3, 111),
	)...)
	f.start(nil)
	f.eventually("delivered", f.in(registry.Delivered, 1))
	if got := r.got(); len(got) != 1 || !strings.Contains(string(got[0].body), `"blockNumber":"1002","logIndex":9,`) {
		t.Errorf("delivered: %v", got)
	}
	if n := f.number("SELECT count(*) FROM delivery WHERE corrected_at IS NULL AND revision = 0"); n != 1 {
		t.Error("an event that was never sent counts as corrected")
	}
}

// The transaction is mined again while its first POST is in flight. If the POST is rejected,
// the next attempt has the new body; if it is accepted, nothing is sent again, and the
// delivery records that it was corrected after that POST.
func TestMinedAgainDuringThePost(t *testing.T) {
	for answer, posts := range map[int]int{http.StatusServiceUnavailable: 2, http.StatusNoContent: 1} {
		t.Run(http.StatusText(answer), func(t *testing.T) {
			f := newFixture(t)
			f.onePartition()
			r := f.partner7(func(w http.ResponseWriter, n, _ int) {
				if n == 1 {
					<-f.released
					w.WriteHeader(answer)
				}
			})
			d := f.start(nil)
			f.produce(chainlog.ReferralDeposits(testChain), f.encoded(f.mined(7, 1, 1, 3, 111))...)
			f.eventually("the first POST", func() bool { return len(r.got()) == 1 })
			f.produce(chainlog.ReferralDeposits(testChain), f.encoded(f.mined(7, 1, 2, 4, 111))...)
			f.eventually("corrected", func() bool { return d.recordCount(recordCorrected) == 1 })
			corrected := f.text("SELECT corrected_at::text FROM delivery")
			f.release()
			f.eventually("delivered", f.in(registry.Delivered, 1))
			got := r.got()
			if len(got) != posts || got[0].id() != got[len(got)-1].id() {
				t.Fatalf("%d requests, want %d of one event", len(got), posts)
			}
			if n := f.number("SELECT count(*) FROM attempt JOIN delivery USING (event_id) WHERE started_at < corrected_at"); n != 1 {
				t.Errorf("%d attempts have an older body than the delivery, want 1", n)
			}
			if f.number("SELECT count(*) FROM delivery WHERE corrected_at > $1::text::timestamptz", corrected) != 1 {
				t.Error("the correction is dated before the end of a POST without it")
			}
			if last := string(got[len(got)-1].body); posts == 2 &&
				!strings.Contains(last, `"blockNumber":"1002","logIndex":4,`) {
				t.Errorf("the second attempt sent %s", last)
			}
		})
	}
}

// A transaction is mined again while its event is prefetched and waits for a slow receiver:
// its first attempt already has the new body.
func TestMinedAgainWhileQueued(t *testing.T) {
	f := newFixture(t)
	f.onePartition()
	r := f.partner7(func(_ http.ResponseWriter, n, _ int) {
		if n == 1 {
			<-f.released
		}
	})
	topic := chainlog.ReferralDeposits(testChain)
	f.produce(topic, f.encoded(f.mined(7, 1, 1, 3, 111), f.mined(7, 2, 1, 4, 222))...)
	d := f.start(func(d *Dispatch) { d.shared.Concurrency, d.shared.Timing.Scan = 1, time.Millisecond })
	f.eventually("the first POST", func() bool { return len(r.got()) == 1 })
	f.produce(topic, f.encoded(f.mined(7, 2, 2, 5, 222))...)
	f.eventually("corrected", func() bool { return d.recordCount(recordCorrected) == 1 })
	f.release()
	f.eventually("delivered", f.in(registry.Delivered, 2))
	if got := r.got(); len(got) != 2 || !strings.Contains(string(got[1].body), `"blockNumber":"1002","logIndex":5,`) {
		t.Errorf("%d requests, the last with %s", len(got), got[len(got)-1].body)
	}
	if n := f.number("SELECT count(*) FROM attempt JOIN delivery USING (event_id) WHERE revision = 1 AND started_at > " +
		"corrected_at"); n != 1 {
		t.Errorf("%d attempts began after the correction", n)
	}
}

// A transaction was executed differently when it was mined again: an additional referral is a separate event, unless
// its id is taken; a referral of another partner or type is never mistaken for it.
func TestMinedAgainDifferently(t *testing.T) {
	f := newFixture(t)
	f.onePartition()
	r := f.partner7(ok)
	f.partner(8, r.url)
	d := f.start(nil)
	topic := chainlog.ReferralDeposits(testChain)
	f.produce(topic, f.encoded(f.mined(7, 1, 1, 3, 111), f.mined(8, 1, 1, 4, 333))...)
	f.eventually("delivered", f.in(registry.Delivered, 2))
	f.produce(topic, f.encoded(f.mined(7, 1, 2, 2, 111), f.mined(7, 1, 2, 5, 222), f.mined(7, 1, 2, 3, 444))...)
	f.eventually("the additional event is delivered", f.in(registry.Delivered, 3))
	f.eventually("the one with a used id is a dead letter", func() bool { return d.recordCount(recordConflict) == 1 })
	if n := f.withBody(`"333"`, `"1001","logIndex":4,`); n != 1 || d.recordCount(recordCorrected) != 1 {
		t.Errorf("the other partner's event was mistaken for the first one's: %v corrected", d.recordCount(recordCorrected))
	}
}

// elsewhere returns a referral that was mined again in a block with the same number and time, as on chains whose blocks
// have fixed times: only the block's hash and the seq differ.
func elsewhere(r *event.Referral) *event.Referral {
	r = proto.Clone(r).(*event.Referral)
	r.Log.BlockHash[1]++
	r.Seq += 500
	return r
}

// A transaction with three deposits is mined again in a block with the same number and time. Deposits whose log index
// is the same too have the same body, which is not corrected; each of the others gets its own body, and no other one's.
func TestMinedAgainWithTheSameBody(t *testing.T) {
	f := newFixture(t)
	f.onePartition()
	r := f.partner7(ok)
	d := f.start(nil)
	topic := chainlog.ReferralDeposits(testChain)
	first := []*event.Referral{f.mined(7, 1, 1, 3, 111), f.mined(7, 1, 1, 5, 222), f.mined(7, 1, 1, 7, 333)}
	f.produce(topic, f.encoded(first...)...)
	f.eventually("delivered", f.in(registry.Delivered, 3))
	again := []*event.Referral{elsewhere(first[0]), elsewhere(first[1]), elsewhere(f.mined(7, 1, 1, 8, 333))}
	f.produce(topic, f.encoded(again[0])...) // in a batch of its own: what it changes is read from PostgreSQL
	read := func() float64 { return d.recordCount(recordKnown) + d.recordCount(recordCorrected) }
	f.eventually("the first is read", func() bool { return read() == 1 })
	f.produce(topic, f.encoded(again[1:]...)...)
	f.eventually("all are read", func() bool { return read() == 3 })
	for sequence, want := range []string{`"111"%"logIndex":3,`, `"222"%"logIndex":5,`, `"333"%"logIndex":8,`} {
		if f.number("SELECT count(*) FROM delivery WHERE sequence = $1 AND convert_from(body, 'UTF8') LIKE $2", sequence+1,
			"%"+want+"%") != 1 {
			t.Errorf("event %d is not %s: %s", sequence+1, want,
				f.text("SELECT convert_from(body, 'UTF8') FROM delivery WHERE sequence = $1", sequence+1))
		}
	}
	if n := f.number("SELECT count(*) FROM delivery WHERE corrected_at IS NOT NULL OR revision > 0"); n != 1 {
		t.Errorf("%d events count as corrected, and one body was replaced", n)
	}
	if n := f.number("SELECT count(*) FROM correction"); n != 1 || len(r.got()) != 3 {
		t.Errorf("%d bodies were replaced, and there were %d requests", n, len(r.got()))
	}
}

// However often a transaction is mined, in whichever of three blocks, with equal or other numbers, times and log indexes,
// and from wherever its referrals are read again: there is one event for each of its deposits, with the body of the
// newest mining.
func TestMinedAgainAtRandom(t *testing.T) {
	f := &fixture{T: t}
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0))
		deposits := 1 + random.IntN(3)
		read, newest := f.randomMinings(random, deposits)
		known := &knownDeliveries{byEvent: map[uuid.UUID]*knownDelivery{}, byTx: map[string][]*knownDelivery{}}
		var rows db.InsertDeliveriesParams
		for _, r := range read {
			a := f.arrive(r)
			what, of, body, err := known.classify(a)
			f.check(err)
			switch what {
			case recordCorrected:
				f.check(correct(t.Context(), nil, of, a, body, &rows))
			case recordInserted:
				known.add(&knownDelivery{event: a.ID, partner: a.partner(), kind: a.Type, body: a.body, mined: a.mined,
					row: len(rows.EventIds)})
				appendDelivery(&rows, a, 0, registry.Pending, "")
			}
		}
		if len(rows.EventIds) != deposits {
			t.Fatalf("seed %d: %d events of %d deposits", seed, len(rows.EventIds), deposits)
		}
		for i, r := range newest {
			if want, err := f.arrive(r).bodyOf(rows.EventIds[i]); err != nil || !bytes.Equal(rows.Bodies[i], want) {
				t.Fatalf("seed %d: event %d is %s, want %s (%v)", seed, i, rows.Bodies[i], want, err)
			}
		}
	}
}

// randomMinings returns the referrals of a transaction with some deposits, in the order in which they are read, and
// those of its newest mining.
func (f *fixture) randomMinings(random *rand.Rand, deposits int) (read, newest []*event.Referral) {
	var written []*event.Referral
	blocks := map[byte][]*event.Referral{}
	for seq, minings := 0, 1+random.IntN(4); minings > 0; minings-- {
		hash, number, index := byte(1+random.IntN(3)), 1+random.IntN(2), uint32(random.IntN(2))
		if blocks[hash] == nil {
			for i := range deposits {
				blocks[hash] = append(blocks[hash], f.mined(7, 1, number, index+uint32(2*i), int64(100+i)))
				blocks[hash][i].Log.BlockHash[0] = hash
			}
		}
		newest = nil
		for _, r := range blocks[hash] {
			seq++
			r = proto.Clone(r).(*event.Referral)
			r.Seq = uint64(seq)
			newest = append(newest, r)
		}
		written = append(written, newest...)
	}
	read = written
	for range random.IntN(3) { // a part is read, and then everything from the start
		read = slices.Concat(read[:random.IntN(len(read)+1)], written)
	}
	return read, newest
}

// arrive decodes a referral as if it had been read.
func (f *fixture) arrive(r *event.Referral) arrival {
	f.Helper()
	a, err := decode(testChain, &kgo.Record{Value: encode(f.T, r)})
	f.check(err)
	return a
}

// judge classifies an arrival by the known deliveries of its transaction and with its id.
func TestJudge(t *testing.T) {
	f := &fixture{T: t}
	withdrawn := func(tx, n int, logIndex uint32) *event.Referral {
		r, as := withdrawal(t, 7, tx), f.mined(7, tx, n, logIndex, 0)
		r.Seq, r.Log.BlockNumber, r.Log.BlockTime, r.Log.BlockHash, r.Log.LogIndex = as.Seq, as.Log.BlockNumber,
			as.Log.BlockTime, as.Log.BlockHash, logIndex
		return r
	}
	later := func(r *event.Referral) *event.Referral { r.Seq += 100_000; return r }
	of := func(r ...*event.Referral) []*event.Referral { return r }
	for _, c := range []struct {
		what    string
		known   []*event.Referral
		old     bool // delivered before migration 00012 stored the mining
		arrives *event.Referral
		want    string
		which   int // index into known
	}{
		{"nothing is known", nil, false, f.mined(7, 1, 1, 3, 111), recordInserted, -1},
		{"another transaction is known", of(f.mined(7, 2, 1, 3, 111)), false, f.mined(7, 1, 2, 3, 111), recordInserted, -1},
		{"the log is known", of(f.mined(7, 1, 1, 3, 111)), false, f.mined(7, 1, 1, 3, 111), recordKnown, 0},
		{"the log is known, with an earlier seq", of(f.mined(7, 1, 1, 3, 111)), false, later(f.mined(7, 1, 1, 3, 111)),
			recordKnown, 0},
		{"the log is known, with another body", of(f.mined(7, 1, 1, 3, 111)), false, f.mined(7, 1, 1, 3, 112), recordConflict,
			0},
		{"another log of the same mining is known", of(f.mined(7, 1, 1, 3, 111)), false, f.mined(7, 1, 1, 5, 222),
			recordInserted, -1},
		{"both logs of the same mining are known", of(f.mined(7, 1, 1, 3, 111), f.mined(7, 1, 1, 5, 222)), false,
			f.mined(7, 1, 1, 5, 222), recordKnown, 1},
		{"mined again", of(f.mined(7, 1, 1, 3, 111)), false, f.mined(7, 1, 2, 4, 111), recordCorrected, 0},
		{"mined again at the same index", of(f.mined(7, 1, 1, 3, 111)), false, f.mined(7, 1, 2, 3, 111), recordCorrected, 0},
		{"mined again, the first of two", of(f.mined(7, 1, 1, 3, 111), f.mined(7, 1, 1, 5, 222)), false,
			f.mined(7, 1, 2, 5, 111), recordCorrected, 0},
		{"mined again, the second", of(f.mined(7, 1, 2, 5, 111), f.mined(7, 1, 1, 5, 222)), false, f.mined(7, 1, 2, 7, 222),
			recordCorrected, 1},
		{"mined again, the first of two that was backfilled later", of(f.mined(7, 1, 1, 5, 222), f.mined(7, 1, 1, 3, 111)),
			false, f.mined(7, 1, 2, 5, 111), recordCorrected, 1},
		{"mined again, and all are known", of(f.mined(7, 1, 2, 5, 111), f.mined(7, 1, 2, 7, 222)), false,
			f.mined(7, 1, 2, 9, 333), recordInserted, -1},
		{"mined again with the same body", of(f.mined(7, 1, 1, 3, 111)), false,
			elsewhere(f.mined(7, 1, 1, 3, 111)), recordCorrected, 0},
		{"mined again with the same body, the second", of(elsewhere(f.mined(7, 1, 1, 3, 111)), f.mined(7, 1, 1, 5, 222)),
			false, elsewhere(f.mined(7, 1, 1, 5, 222)), recordCorrected, 1},
		{"mined before", of(f.mined(7, 1, 2, 4, 111)), false, f.mined(7, 1, 1, 3, 111), recordKnown, 0},
		{"mined before, the second", of(f.mined(7, 1, 2, 4, 111), f.mined(7, 1, 2, 6, 222)), false, f.mined(7, 1, 1, 5, 222),
			recordKnown, 0},
		{"another partner's", of(f.mined(8, 1, 1, 3, 111)), false, f.mined(7, 1, 2, 3, 111), recordInserted, -1},
		{"another partner's of a later mining", of(f.mined(8, 1, 2, 3, 111)), false, f.mined(7, 1, 1, 3, 111), recordInserted,
			-1},
		{"another type's", of(f.mined(7, 1, 1, 3, 111)), false, withdrawn(1, 2, 3), recordInserted, -1},
		{"after another type's", of(f.mined(7, 1, 1, 3, 111), withdrawn(1, 1, 4)), false, withdrawn(1, 2, 5), recordCorrected,
			1},
		{"known without mining", of(f.mined(7, 1, 1, 3, 111)), true, f.mined(7, 1, 1, 3, 111), recordKnown, 0},
		{"known without mining, with another body", of(f.mined(7, 1, 1, 3, 111)), true, f.mined(7, 1, 2, 3, 111),
			recordConflict, 0},
		{"known without mining, under another id", of(f.mined(7, 1, 1, 3, 111)), true, f.mined(7, 1, 2, 4, 111),
			recordInserted, -1},
	} {
		known := &knownDeliveries{byEvent: map[uuid.UUID]*knownDelivery{}, byTx: map[string][]*knownDelivery{}}
		var stored []*knownDelivery
		for _, r := range c.known {
			a := f.arrive(r)
			of := &knownDelivery{event: a.ID, partner: a.partner(), kind: a.Type, body: a.body, mined: a.mined, row: -1}
			if c.old {
				of.mined = mining{}
			}
			known.add(of)
			stored = append(stored, of)
		}
		a := f.arrive(c.arrives)
		own := bytes.Clone(a.body)
		what, is, body, err := known.classify(a)
		if err != nil || what != c.want || (is == nil) != (c.which < 0) || is != nil && is != stored[c.which] {
			t.Errorf("%s: %s of %+v, want %s of %d (%v)", c.what, what, is, c.want, c.which, err)
			continue
		}
		if !bytes.Equal(a.body, own) || what == recordInserted && !bytes.Equal(body, own) {
			t.Errorf("%s: the arrival's own body changed", c.what)
		}
		if what == recordCorrected && string(body) != strings.Replace(string(own), a.ID.String(), is.event.String(), 1) {
			t.Errorf("%s: event %s will get the body %s", c.what, is.event, body)
		}
	}
}

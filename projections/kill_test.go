package projections

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

// TestClickHouseKilled kills ClickHouse with SIGKILL while units are written, again and again, and restarts it with
// the same data. The projector continues by itself, and all totals are exact.
func TestClickHouseKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for an engine that starts again and again")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	engine, err := engines.StartClickHouse(ctx, t.TempDir())
	must(t, err)
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Errorf("close ClickHouse: %v", err)
		}
	})
	w := newWorldAt(t, engine.Addr)
	s := busyHistory(rand.New(rand.NewPCG(77, 1)), 90)
	begun := uint64(len(slices.Concat(units(s.Records)[:3]...)))
	w.append(t, s.Records[:begun])
	p, _ := w.projector(t)
	p.config.MaxRows = 10
	start(t, p)
	reaches(t, p, begun) // lists is built, and then updated
	w.append(t, s.Records[begun:])
	const kills = 3
	for i := range uint64(kills) {
		want := begun + (i+1)*(s.Seq()-begun)/(kills+2)
		wait.Until(t, func() error {
			if got := p.Status().Seq; got < want {
				return fmt.Errorf("at seq %d, want %d before the next kill", got, want)
			}
			return nil
		})
		engine.Kill()
		if got := p.Status().Seq; got == s.Seq() {
			t.Fatalf("the log was at its end before kill %d: it was not in mid-stream", i+1)
		}
		must(t, engine.Restart(ctx))
	}
	reaches(t, p, s.Seq())
	w.verify(t, s.Seq())
}

// TestFeed: units arrive complete and in order, however few records a poll returns.
func TestFeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := randomHistory(rand.New(rand.NewPCG(9, 9)), 60)
	w.append(t, s.Records)
	for _, maxRows := range []int{1, 30, 100_000} {
		reader, err := chainlog.NewReader(chainID, chainlog.Position{}, w.kafka.Options()...)
		must(t, err)
		defer reader.Close()
		f := newFeed(reader, decode.NewDecoder(chainID, unmapped(t)), 0, maxRows, func(int64) {})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.run(ctx) }()
		var seq uint64
		for seq < s.Seq() {
			batch, _, err := f.next(ctx, maxRows, time.Millisecond)
			must(t, err)
			for e := range batch.All() {
				if seq++; e.Seq != seq {
					t.Fatalf("seq %d instead of %d", e.Seq, seq)
				}
			}
			if last := batch.Last(); !last.Boundary {
				t.Fatalf("a batch ends with seq %d, which is not a boundary", last.Seq)
			}
			if whole := units(s.Records[seq-uint64(batch.Len()) : seq]); maxRows == 1 && len(whole) != 1 {
				t.Fatalf("%d units in a batch that was full with one", len(whole))
			}
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the feed ended with %v", err)
		}
	}
}

// TestFeedGathers: units that the log already has come in one batch, up to about the maximum number of records.
func TestFeedGathers(t *testing.T) {
	t.Parallel()
	s := randomHistory(rand.New(rand.NewPCG(9, 9)), 20)
	all := units(s.Records)[:4]
	full := len(slices.Concat(all[:3]...))
	wait.Until(t, func() error { // if the machine stalls, the feed has waited long enough
		f := &feed{units: make(chan chunk, len(all))}
		for i, unit := range all {
			f.units <- chunk{facts: batchOf(t, unit), more: i < len(all)-1}
		}
		for _, want := range [][][]*event.Record{all[:3], all[3:]} {
			batch, _, err := f.next(t.Context(), full, time.Millisecond)
			must(t, err)
			if records := slices.Concat(want...); batch.Len() != len(records) || batch.First().Seq != records[0].Seq {
				return fmt.Errorf("a batch has %d records from seq %d on, want %d from seq %d on", batch.Len(), batch.First().Seq,
					len(records), records[0].Seq)
			}
		}
		return nil
	})
}

// TestLocateWithoutKafka: a broker that becomes unavailable while a record is looked up shows nothing about the log:
// neither that it begins there, nor that it was replaced.
func TestLocateWithoutKafka(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(t, randomHistory(rand.New(rand.NewPCG(4, 4)), 10).Records)
	for clients := range 2 { // only these can reach it: one requests the end, another one the record
		hook := &counting{}
		reach := kgo.Dialer(func(ctx context.Context, network, host string) (net.Conn, error) {
			if hook.clients.Load() > int32(clients) {
				return nil, errors.New("the broker is unavailable")
			}
			return new(net.Dialer).DialContext(ctx, network, host)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		found, err := locate(ctx, chainID, 2, unmapped(t), append(w.kafka.Options(), kgo.WithHooks(hook), reach))
		cancel()
		if err == nil || permanent(err) {
			t.Errorf("after %d clients: found %d, %v", clients, found.Seq, err)
		}
	}
}

// counting counts the clients that were created.
type counting struct{ clients atomic.Int32 }

func (c *counting) OnNewClient(*kgo.Client) { c.clients.Add(1) }

// TestLocate finds every record of a log whose offsets have gaps: markers after
// each small transaction, and transactions that were aborted.
func TestLocate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(4, 4))
	s := randomHistory(rng, 120)
	for _, unit := range units(s.Records) {
		if rng.IntN(3) == 0 {
			w.transaction(t, s.Records[:1+rng.IntN(30)], kgo.TryAbort)
		}
		w.transaction(t, unit, kgo.TryCommit)
	}
	reader, err := chainlog.NewReader(chainID, chainlog.Position{}, w.kafka.Options()...)
	must(t, err)
	defer reader.Close()
	offsets := map[uint64]int64{}
	for uint64(len(offsets)) < s.Seq() {
		got, err := reader.Poll(t.Context(), 1000)
		must(t, err)
		for _, e := range got {
			offsets[e.GetSeq()] = e.Offset
		}
	}
	if gaps := offsets[s.Seq()] - int64(s.Seq()); gaps < 100 {
		t.Fatalf("the log has only %d gaps, too few for this test", gaps)
	}
	for _, seq := range []uint64{1, 2, s.Seq() / 3, s.Seq() / 2, s.Seq() - 1, s.Seq()} {
		found, err := locate(t.Context(), chainID, seq, unmapped(t), w.kafka.Options())
		if err != nil || found.Seq != seq || found.Offset != offsets[seq] {
			t.Errorf("seq %d is found as %d at offset %d (%v), it is at %d", seq, found.Seq, found.Offset, err, offsets[seq])
		}
	}
	if start, err := locate(t.Context(), chainID, 0, unmapped(t), w.kafka.Options()); err != nil || start.Offset != 0 {
		t.Errorf("the start is found at offset %d, %v", start.Offset, err)
	}
	// The log may be too short by very little: the jump may land between the last record and the end, on a marker or
	// on aborted records.
	w.transaction(t, s.Records[:3], kgo.TryAbort)
	for _, seq := range []uint64{s.Seq() + 1, s.Seq() + 2, s.Seq() + 4, s.Seq() + 6, s.Seq() * 3} {
		if _, err := locate(t.Context(), chainID, seq, unmapped(t), w.kafka.Options()); !permanent(err) ||
			!strings.Contains(err.Error(), fmt.Sprintf("ends before seq %d", seq)) {
			t.Errorf("seq %d of a log that ends with %d: %v", seq, s.Seq(), err)
		}
	}
}

// TestRestoredLogThatWentOn: a log that was restored from an older copy and then continued is longer than the
// position again, and is still rejected.
func TestRestoredLogThatWentOn(t *testing.T) {
	if testing.Short() {
		t.Skip("a long log")
	}
	t.Parallel()
	w := newWorld(t)
	s := busyHistory(rand.New(rand.NewPCG(5, 5)), 40)
	parts := units(s.Records)
	w.append(t, slices.Concat(parts[:2*len(parts)/3]...))
	p, _ := w.projector(t)
	stop := start(t, p)
	position := uint64(len(slices.Concat(parts[:2*len(parts)/3]...)))
	reaches(t, p, position)
	must(t, stop())

	// The older copy has half the log. What ingest appends to it ends one record later than before.
	copied := slices.Concat(parts[:len(parts)/2]...)
	last := uint64(len(copied))
	wentOn := []*event.Record{{Seq: last + 1, ChainId: chainID, Boundary: true,
		Fact: &event.Record_Decision{Decision: &event.Decision{Kind: "resume"}}}}
	for _, r := range s.Records[last:] {
		r = proto.Clone(r).(*event.Record)
		r.Seq++
		if r.Retracts > last {
			r.Retracts++
		}
		wentOn = append(wentOn, r)
	}
	w.newLog(t)
	w.append(t, copied)
	w.append(t, wentOn)
	p, _ = w.projector(t)
	refuses(t, p, fmt.Sprintf("at seq %d %s has", position, w.ch.Database(1)), "an older copy and then continued",
		"`navlog projection rebuild`")
	if n := number(t, w.conn, "SELECT max(seq) FROM "+w.ch.Database(1)+".events"); n != position {
		t.Errorf("the tables continue to seq %d, after %d", n, position)
	}
}

// TestRebuildOnAnOlderCopy: the log was restored from an older copy, and ends before the live generation. A rebuild
// does not wait until the log is as long again: it compares with the log, and makes the new generation live.
func TestRebuildOnAnOlderCopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	stop := start(t, p)
	reaches(t, p, s.Seq())
	must(t, stop())
	parts := units(s.Records)
	copied := slices.Concat(parts[:len(parts)-2]...)
	w.newLog(t)
	w.append(t, copied)
	p, _ = w.projector(t)
	refuses(t, p, fmt.Sprintf("ends before seq %d", s.Seq()))
	out, err := w.operator(t).Rebuild(t.Context(), RebuildOptions{})
	if err != nil || !out.Live || out.Verified == nil || out.Verified.Seq != uint64(len(copied)) {
		t.Fatalf("rebuilt %+v, %v", out, err)
	}
	follows(t, p, 2, uint64(len(copied)))
	w.append(t, slices.Concat(parts[len(parts)-2:]...))
	follows(t, p, 2, s.Seq())
	w.verify(t, s.Seq())
}

// TestRestoredLogBehindEvents: a writer crashed between its two inserts, so events is ahead of lists, and the log lost
// just these records and continued with others. The rows of events cannot be those of the log any more.
func TestRestoredLogBehindEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	parts := units(everyEvent().Records)
	before := slices.Concat(parts[:len(parts)-1]...)
	w.append(t, before)
	p, _ := w.projector(t)
	stop := start(t, p)
	position := uint64(len(before))
	reaches(t, p, position)
	must(t, stop())
	events := w.ch.Database(1) + ".events"
	must(t, w.conn.Exec(t.Context(), fmt.Sprintf(
		"INSERT INTO %[1]s SELECT * REPLACE (seq + 1 AS seq) FROM (SELECT * FROM %[1]s WHERE seq = %[2]d)", events, position)))

	p, _ = w.projector(t)
	stop = refuses(t, p, fmt.Sprintf("ends before seq %d", position+1), "`navlog projection rebuild`")
	must(t, stop())
	w.append(t, parts[len(parts)-1])
	p, _ = w.projector(t)
	refuses(t, p, fmt.Sprintf("at seq %d %s has", position+1, w.ch.Database(1)), "an older copy and then continued")
}

// TestEndsWith: the row of every kind of record is recognised, and any difference is a permanent error.
func TestEndsWith(t *testing.T) {
	t.Parallel()
	g := newGeneration(t)
	s := everyEvent()
	s.Retract(1)
	w := g.writer(t)
	ends := func(f *decode.Fact) error {
		return checkLastRecord(t.Context(), g.conn, g.database, w.Position(), f)
	}
	var last decode.Fact
	contents := map[readmodel.RecordKind]int{}
	for x := range batchOf(t, s.Records).All() {
		last = *x
		last.Boundary = true // each record is a unit, so that the tables end with it
		must(t, w.Write(t.Context(), w.Encode(decode.Batch{{last}})))
		must(t, ends(&last))
		if other := last; last.Kind == readmodel.VaultRecord || last.Kind == readmodel.DecisionRecord {
			contents[last.Kind]++
			other.Raw = append(slices.Clone(last.Raw), 0)
			if err := ends(&other); !permanent(err) {
				t.Errorf("a %s record with another content: %v", last.Kind, err)
			}
		}
	}
	if len(contents) != 2 {
		t.Errorf("the history has %v", contents)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := checkLastRecord(ended, g.conn, g.database, w.Position(), &last); err == nil || permanent(err) {
		t.Errorf("a row that cannot be read: %v", err)
	}
	for what, change := range map[string]func(other *decode.Fact){
		"kind":     func(other *decode.Fact) { other.Kind = readmodel.DecisionRecord },
		"event":    func(other *decode.Fact) { other.Kind, other.Named = readmodel.LogRecord, "NavUpdated" },
		"block":    func(other *decode.Fact) { other.Log.Block++ },
		"hash":     func(other *decode.Fact) { other.Hash[31]++ },
		"time":     func(other *decode.Fact) { other.Log.Time++ },
		"index":    func(other *decode.Fact) { other.Log.Index++ },
		"vault":    func(other *decode.Fact) { other.Log.Vault[0]++ },
		"retracts": func(other *decode.Fact) { other.Retracts++ },
		"boundary": func(other *decode.Fact) { other.Boundary = false },
	} {
		other := last
		change(&other)
		if err := ends(&other); !permanent(err) {
			t.Errorf("a record with another %s: %v", what, err)
		}
	}
}

package writer

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// unattended returns a writer of a new log that only the test commands.
func unattended(t *testing.T, o Options) *Writer {
	t.Helper()
	client, err := kgo.NewClient(o.Kafka.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := chainlog.EnsureTopics(t.Context(), kadm.NewClient(client), o.ChainID, o.Kafka.Topology()); err != nil {
		t.Fatal(err)
	}
	w := New(o, status.New(prometheus.NewRegistry(), o.ChainID, ""), slog.New(slog.DiscardHandler))
	if err := w.Fence(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	w.State = &State{logID: make([]byte, 16)}
	return w
}

// If any call of the producer fails, the session ends, and the transaction has no effect, neither in memory nor in the
// log. A session that continued would report blocks as indexed, and number records after others, that the log does not
// have.
func TestProducerFails(t *testing.T) {
	t.Parallel()
	kafka := chainlog.DefaultConfig()
	kafka.Brokers = enginetest.Kafka(t)
	for id, c := range []struct {
		call  string
		after Step // at which the producer breaks; "" for a producer that already has a transaction open
		want  string
	}{
		{"begin", "", "begin a transaction"},
		{"take the records", BeforeProduce, "append 2 records"},
		{"take the cursor", AfterFlush, "append the cursor"},
		{"commit", AfterCursor, "commit a transaction"},
	} {
		s := unattended(t, Options{Log: Log{uint64(id) + 1, kafka}})
		s.Hook = func(reached Step) error {
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
		block := &event.Record{Fact: &event.Record_Block{Block: &event.Block{Number: 7, Hash: make([]byte, 32),
			ParentHash: make([]byte, 32)}}}
		err := s.Commit(t.Context(), &Change{Units: [][]*event.Record{{vault}, {block}}})
		if !errors.Is(err, ErrCommit) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a producer that does not %s: commit returns %v", c.call, err)
		}
		if st := s.status.Snapshot(); st.Seq != 0 {
			t.Errorf("a producer that does not %s: the status is at seq %d", c.call, st.Seq)
		}
		unattended(t, Options{Log: s.Log}) // ends the open transaction
		if cursor, err := s.Cursor(t.Context()); err != nil || cursor != nil {
			t.Errorf("a producer that does not %s: the cursor is %v, %v", c.call, cursor, err)
		}
		if origin, err := chainlog.ReadOrigin(t.Context(), s.ChainID, kafka.Options()...); err != nil || origin != nil {
			t.Errorf("a producer that does not %s: the log is %v, %v", c.call, origin, err)
		}
	}
}

// After any transaction, the next session has the same state as the one before, from the cursor and the records from
// window_seq: every record of the window, including the oldest, at its offset.
func TestNextSessionHasTheState(t *testing.T) {
	t.Parallel()
	kafka := chainlog.DefaultConfig()
	kafka.Brokers = enginetest.Kafka(t)
	// So that some referrals are below the window and not published.
	s := unattended(t, Options{Log: Log{11, kafka}, Window: 4, Confirmations: 6})
	m := &model{rng: rand.New(rand.NewPCG(3, 1)), chain: []*rpc.Header{{}}}
	s.State.Head = m.chain[0]
	pruned := false
	for n := range 24 {
		c := &Change{}
		switch {
		case n%6 == 5:
			c = m.reorganise(s.State, 1+m.rng.IntN(3))
		case n%6 == 2:
			c.Final = s.State.Head.Number - min(s.State.Head.Number, 4)
		default:
			for range 1 + m.rng.IntN(2) {
				c.Head = m.block()
				c.Units = append(c.Units, m.logs(c.Head))
			}
		}
		if err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		cursor, err := s.Cursor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		next := New(s.Options, s.status, s.log)
		next.State = stateOf(cursor)
		if err := next.readTail(t.Context(), cursor); err != nil {
			t.Fatalf("after %d transactions: %v", n+1, err)
		}
		if err := same(s.State, next.State); err != nil {
			t.Fatalf("after %d transactions: %v", n+1, err)
		}
		if next.State.offset != s.State.offset {
			t.Errorf("after %d transactions record %d is at offset %d, and was at %d", n+1, s.State.Seq, next.State.offset,
				s.State.offset)
		}
		for j, e := range s.State.Window.entries {
			if got := next.State.Window.entries[j].Offset; got != e.Offset {
				t.Errorf("after %d transactions record %d is at offset %d, and was at %d", n+1, e.GetSeq(), got, e.Offset)
			}
		}
		pruned = pruned || cursor.GetWindowSeq() > 1
	}
	if !pruned {
		t.Error("the window was never shorter than the log: the test proves nothing")
	}
}

// CheckWriter accepts a cursor by the writer with which this Run began, or by this Run itself, even before the
// claim is confirmed.
func TestCheckWriter(t *testing.T) {
	t.Parallel()
	w := &Writer{Options: Options{Instance: bytes.Repeat([]byte{1}, 16)}}
	last, other := bytes.Repeat([]byte{2}, 16), bytes.Repeat([]byte{3}, 16)
	for name, c := range map[string]struct {
		by, last []byte
		valid    bool
	}{
		"of the last writer":                {last, last, true},
		"its own":                           {w.Instance, w.Instance, true},
		"its own, not confirmed yet":        {w.Instance, last, true},
		"of another writer":                 {other, last, false},
		"of another writer, after its own":  {other, w.Instance, false},
		"of the last writer, after its own": {last, w.Instance, false},
		"none, after the last writer":       {nil, last, false},
	} {
		err := w.CheckWriter(&event.Cursor{InstanceId: c.by}, c.last)
		if c.valid != (err == nil) || err != nil && !errors.Is(err, ErrFenced) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// All records are bounded, so this can only be a bug.
func TestRecordThatIsTooLongIsRefused(t *testing.T) {
	record := VaultFact(&event.Vault{Name: strings.Repeat("x", maxRecord)})
	record.Seq, record.ChainId = 3, 1
	_, err := encode(&Change{Units: [][]*event.Record{{record}}}, nil, nil)
	var refusal *rpc.RefusedError
	if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "record 3, a vault, would have") {
		t.Errorf("a vault record that is too long returns %v", err)
	}
}

// The largest possible record fits into a Kafka batch.
func TestLargestRecordFits(t *testing.T) {
	full := func(n int) []byte { return bytes.Repeat([]byte{0xff}, n) }
	l := &event.Log{
		Address: full(20), Topics: [][]byte{full(32), full(32), full(32), full(32)}, BlockNumber: math.MaxUint64,
		BlockHash: full(32),
		BlockTime: math.MaxUint64, TxHash: full(32), TxIndex: math.MaxUint32, LogIndex: math.MaxUint32,
	}
	l.SetData(full(event.MaxData))
	record := LogFacts(l)[0]
	record.Seq, record.Retracts, record.Boundary, record.ChainId = math.MaxUint64, math.MaxUint64, true, math.MaxUint64
	record.Origin = &event.Origin{LogId: full(16), GenesisHash: full(32)}
	k, err := chainlog.Encode(record)
	if err != nil || len(k.Value) > maxRecord || len(l.Data) != event.MaxData {
		t.Errorf("the record has %d bytes and may have %d (%v)", len(k.Value), maxRecord, err)
	}
	l.SetData(full(event.MaxData + 1))
	if len(l.Data) > 0 || l.DataLength != event.MaxData+1 ||
		!bytes.Equal(l.DataHash, crypto.Keccak256(full(event.MaxData+1))) {
		t.Errorf("for larger data the record has the length %d and the hash %x", l.DataLength, l.DataHash)
	}
}

// If the brokers lost the end of the log, or the topic was made again, nothing is appended to what is left: the seqs
// would have a hole that no later record fills.
func TestNothingFollowsALostEnd(t *testing.T) {
	t.Parallel()
	// Newer brokers reject records for a topic that was made again.
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.MaxVersions(kversion.V3_9_0()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	kafka := chainlog.DefaultConfig()
	kafka.Brokers = broker.ListenAddrs()
	w := unattended(t, Options{Log: Log{ChainID: 1, Kafka: kafka}})
	commit := func(number uint64) error {
		h := &rpc.Header{Number: number}
		return w.Commit(t.Context(), &Change{Units: [][]*event.Record{{BlockFact(h)}}, Head: h})
	}
	for number := range uint64(3) {
		if err := commit(number + 1); err != nil {
			t.Fatal(err)
		}
	}
	client, err := kgo.NewClient(kafka.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	if _, err := chainlog.Checked(adm.DeleteTopics(t.Context(), chainlog.LogTopic(1))); err != nil {
		t.Fatal(err)
	}
	if err := chainlog.EnsureTopics(t.Context(), adm, 1, kafka.Topology()); err != nil {
		t.Fatal(err)
	}
	if err := commit(4); !errors.Is(err, ErrCommit) || !strings.Contains(err.Error(), "lost") {
		t.Errorf("a record after a lost end: %v", err)
	}
	unattended(t, w.Options) // ends the open transaction
	if origin, err := chainlog.ReadOrigin(t.Context(), 1, kafka.Options()...); err != nil || origin != nil {
		t.Errorf("the log holds %v, %v", origin, err)
	}
}

// A partition that is added to a running log stays empty: records without a key, such as those of blocks, and the
// cursor continue in partition 0, where readers expect them.
func TestAddedPartitionsStayEmpty(t *testing.T) {
	t.Parallel()
	kafka := chainlog.DefaultConfig()
	kafka.Brokers = enginetest.Kafka(t)
	w := unattended(t, Options{Log: Log{ChainID: 1, Kafka: kafka}})
	client, err := kgo.NewClient(kafka.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	topics := []string{chainlog.LogTopic(1), chainlog.CursorTopic(1)}
	if _, err := adm.UpdatePartitions(t.Context(), 8, topics...); err != nil {
		t.Fatal(err)
	}
	w.client.Close() // the next session's client, which knows the partitions from the start
	if err := w.Fence(t.Context()); err != nil {
		t.Fatal(err)
	}
	const blocks = 50
	for number := uint64(1); number <= blocks; number++ {
		h := &rpc.Header{Number: number}
		if err := w.Commit(t.Context(), &Change{Units: [][]*event.Record{{BlockFact(h)}}, Head: h}); err != nil {
			t.Fatal(err)
		}
	}
	ends, err := adm.ListEndOffsets(t.Context(), topics...)
	if err != nil {
		t.Fatal(err)
	}
	ends.Each(func(end kadm.ListedOffset) {
		if (end.Partition == 0) != (end.Offset > 0) {
			t.Errorf("partition %d of %s ends at offset %d", end.Partition, end.Topic, end.Offset)
		}
	})
	read := 0
	err = chainlog.ReadAfter(t.Context(), 1, chainlog.Position{}, func(chainlog.Entry) error { read++; return nil },
		kafka.Options()...)
	if err != nil || read != blocks {
		t.Errorf("the log has %d records of %d, %v", read, blocks, err)
	}
	// The error of the next start explains how to keep the records.
	err = chainlog.CheckTopics(t.Context(), adm, 1, kafka.Topology())
	if err == nil || !strings.Contains(err.Error(), "do not delete it before") {
		t.Errorf("the check of the topics returns %v", err)
	}
}

// A partner's referrals stay in the partition of the default partitioner, which depends on the key only, or their order
// would be lost with a new version.
func TestReferralsKeepTheirPartition(t *testing.T) {
	w := &Writer{Options: Options{Log: Log{ChainID: 1}}}
	for _, topic := range []string{chainlog.ReferralDeposits(1), chainlog.ReferralWithdrawals(1)} {
		p := w.partitioner().ForTopic(topic)
		standard := kgo.UniformBytesPartitioner(64<<10, true, true, nil).ForTopic(topic)
		for key, want := range map[string]int{"1": 7, "2": 0, "7": 3, "42": 4, "1000": 6, "4294967295": 4} {
			r := &kgo.Record{Topic: topic, Key: []byte(key)}
			backup, ok := standard.(kgo.TopicBackupPartitioner)
			if !ok || !p.RequiresConsistency(r) {
				t.Fatal("the partitioners have unexpected types")
			}
			if got, was := p.Partition(r, 8), backup.PartitionByBackup(r, 8, nil); got != want || was != want {
				t.Errorf("partner %s is in partition %d, and with the default partitioner in %d, want %d", key, got, was, want)
			}
		}
	}
}

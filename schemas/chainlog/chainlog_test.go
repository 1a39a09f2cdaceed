package chainlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
)

const chain = 1

// broker is an embedded Kafka with the topics of one chain.
type broker struct {
	t       *testing.T
	ctx     context.Context
	options []kgo.Opt
	adm     *kadm.Client
	cluster *kfake.Cluster
}

func newBroker(t *testing.T) *broker { t.Helper(); return newCluster(t, 1) }

// newCluster starts one broker per replica.
func newCluster(t *testing.T, brokers int) *broker {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(brokers))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c := DefaultConfig()
	c.Brokers, c.ReplicationFactor = cluster.ListenAddrs(), int16(brokers)
	b := &broker{t: t, ctx: ctx, options: c.Options(), cluster: cluster}
	client := b.client()
	b.adm = kadm.NewClient(client)
	b.must(EnsureTopics(ctx, b.adm, chain, c.Topology()))
	return b
}

func (b *broker) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *broker) client(more ...kgo.Opt) *kgo.Client {
	b.t.Helper()
	client, err := kgo.NewClient(append(more, b.options...)...)
	b.must(err)
	b.t.Cleanup(client.Close)
	return client
}

// transaction appends records to the log and, if there is one, the cursor.
func (b *broker) transaction(end kgo.TransactionEndTry, cursor *event.Cursor, records ...*event.Record) {
	b.t.Helper()
	client := b.client(kgo.TransactionalID("test"))
	b.must(client.BeginTransaction())
	var topics []string
	for _, r := range records {
		k, err := Encode(r)
		b.must(err)
		b.must(client.ProduceSync(b.ctx, k).FirstErr())
		topics = append(topics, k.Topic)
	}
	if cursor != nil {
		value, err := proto.Marshal(cursor)
		b.must(err)
		b.must(client.ProduceSync(b.ctx, &kgo.Record{Topic: CursorTopic(chain), Key: []byte("1"), Value: value}).FirstErr())
		topics = append(topics, CursorTopic(chain))
	}
	b.must(EndTransaction(b.ctx, client, end, topics...))
}

func (b *broker) raw(topic string, value string) {
	b.t.Helper()
	b.must(b.client().ProduceSync(b.ctx, &kgo.Record{Topic: topic, Key: []byte("1"), Value: []byte(value)}).FirstErr())
}

func blockRecord(seq uint64) *event.Record {
	r := &event.Record{Seq: seq, ChainId: chain, Boundary: true,
		Fact: &event.Record_Block{Block: &event.Block{Number: seq, Time: 1_700_000_000 + seq}}}
	if seq == 1 {
		r.Origin = &event.Origin{LogId: []byte("0123456789abcdef"), GenesisHash: make([]byte, 32)}
	}
	return r
}

func blocks(from, to uint64) (records []*event.Record) {
	for seq := from; seq <= to; seq++ {
		records = append(records, blockRecord(seq))
	}
	return records
}

// read returns the seqs that Poll returns up to last.
func (b *broker) read(from Position, last uint64) ([]uint64, error) {
	reader, err := NewReader(chain, from, b.options...)
	b.must(err)
	defer reader.Close()
	var seqs []uint64
	for len(seqs) == 0 || seqs[len(seqs)-1] < last {
		entries, err := reader.Poll(b.ctx, 3)
		if err != nil {
			return seqs, err
		}
		for _, e := range entries {
			seqs = append(seqs, e.GetSeq())
		}
	}
	return seqs, nil
}

func contiguous(seqs []uint64, from, to uint64) error {
	if uint64(len(seqs)) != to-from+1 {
		return fmt.Errorf("%d records, want %d to %d: %v", len(seqs), from, to, seqs)
	}
	for i, seq := range seqs {
		if seq != from+uint64(i) {
			return fmt.Errorf("record %d has seq %d", i, seq)
		}
	}
	return nil
}

// offsetOf finds a record without Reader.
func (b *broker) offsetOf(seq uint64) (offset int64) {
	b.must(ReadAfter(b.ctx, chain, Position{}, func(e Entry) error {
		if e.GetSeq() == seq {
			offset = e.Offset
		}
		return nil
	}, b.options...))
	return offset
}

func TestReaderProvesContiguity(t *testing.T) {
	b := newBroker(t)
	b.transaction(kgo.TryCommit, nil, blocks(1, 4)...)
	b.transaction(kgo.TryAbort, nil, blocks(5, 9)...) // aborted
	b.transaction(kgo.TryCommit, nil, blocks(5, 12)...)
	fourth := b.offsetOf(4)
	if fourth == 0 || b.offsetOf(5) <= fourth+1 {
		t.Fatalf("offsets %d and %d have no gap between them: the test proves nothing", fourth, b.offsetOf(5))
	}
	for name, from := range map[string]Position{
		"from the start":                 {},
		"without a hint":                 {Seq: 4},
		"with the right hint":            {Seq: 4, Offset: fourth},
		"with a hint that is early":      {Seq: 4, Offset: 1},
		"with a hint that is late":       {Seq: 4, Offset: b.offsetOf(8)},
		"with a hint past the end":       {Seq: 4, Offset: 10_000},
		"with a hint to the next record": {Seq: 4, Offset: b.offsetOf(5)},
	} {
		t.Run(name, func(t *testing.T) {
			seqs, err := b.read(from, 12)
			if err == nil {
				err = contiguous(seqs, from.Seq+1, 12)
			}
			if err != nil {
				t.Error("Poll:", err)
			}
			seqs = nil
			err = ReadAfter(b.ctx, chain, from, func(e Entry) error { seqs = append(seqs, e.GetSeq()); return nil },
				b.options...)
			if err == nil {
				err = contiguous(seqs, from.Seq+1, 12)
			}
			if err != nil {
				t.Error("ReadAfter:", err)
			}
		})
	}
}

func TestReadAfterEnds(t *testing.T) {
	b := newBroker(t)
	count := func(from Position) (n int) {
		t.Helper()
		b.must(ReadAfter(b.ctx, chain, from, func(Entry) error { n++; return nil }, b.options...))
		return n
	}
	if n := count(Position{}); n != 0 {
		t.Errorf("%d records in an empty log", n)
	}
	b.transaction(kgo.TryAbort, nil, blocks(1, 3)...)
	if n := count(Position{}); n != 0 {
		t.Errorf("%d records in a log with aborted ones only", n)
	}
	b.transaction(kgo.TryCommit, nil, blocks(1, 3)...)
	b.transaction(kgo.TryAbort, nil, blocks(4, 6)...)
	if n := count(Position{}); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
	if n := count(Position{Seq: 3, Offset: b.offsetOf(3)}); n != 0 {
		t.Errorf("%d records after the end", n)
	}
	stop := errors.New("enough")
	if err := ReadAfter(b.ctx, chain, Position{}, func(Entry) error { return stop }, b.options...); !errors.Is(err, stop) {
		t.Errorf("the error of visit is returned as %v", err)
	}
}

// TestReadingEndsWithoutBrokers: brokers that go away after a reader knows the end of the log end the reading with an
// error. A broker that responds and sends nothing for a while does not.
func TestReadingEndsWithoutBrokers(t *testing.T) {
	defer func(before time.Duration) { silence = before }(silence)
	silence = 200 * time.Millisecond
	b := newBroker(t)
	b.transaction(kgo.TryCommit, &event.Cursor{ChainId: chain}, blocks(1, 5)...)
	var read []uint64
	visit := func(e Entry) error { read = append(read, e.GetSeq()); return nil }
	held := 0
	hold := func(gone bool) {
		b.cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
			if held++; held < 3 || gone {
				b.cluster.KeepControl()
				if gone {
					go b.cluster.Close()
				}
				return nil, errors.New("close the connection"), true
			}
			return nil, nil, false
		})
	}
	hold(false)
	if err := ReadAfter(b.ctx, chain, Position{}, visit, b.options...); err != nil || contiguous(read, 1, 5) != nil {
		t.Errorf("a broker that closes connections for a while: %v, read %d", err, read)
	}
	hold(true)
	err := ReadAfter(b.ctx, chain, Position{}, visit, b.options...)
	if err == nil || !strings.HasPrefix(err.Error(), "read chain.1.log after seq 0: no broker responds: ") {
		t.Errorf("brokers that went away: %v", err)
	}
}

func TestReaderRejectsHolesAndGarbage(t *testing.T) {
	t.Run("hole", func(t *testing.T) {
		b := newBroker(t)
		b.transaction(kgo.TryCommit, nil, blockRecord(1), blockRecord(2), blockRecord(4))
		seqs, err := b.read(Position{}, 4)
		var hole *HoleError
		if !errors.As(err, &hole) || hole.Want != 3 || hole.Got != 4 {
			t.Fatalf("after %v: %v", seqs, err)
		}
		if !strings.Contains(err.Error(), "restore the topic") {
			t.Errorf("the error lacks the remedy: %v", err)
		}
	})
	t.Run("hole after a wrong hint", func(t *testing.T) {
		b := newBroker(t)
		b.transaction(kgo.TryCommit, nil, blockRecord(1), blockRecord(2), blockRecord(4), blockRecord(5))
		var hole *HoleError
		if _, err := b.read(Position{Seq: 2, Offset: 3}, 5); !errors.As(err, &hole) {
			t.Fatalf("the hole is not found: %v", err)
		}
	})
	t.Run("fork", func(t *testing.T) {
		b := newBroker(t)
		b.transaction(kgo.TryCommit, nil, blocks(1, 5)...)
		b.transaction(kgo.TryCommit, nil, blocks(4, 7)...) // another writer, or the same unit again
		for name, from := range map[string]Position{
			"from the start":                 {},
			"at the end of the first writer": {Seq: 5, Offset: 4},
			"before the fork":                {Seq: 3, Offset: 2},
			"after the fork, without a hint": {Seq: 6},
		} {
			var hole *HoleError
			if seqs, err := b.read(from, 7); !errors.As(err, &hole) || hole.Want != 6 || hole.Got != 4 {
				t.Errorf("%s: after %v: %v", name, seqs, err)
			} else if !strings.Contains(err.Error(), "goes back to seq 4") ||
				!strings.Contains(err.Error(), "restore the topic") {
				t.Errorf("%s: the error lacks the problem or the remedy: %v", name, err)
			}
		}
	})
	for name, value := range map[string]string{
		"garbage":       "\xff\xff\xff",
		"empty":         "",
		"another chain": string(mustMarshal(t, &event.Record{Seq: 2, ChainId: 7, Fact: blockRecord(2).GetFact()})),
		"no seq":        string(mustMarshal(t, &event.Record{ChainId: chain, Fact: blockRecord(2).GetFact()})),
		"no fact":       string(mustMarshal(t, &event.Record{Seq: 2, ChainId: chain})),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBroker(t)
			b.transaction(kgo.TryCommit, nil, blockRecord(1))
			b.raw(LogTopic(chain), value)
			_, err := b.read(Position{}, 2)
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) || corrupt.Offset != 2 {
				t.Fatalf("a record with %s gives %v", name, err)
			}
			if !strings.Contains(err.Error(), "chain.1.log") || !strings.Contains(err.Error(), "restore the topic") {
				t.Errorf("the error lacks the place or the remedy: %v", err)
			}
		})
	}
}

func mustMarshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReadOrigin(t *testing.T) {
	b := newBroker(t)
	origin := func() *event.Origin {
		t.Helper()
		o, err := ReadOrigin(b.ctx, chain, b.options...)
		b.must(err)
		return o
	}
	if o := origin(); o != nil {
		t.Errorf("an empty log has the origin %v", o)
	}
	b.transaction(kgo.TryAbort, nil, blocks(1, 2)...)
	if o := origin(); o != nil {
		t.Errorf("a log with aborted records only has the origin %v", o)
	}
	b.transaction(kgo.TryCommit, nil, blocks(1, 2)...)
	if o := origin(); string(o.GetLogId()) != "0123456789abcdef" {
		t.Errorf("the origin is %v", o)
	}

	b = newBroker(t)
	nameless := blockRecord(1)
	nameless.Origin = nil
	b.transaction(kgo.TryCommit, nil, nameless)
	var corrupt *CorruptError
	if _, err := ReadOrigin(b.ctx, chain, b.options...); !errors.As(err, &corrupt) {
		t.Errorf("a first record without origin gives %v", err)
	}
}

func TestReadCursor(t *testing.T) {
	b := newBroker(t)
	newest := func() *event.Cursor {
		t.Helper()
		c, err := ReadCursor(b.ctx, chain, b.options...)
		b.must(err)
		return c
	}
	if c := newest(); c != nil {
		t.Errorf("an empty topic has the cursor %v", c)
	}
	for seq := uint64(1); seq <= 3; seq++ {
		b.transaction(kgo.TryCommit, &event.Cursor{ChainId: chain, Seq: seq})
	}
	b.transaction(kgo.TryAbort, &event.Cursor{ChainId: chain, Seq: 4})
	if c := newest(); c.GetSeq() != 3 {
		t.Errorf("the newest cursor is at seq %d, want 3, the last committed one", c.GetSeq())
	}
	var corrupt *CorruptError
	b.transaction(kgo.TryCommit, &event.Cursor{ChainId: 7, Seq: 5})
	if _, err := ReadCursor(b.ctx, chain, b.options...); !errors.As(err, &corrupt) {
		t.Errorf("a cursor of another chain gives %v", err)
	}
	b.raw(CursorTopic(chain), "\xff\xff")
	if _, err := ReadCursor(b.ctx, chain, b.options...); !errors.As(err, &corrupt) {
		t.Errorf("an invalid cursor gives %v", err)
	}
}

// Settle waits for open transactions, in all topics of the chain, and not for topics that were never
// written.
func TestSettle(t *testing.T) {
	b := newBroker(t)
	settle := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		defer cancel()
		return Settle(ctx, chain, b.options...)
	}
	b.must(settle(time.Minute))
	client := b.client(kgo.TransactionalID("test"))
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		b.must(client.BeginTransaction())
		b.must(client.ProduceSync(b.ctx,
			&kgo.Record{Topic: CursorTopic(chain), Key: []byte("1"), Value: []byte("open")}).FirstErr())
		if err := settle(200 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a transaction open, Settle gives %v", err)
		}
		settled := make(chan error, 1)
		go func() { settled <- settle(time.Minute) }()
		b.must(EndTransaction(b.ctx, client, end, CursorTopic(chain)))
		b.must(<-settled)
	}
	if err := Settle(b.ctx, 9, b.options...); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("missing topics give %v", err)
	}
}

func TestEncodeAndDecode(t *testing.T) {
	address := []byte("01234567890123456789")
	for kind, r := range map[string]*event.Record{
		"log": {Seq: 1, ChainId: chain,
			Fact: &event.Record_Log{Log: &event.Log{Address: address, BlockTime: 1_700_000_000}}},
		"block": {Seq: 2, ChainId: chain, Retracts: 1,
			Fact: &event.Record_Block{Block: &event.Block{Number: 5, Time: 1_700_000_000}}},
		"vault": {Seq: 3, ChainId: chain, Fact: &event.Record_Vault{Vault: &event.Vault{Address: address}}},
		"decision": {Seq: 4, ChainId: chain,
			Fact: &event.Record_Decision{Decision: &event.Decision{Time: 1_700_000_000_000}}},
		"sample": {Seq: 5, ChainId: chain,
			Fact: &event.Record_Sample{Sample: &event.Sample{Vault: address, BlockTime: 1_700_000_000}}},
	} {
		k, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if k.Topic != "chain.1.log" || string(k.Headers[0].Value) != kind || TypeOf(r) != kind {
			t.Errorf("a %s is encoded as %+v", kind, k)
		}
		if (kind == "log" || kind == "vault" || kind == "sample") && string(k.Key) != string(address) {
			t.Errorf("the key of a %s is %x", kind, k.Key)
		}
		if kind != "vault" && k.Timestamp.Unix() != 1_700_000_000 {
			t.Errorf("the time of a %s is %s", kind, k.Timestamp)
		}
		back, err := Decode(chain, k)
		if err != nil || !proto.Equal(back, r) {
			t.Errorf("a %s reads back as %v, %v", kind, back, err)
		}
		if want := map[bool]int8{true: -1, false: 1}[r.GetRetracts() != 0]; Sign(r) != want {
			t.Errorf("the sign of a %s is %d, want %d", kind, Sign(r), want)
		}
	}
	if _, err := Encode(&event.Record{Seq: 1, ChainId: chain}); err == nil {
		t.Error("a record without a fact is encoded")
	}
	if got := TypeOf(&event.Record{}); got != "unknown" {
		t.Errorf("the type of a record without a fact is %s", got)
	}
}

func TestEnsureTopics(t *testing.T) {
	b := newBroker(t)
	topology := Topology{ReplicationFactor: 1, ReferralPartitions: 8}
	b.must(EnsureTopics(b.ctx, b.adm, chain, topology)) // again
	topics, err := b.adm.ListTopics(b.ctx)
	b.must(err)
	for name, partitions := range map[string]int{LogTopic(chain): 1, CursorTopic(chain): 1, ReferralDeposits(chain): 8,
		ReferralWithdrawals(chain): 8} {
		if got := len(topics[name].Partitions); got != partitions {
			t.Errorf("topic %s has %d partitions, want %d", name, got, partitions)
		}
	}
	alter := func(topic, key, value string) {
		t.Helper()
		answers, err := b.adm.AlterTopicConfigs(b.ctx, []kadm.AlterConfig{{Name: key, Value: &value}}, topic)
		b.must(err)
		_, err = answers.On(topic, nil)
		b.must(err)
	}
	alter(LogTopic(chain), "retention.ms", "604800000")
	alter(ReferralDeposits(chain), "retention.bytes", "1000")
	alter(CursorTopic(chain), "cleanup.policy", "delete")
	_, err = b.adm.CreatePartitions(b.ctx, 1, LogTopic(chain))
	b.must(err)
	err = EnsureTopics(b.ctx, b.adm, chain, topology)
	if err == nil {
		t.Fatal("topics whose records expire are accepted")
	}
	for _, want := range []string{
		`topic chain.1.log has retention.ms="604800000" and must have "-1"`,
		`topic chain.1.referral.deposits has retention.bytes="1000"`,
		`topic chain.1.cursor has cleanup.policy="delete" and must have "compact"`, "topic chain.1.log has 2 partitions",
		"kafka-configs.sh --bootstrap-server HOST:PORT --alter",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}

// A new topic is noticed as soon as it is visible.
func TestTopicsAreReadWithoutCache(t *testing.T) {
	b := newBroker(t)
	topology := Topology{ReplicationFactor: 1, ReferralPartitions: 8}
	looks := kadm.NewClient(b.client())
	if err := CheckTopics(b.ctx, looks, 2, topology); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Fatalf("missing topics: %v", err)
	}
	b.must(EnsureTopics(b.ctx, b.adm, 2, topology))
	b.must(CheckTopics(b.ctx, looks, 2, topology))
}

// Existing topics that may lose acknowledged records or reject a batch are errors, each with the
// command that fixes it. A single replica is reported, but is not an error.
func TestEnsureTopicsThatCanLose(t *testing.T) {
	for brokers, faults := range map[int]map[[2]string]string{
		1: {
			{"min.insync.replicas",
				"2"}: `topic chain.1.log has min.insync.replicas="2" and must have 1 at most, or its 1 replicas would acknowledge nothing: run kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type topics --entity-name chain.1.log --add-config min.insync.replicas=1`,
			{"max.message.bytes",
				"1000"}: `topic chain.1.log has max.message.bytes="1000" and must have 1048588 or more, or batches would be rejected`,
			{"max.message.bytes", "2000000"}:           "",
			{"unclean.leader.election.enable", "true"}: "",
		},
		3: {
			{"min.insync.replicas",
				"1"}: `has min.insync.replicas="1" and must have 2 or more, or only one of its 3 replicas would acknowledge, and records would be lost with it`,
			{"min.insync.replicas", "3"}: "",
			{"min.insync.replicas", "4"}: "must have 2 at most",
			{"unclean.leader.election.enable",
				"true"}: `has unclean.leader.election.enable="true" and must have false, or a replica that lacks acknowledged records could become the leader`,
		},
	} {
		b := newCluster(t, brokers)
		single, err := SingleReplicas(b.ctx, b.adm, chain)
		b.must(err)
		if want := map[int]int{1: 4, 3: 0}[brokers]; len(single) != want {
			t.Errorf("with %d brokers %v have one replica", brokers, single)
		}
		topology := Topology{ReplicationFactor: int16(brokers), ReferralPartitions: 8}
		for setting, want := range faults {
			alter := func(op kadm.IncrementalOp) {
				answers, err := b.adm.AlterTopicConfigs(b.ctx, []kadm.AlterConfig{{Op: op, Name: setting[0], Value: &setting[1]}},
					LogTopic(chain))
				b.must(err)
				_, err = answers.On(LogTopic(chain), nil)
				b.must(err)
			}
			alter(kadm.SetConfig)
			err := EnsureTopics(b.ctx, b.adm, chain, topology)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%d brokers, %v: %v", brokers, setting, err)
			}
			alter(kadm.DeleteConfig)
		}
	}
}

func TestEnsureTopicsCannotCreate(t *testing.T) {
	b := newBroker(t)
	err := EnsureTopics(b.ctx, b.adm, 2, Topology{ReplicationFactor: 3, ReferralPartitions: 8})
	if err == nil || !strings.Contains(err.Error(), "are there 3 brokers?") {
		t.Errorf("three replicas on one broker: %v", err)
	}
}

func TestConfigValidate(t *testing.T) {
	good := DefaultConfig()
	good.Brokers = []string{"localhost:9092"}
	good.SASL = SASL{Mechanism: "SCRAM-SHA-512", User: "u", Password: "p"}
	if err := good.Validate(); err != nil {
		t.Errorf("a valid configuration is rejected: %v", err)
	}
	bad := Config{Brokers: []string{"localhost", "localhost:"}, SASL: SASL{Mechanism: "PLAIN"}}
	err := bad.Validate()
	for _, want := range []string{`"localhost" is not host:port`, `"localhost:" is not host:port`,
		"kafka.replicationFactor is 0", "kafka.referralPartitions is 0", "kafka.sasl needs user and password"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	for _, c := range []Config{{}, {SASL: SASL{Mechanism: "GSSAPI"}}} {
		if err := c.Validate(); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// A trace context is in the headers of its record only: the content of the log, and what other records carry, stay the
// same.
func TestTraceContextIsNotContent(t *testing.T) {
	r := &event.Record{Seq: 1, ChainId: chain, Boundary: true, Fact: &event.Record_Block{Block: &event.Block{Number: 5}}}
	plain, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	carries, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	Carry(carries, parent)
	Carry(plain, "")
	if got := Parent(carries); got != parent {
		t.Errorf("the record carries %q", got)
	}
	if got := Parent(plain); got != "" || len(plain.Headers) != 1 {
		t.Errorf("a record of the same type carries %q", got)
	}
	if !bytes.Equal(plain.Value, carries.Value) || !bytes.Equal(plain.Key, carries.Key) {
		t.Error("the content has changed")
	}
	for _, k := range []*kgo.Record{plain, carries} {
		raw, err := Peek(chain, k)
		if err != nil || raw.Seq != 1 || !raw.Boundary {
			t.Errorf("the record is read as %+v, %v", raw, err)
		}
	}
}

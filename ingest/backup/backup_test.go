package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

const (
	chainID    = 77
	partitions = 3
)

var (
	logID   = bytes.Repeat([]byte{0xab}, 16)
	genesis = bytes.Repeat([]byte{0xcd}, 32)
	topics  = []string{chainlog.LogTopic(chainID), chainlog.ReferralDeposits(chainID),
		chainlog.ReferralWithdrawals(chainID)}
)

// broker is a separate Kafka with the writer of a log.
type broker struct {
	*testing.T
	kafka  chainlog.Config
	client *kgo.Client
	logID  []byte
	seq    uint64
	block  uint64
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	k, err := engines.StartKafka(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	b := &broker{T: t, kafka: chainlog.DefaultConfig(), logID: logID}
	b.kafka.Brokers, b.kafka.ReferralPartitions = []string{k.Addr}, partitions
	b.client, err = kgo.NewClient(append(b.kafka.Options(), kgo.TransactionalID("a writer"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	b.must(err)
	t.Cleanup(b.client.Close)
	return b
}

func (b *broker) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// append writes blocks with a log and two referrals each. Each block is one unit, committed in its own transaction. One
// transaction in between is aborted.
func (b *broker) append(blocks int) {
	b.Helper()
	b.must(chainlog.EnsureTopics(b.Context(), kadm.NewClient(b.client), chainID, b.kafka.Topology()))
	for n := range blocks {
		if n == 1 {
			b.unit(kgo.TryAbort)
			b.seq, b.block = b.seq-2, b.block-1
		}
		b.unit(kgo.TryCommit)
	}
}

func (b *broker) unit(end kgo.TransactionEndTry) {
	b.Helper()
	b.block++
	l := &event.Log{Address: bytes.Repeat([]byte{1}, 20), BlockNumber: b.block, BlockTime: 1_700_000_000 + b.block,
		Data: bytes.Repeat([]byte{byte(b.block)}, 100)}
	head := &event.Block{Number: b.block, Hash: bytes.Repeat([]byte{byte(b.block)}, 32),
		ParentHash: bytes.Repeat([]byte{byte(b.block - 1)}, 32), Time: 1_700_000_000 + b.block}
	var records []*kgo.Record
	for i, r := range []*event.Record{{Fact: &event.Record_Log{Log: l}}, {Fact: &event.Record_Block{Block: head}}} {
		b.seq++
		r.Seq, r.ChainId, r.Boundary = b.seq, chainID, i == 1
		if b.seq == 1 {
			r.Origin = &event.Origin{LogId: b.logID, GenesisHash: genesis}
		}
		record, err := chainlog.Encode(r)
		b.must(err)
		records = append(records, record)
	}
	for i, topic := range topics[1:] {
		referral := &event.Referral{ChainId: chainID, PartnerId: 7, Seq: b.seq - 1, LogId: b.logID, Log: l}
		records = append(records,
			&kgo.Record{Topic: topic, Partition: int32(int(b.block)+i) % partitions, Key: []byte("7"),
				Value: b.marshal(referral)})
	}
	cursor := &event.Cursor{LogId: b.logID, GenesisHash: genesis, ChainId: chainID,
		InstanceId: bytes.Repeat([]byte{9}, 16), Seq: b.seq, Head: head, FinalBlock: b.block, ReferralBlock: b.block,
		WindowSeq: b.seq, Vaults: []*event.Coverage{{Address: l.Address, StartBlock: 1, CoveredTo: b.block}}}
	b.must(b.client.BeginTransaction())
	b.must(b.client.ProduceSync(b.Context(), records...).FirstErr())
	cursor.WindowOffset = records[1].Offset
	b.must(b.client.ProduceSync(b.Context(),
		&kgo.Record{Topic: chainlog.CursorTopic(chainID), Key: []byte("77"), Value: b.marshal(cursor)}).FirstErr())
	b.must(chainlog.EndTransaction(b.Context(), b.client, end, append(slices.Clone(topics), chainlog.CursorTopic(chainID))...))
}

func (b *broker) marshal(m proto.Message) []byte {
	b.Helper()
	out, err := proto.Marshal(m)
	b.must(err)
	return out
}

func (b *broker) cursor() *event.Cursor {
	b.Helper()
	c, err := chainlog.ReadCursor(b.Context(), chainID, b.kafka.Options()...)
	b.must(err)
	return c
}

// records returns all committed records of the log and referral topics, by topic and partition, without offsets.
func (b *broker) records() map[string][]string {
	b.Helper()
	found := map[string][]string{}
	client, err := kgo.NewClient(append(b.kafka.Options(), kgo.ConsumeTopics(topics...),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())...)
	b.must(err)
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(b.Context(), topics...)
	b.must(err)
	left := 0
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left++
		}
	})
	for left > 0 {
		fetches := client.PollFetches(b.Context())
		b.must(fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				place := fmt.Sprintf("%s %d", r.Topic, r.Partition)
				found[place] = append(found[place], fmt.Sprintf("%x %x %v %d", r.Key, r.Value, r.Headers, r.Timestamp.UnixMilli()))
			}
			if end, _ := ends.Lookup(r.Topic, r.Partition); r.Offset+1 == end.Offset {
				left--
			}
		})
	}
	return found
}

// write backs up the log, in small segments.
func (b *broker) write(dir string) (*Report, error) {
	return (&backup{kafka: b.kafka, chainID: chainID, dir: dir, size: 600}).run(b.Context())
}

func (b *broker) mustWrite(dir string) *Report {
	b.Helper()
	r, err := b.write(dir)
	b.must(err)
	return r
}

func (b *broker) same(other *broker) {
	b.Helper()
	want, got := b.records(), other.records()
	if len(want) != 1+2*partitions || fmt.Sprint(want) != fmt.Sprint(got) {
		b.Errorf("restored:\n%v\nwant\n%v", got, want)
	}
}

func (b *broker) restore(dir string, wrote func(int) error) (*Report, error) {
	return (&restore{kafka: b.kafka, dir: dir, wrote: wrote}).run(b.Context(), chainID)
}

// A log that is backed up in two parts and restored in two parts is the same as before: every record with its key,
// headers and time, in the order of its partition, and the cursor. The log is frozen until the restore ends.
func TestBackupAndRestore(t *testing.T) {
	from, to, dir := newBroker(t), newBroker(t), t.TempDir()
	from.append(6)
	first := from.mustWrite(dir)
	if first.Segments < 3 || first.Done != first.Segments || first.Seq != from.seq || first.Log != from.seq ||
		first.Deposits != 6 || first.Withdrawals != 6 {
		t.Fatalf("the first backup: %+v", first)
	}
	before := files(t, dir)
	from.append(5)
	second := from.mustWrite(dir)
	if second.Segments != first.Segments+second.Done || second.Log != from.seq || second.Deposits != 11 ||
		second.Seal == first.Seal {
		t.Fatalf("the second backup: %+v", second)
	}
	after := files(t, dir)
	for name, content := range before {
		if strings.HasSuffix(name, ".zst") && after[name] != content {
			t.Errorf("the second backup changed %s", name)
		}
	}
	if again := from.mustWrite(dir); again.Done != 0 || again.Seal != second.Seal {
		t.Errorf("without new records: %+v", again)
	}
	verified, err := Verify(t.Context(), dir, nil)
	if err != nil || verified.Seal != second.Seal || verified.Log != from.seq {
		t.Fatalf("verify: %+v, %v", verified, err)
	}

	interrupted := errors.New("interrupted")
	_, err = to.restore(dir, func(n int) error {
		if n == 2 {
			return interrupted
		}
		return nil
	})
	half := to.cursor()
	if !errors.Is(err, interrupted) || !Restoring(half.GetFrozen()) || half.GetHead() != nil ||
		len(half.GetVaults()) != 0 || half.GetSeq() >= from.seq {
		t.Fatalf("interrupted with %v, the cursor is %v", err, half)
	}
	if _, err := to.write(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is being restored") {
		t.Errorf("the backup of a half-restored log returns %v", err)
	}
	done, err := to.restore(dir, nil)
	if err != nil || done.Done != second.Segments-2 {
		t.Fatalf("the rest: %+v, %v", done, err)
	}
	from.same(to)
	want, got := from.cursor(), to.cursor()
	position := chainlog.Position{Seq: got.GetWindowSeq() - 1, Offset: got.GetWindowOffset()}
	reads := 0
	from.must(chainlog.ReadAfter(t.Context(), chainID, position, func(e chainlog.Entry) error {
		if reads++; e.Offset != got.GetWindowOffset() {
			return fmt.Errorf("record %d is at offset %d, the cursor has offset %d", e.GetSeq(), e.Offset, got.GetWindowOffset())
		}
		return nil
	}, to.kafka.Options()...))
	want.InstanceId, got.InstanceId, want.WindowOffset, got.WindowOffset = nil, nil, 0, 0
	if !proto.Equal(want, got) || reads != 1 {
		t.Errorf("the cursor is %v, want %v; its window has %d records", got, want, reads)
	}
	if again, err := to.restore(dir, nil); err != nil || again.Done != 0 {
		t.Errorf("restored again: %+v, %v", again, err)
	}
}

// files returns the contents of a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.Base(name)] = string(b)
	}
	return found
}

// A backup that is interrupted at any segment can be continued: no record is duplicated or missing. The snapshot of an
// earlier backup can still be restored.
func TestInterruptedBackup(t *testing.T) {
	from, to, dir := newBroker(t), newBroker(t), t.TempDir()
	from.append(3)
	first := from.mustWrite(dir)
	from.append(8)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := (&backup{kafka: from.kafka, chainID: chainID, dir: dir, size: 600, progress: func(_ string, done, _ uint64) {
		if done == from.seq-4 {
			cancel()
		}
	}}).run(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted with %v", err)
	}
	if got, err := Verify(t.Context(), dir, nil); err != nil || got.Seal != first.Seal || got.Unfinished == 0 {
		t.Fatalf("after the interruption: %+v, %v", got, err)
	}
	from.append(2)
	if got := from.mustWrite(dir); got.Unfinished != 0 || got.Log != from.seq || got.Deposits != 13 ||
		got.Withdrawals != 13 {
		t.Errorf("continued: %+v", got)
	}
	_, err = to.restore(dir, nil)
	from.must(err)
	from.same(to)
}

// A restore that is killed in its first transaction leaves records that were never committed. The next one aborts them,
// and begins as in empty topics.
func TestRestoreKilledInItsFirstTransaction(t *testing.T) {
	from, to, dir := newBroker(t), newBroker(t), t.TempDir()
	from.append(6)
	from.mustWrite(dir)
	client, err := kgo.NewClient(append(to.kafka.WriterOptions(chainID),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	from.must(err)
	from.must(chainlog.EnsureTopics(t.Context(), kadm.NewClient(client), chainID, to.kafka.Topology()))
	from.must(client.BeginTransaction())
	for _, topic := range topics {
		from.must(client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("not committed")}).FirstErr())
	}
	client.Close()
	_, err = to.restore(dir, nil)
	from.must(err)
	from.same(to)
}

// A backup that has lost a file cannot be restored, so no later backup continues it and reports success.
func TestDamagedBackupIsNotContinued(t *testing.T) {
	from, dir := newBroker(t), t.TempDir()
	from.append(12)
	from.mustWrite(dir)
	first := filepath.Join(dir, "000001.zst")
	sound, err := os.ReadFile(first)
	from.must(err)
	for what, damage := range map[string]func() error{
		"truncated": func() error { return os.Truncate(first, int64(len(sound)-3)) },
		"missing":   func() error { return os.Remove(first) },
	} {
		from.must(damage())
		before := files(t, dir)
		from.append(1)
		_, err := from.write(dir)
		if _, is := errors.AsType[*DamagedError](err); !is || !maps.Equal(before, files(t, dir)) {
			t.Errorf("%s file: %v", what, err)
		}
		from.must(os.WriteFile(first, sound, 0o600))
		from.mustWrite(dir)
	}
}

// The referrals that a transaction after the cursor committed are left to the next backup.
func TestBackupEndsAtItsCursor(t *testing.T) {
	from, to, dir := newBroker(t), newBroker(t), t.TempDir()
	from.append(4)
	earlier := from.cursor()
	from.append(4)
	b := &backup{kafka: from.kafka, chainID: chainID, dir: dir, size: segmentBytes}
	client, err := kgo.NewClient(from.kafka.Options()...)
	from.must(err)
	defer client.Close()
	ends, err := b.prepare(t.Context(), kadm.NewClient(client))
	from.must(err)
	b.cursor = earlier // as if ingest had continued after the cursor was read
	from.must(b.log(t.Context()))
	from.must(b.referrals(t.Context(), ends))
	from.must(b.snapshot())
	if r := b.manifest.report(); r.Deposits != 4 || r.Withdrawals != 4 || r.Log != earlier.GetSeq() {
		t.Errorf("%+v", r)
	}
	if r := from.mustWrite(dir); r.Deposits != 8 || r.Withdrawals != 8 {
		t.Errorf("%+v", r)
	}
	_, err = to.restore(dir, nil)
	from.must(err)
	from.same(to)
}

// Verify detects each kind of change to a backup, without Kafka.
func TestVerifyFindsDamage(t *testing.T) {
	from, dir := newBroker(t), t.TempDir()
	from.append(12)
	from.mustWrite(dir)
	sound := files(t, dir)
	manifest := func(dir string, change func(*Manifest)) {
		m, err := readManifest(dir)
		from.must(err)
		change(m)
		from.must(m.save(dir))
	}
	for name, damage := range map[string]func(dir string){
		"a changed byte": func(dir string) {
			b := []byte(sound["000002.zst"])
			b[len(b)/2] ^= 1
			from.must(os.WriteFile(filepath.Join(dir, "000002.zst"), b, 0o600))
		},
		"a missing file": func(dir string) { from.must(os.Remove(filepath.Join(dir, "000002.zst"))) },
		"truncated file": func(dir string) {
			from.must(os.Truncate(filepath.Join(dir, "000001.zst"), int64(len(sound["000001.zst"])-3)))
		},
		"swapped files": func(dir string) {
			from.must(os.WriteFile(filepath.Join(dir, "000001.zst"), []byte(sound["000002.zst"]), 0o600))
			from.must(os.WriteFile(filepath.Join(dir, "000002.zst"), []byte(sound["000001.zst"]), 0o600))
		},
		"swapped segments": func(dir string) {
			manifest(dir, func(m *Manifest) { m.Segments[0], m.Segments[1] = m.Segments[1], m.Segments[0] })
		},
		"last segment missing": func(dir string) {
			manifest(dir, func(m *Manifest) { m.Segments, m.Snapshot.Segments = m.Segments[:2], 2 })
		},
		"segment missing in the middle": func(dir string) {
			manifest(dir, func(m *Manifest) {
				m.Segments, m.Snapshot.Segments = append(m.Segments[:1], m.Segments[2:]...), m.Snapshot.Segments-1
			})
		},
		"another snapshot": func(dir string) { manifest(dir, func(m *Manifest) { m.Snapshot.Segments-- }) },
		"another cursor": func(dir string) {
			manifest(dir, func(m *Manifest) {
				c, err := m.cursor()
				from.must(err)
				c.ReferralBlock--
				m.Snapshot.Cursor = from.marshal(c)
			})
		},
		"another log":   func(dir string) { manifest(dir, func(m *Manifest) { m.LogID = strings.Repeat("0", 32) }) },
		"another count": func(dir string) { manifest(dir, func(m *Manifest) { m.Segments[0].Log++ }) },
		"a path":        func(dir string) { manifest(dir, func(m *Manifest) { m.Segments[0].File = "../000001.zst" }) },
		"another position in a referral topic": func(dir string) { // the next backup would leave out a referral
			name := filepath.Join(dir, manifestName)
			b, err := os.ReadFile(name)
			from.must(err)
			m, err := readManifest(dir)
			from.must(err)
			next := m.Source.Topics[topics[1]].Next[0]
			changed := bytes.Replace(b, fmt.Appendf(nil, `"0": %d`, next), fmt.Appendf(nil, `"0": %d`, next+1), 1)
			from.must(os.WriteFile(name, changed, 0o600))
			if bytes.Equal(changed, b) {
				t.Errorf("the manifest has no %d", next)
			}
		},
		"invalid manifest": func(dir string) {
			from.must(os.WriteFile(filepath.Join(dir, manifestName), []byte("{"),
				0o600))
		},
	} {
		copied := t.TempDir()
		for name, content := range sound {
			from.must(os.WriteFile(filepath.Join(copied, name), []byte(content), 0o600))
		}
		damage(copied)
		_, err := Verify(t.Context(), copied, nil)
		var found *DamagedError
		if !errors.As(err, &found) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Verify(t.Context(), dir, nil); err != nil {
		t.Errorf("undamaged backup: %v", err)
	}
	m, err := readManifest(dir)
	from.must(err)
	earlier := strings.Replace(sound[manifestName], m.Sum, "", 1)
	from.must(os.WriteFile(filepath.Join(dir, manifestName), []byte(earlier), 0o600))
	if _, err := Verify(t.Context(), dir, nil); err != nil || earlier == sound[manifestName] {
		t.Errorf("manifest of an earlier version, without a sum: %v", err)
	}
	if _, err := Verify(t.Context(), t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "is no backup") {
		t.Errorf("an empty folder: %v", err)
	}
}

// If Restore refuses, it does not write to the topics and does not fence the writer.
func TestRestoreRefuses(t *testing.T) {
	from, dir := newBroker(t), t.TempDir()
	from.append(4)
	from.mustWrite(dir)
	refused := func(what string, to *broker, dir, words string) {
		t.Helper()
		before := fmt.Sprint(to.records())
		_, err := to.restore(dir, nil)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", what, err)
		}
		if after := fmt.Sprint(to.records()); after != before {
			t.Errorf("%s: the topics were changed", what)
		}
	}
	from.append(1)
	refused("the log continued", from, dir, "into empty topics only")
	other := newBroker(t)
	other.logID = bytes.Repeat([]byte{0xef}, 16)
	other.append(1)
	refused("another log", other, dir, "holds log efef")

	to := newBroker(t)
	narrow := to.kafka.Topology()
	narrow.ReferralPartitions = 1
	from.must(chainlog.EnsureTopics(t.Context(), kadm.NewClient(to.client), chainID, narrow))
	refused("fewer partitions", to, dir, "has 1 partition, and had 3")

	used := newBroker(t)
	from.must(chainlog.EnsureTopics(t.Context(), kadm.NewClient(used.client), chainID, used.kafka.Topology()))
	from.must(used.client.BeginTransaction())
	from.must(used.client.ProduceSync(t.Context(), &kgo.Record{Topic: topics[1], Value: []byte("any")}).FirstErr())
	from.must(chainlog.EndTransaction(t.Context(), used.client, kgo.TryCommit, topics[1]))
	refused("a used referral topic", used, dir, "holds records")

	if _, err := (&restore{kafka: to.kafka, dir: dir}).run(t.Context(), 1); err == nil ||
		!strings.Contains(err.Error(), "is of chain 77") {
		t.Errorf("another chain: %v", err)
	}
	half := newBroker(t)
	stop := errors.New("stop")
	if _, err := half.restore(dir, func(int) error { return stop }); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	from.mustWrite(dir)
	refused("another state", half, dir, "of another state")
}

// A backup can be continued only from the Kafka that it was made from.
func TestBackupOfAnotherKafka(t *testing.T) {
	from, dir := newBroker(t), t.TempDir()
	from.append(4)
	from.mustWrite(dir)
	made, older, replaced := newBroker(t), newBroker(t), newBroker(t)
	_, err := made.restore(dir, nil)
	from.must(err)
	older.append(2)
	replaced.append(6)
	for words, b := range map[string]*broker{"is not the topic": made, "begin another one": older,
		"another folder": replaced} {
		before := files(t, dir)
		if _, err := b.write(dir); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("want %q: %v", words, err)
		}
		if fmt.Sprint(files(t, dir)) != fmt.Sprint(before) {
			t.Errorf("%q: the backup was changed", words)
		}
	}
	other := newBroker(t)
	other.logID = bytes.Repeat([]byte{0xef}, 16)
	other.append(1)
	if _, err := other.write(dir); err == nil || !strings.Contains(err.Error(), "into another folder") {
		t.Errorf("another log: %v", err)
	}
}

// Two commands cannot work on one folder at the same time.
func TestFolderIsLocked(t *testing.T) {
	dir := t.TempDir()
	_, unlock, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), dir, nil); err == nil || !strings.Contains(err.Error(), "another command") {
		t.Errorf("while it is locked: %v", err)
	}
	unlock()
	if _, err := Verify(t.Context(), dir, nil); err == nil || strings.Contains(err.Error(), "another command") {
		t.Errorf("after it was unlocked: %v", err)
	}
}

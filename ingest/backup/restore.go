package backup

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/printable"
)

const bufferedBytes = 32 << 20

// restoringReason returns the reason for which the cursor is frozen during a restore, so that an ingest that starts
// meanwhile appends nothing and keeps the progress, which the reason holds.
func restoringReason(done, of int, seal string) string {
	return fmt.Sprintf("a backup is being restored: %d of %d segments, seal %s; run `navlog restore` again with the "+
		"same backup", done, of, seal)
}

var restoringPattern = regexp.MustCompile("^a backup is being restored: ([0-9]+) of [0-9]+ segments, seal " +
	"([0-9a-f]{64}); run `navlog restore` again")

// Restoring reports whether a freeze with this reason means that the log is being restored.
func Restoring(frozen string) bool { return restoringPattern.MatchString(frozen) }

type restore struct {
	kafka    chainlog.Config
	dir      string
	manifest *Manifest
	final    *event.Cursor // the cursor of the backup
	client   *kgo.Client
	instance []byte
	last     int64 // offset of the newest record of the log; 0 if unknown
	window   int64 // offset of the record from which a restarted ingest reads; 0 if unknown
	progress Progress
	// wrote, if set, is called after each transaction. Tests interrupt the restore there.
	wrote func(segments int) error
}

// Restore writes the snapshot of a backup to the topics of its chain, after it has verified the whole backup. It
// creates topics that are missing, and refuses topics that hold anything else. Each segment is one transaction, with a
// cursor that holds the progress, so that an interrupted restore continues where it ended. The last cursor is that of
// the backup. Restore fences other writers as ingest does, which stay frozen until it ends.
func Restore(
	ctx context.Context, chainID uint64, kafka chainlog.Config, dir string, progress Progress,
) (*Report, error) {
	r := &restore{kafka: kafka, dir: dir, progress: progress}
	return r.run(ctx, chainID)
}

func (r *restore) run(ctx context.Context, chainID uint64) (_ *Report, err error) {
	var unlock func()
	if r.manifest, unlock, err = open(r.dir); err != nil {
		return nil, err
	}
	defer unlock()
	if err := r.manifest.verify(ctx, r.dir, r.progress); err != nil {
		return nil, err
	}
	if r.manifest.ChainID != chainID {
		return nil, fmt.Errorf("the backup is of chain %d, and chain.id is %d", r.manifest.ChainID, chainID)
	}
	if r.final, err = r.manifest.cursor(); err != nil {
		return nil, err
	}
	if r.client, err = kgo.NewClient(append(r.kafka.WriterOptions(chainID),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedBytes(bufferedBytes))...); err != nil {
		return nil, fmt.Errorf("create the transactional Kafka client: %w", err)
	}
	defer r.client.Close()
	topology := r.kafka.Topology()
	topology.ReferralPartitions = r.manifest.ReferralPartitions
	adm := kadm.NewClient(r.client)
	if err := chainlog.EnsureTopics(ctx, adm, chainID, topology); err != nil {
		return nil, err
	}
	// Check before fencing, so that the writer of another log can continue. Read only the cursor: the other topics may
	// not show a transaction yet that has just ended.
	cursor, err := chainlog.ReadCursor(ctx, chainID, r.kafka.Options()...)
	if err != nil {
		return nil, err
	}
	if cursor != nil {
		if _, err := r.place(cursor); err != nil {
			return nil, err
		}
	}
	if err := chainlog.Fence(ctx, r.client); err != nil {
		return nil, err
	}
	done, err := r.begun(ctx, adm)
	if err != nil {
		return nil, err
	}
	report := r.manifest.report()
	for n := done; n < r.manifest.Snapshot.Segments; n++ {
		r.progress.Report("restore: segments", uint64(n), uint64(r.manifest.Snapshot.Segments))
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := r.segment(ctx, n); err != nil {
			return nil, fmt.Errorf("restore %s: %w; run `navlog restore` again, which continues", r.manifest.Segments[n].File,
				chainlog.Explain(err))
		}
		report.Done++
		if r.wrote != nil {
			if err := r.wrote(n + 1); err != nil {
				return nil, err
			}
		}
	}
	return report, nil
}

// begun returns how many segments the topics hold, and refuses topics that hold anything else.
func (r *restore) begun(ctx context.Context, adm *kadm.Client) (segments int, err error) {
	cursor, err := chainlog.ReadCursor(ctx, r.manifest.ChainID, r.kafka.Options()...)
	if err != nil {
		return 0, err
	}
	if cursor == nil {
		r.instance = make([]byte, 16)
		rand.Read(r.instance)
		return 0, r.empty(ctx, adm)
	}
	// Keep the instance id: an ingest that waits with it learns that it may continue.
	r.instance = cursor.GetInstanceId()
	if segments, err = r.place(cursor); err != nil {
		return 0, err
	}
	return segments, r.tail(ctx, cursor, r.manifest.lastSeq(segments))
}

// place returns after how many segments of this backup a cursor was written, and refuses any other cursor.
func (r *restore) place(cursor *event.Cursor) (segments int, err error) {
	m, log := r.manifest, chainlog.LogTopic(r.manifest.ChainID)
	form := restoringPattern.FindStringSubmatch(cursor.GetFrozen())
	switch {
	case hex.EncodeToString(cursor.GetLogId()) != m.LogID:
		return 0, fmt.Errorf("%s holds log %x, and the backup is of log %s: a backup is restored into empty topics only",
			log, cursor.GetLogId(), m.LogID)
	case form == nil && r.ended(cursor):
		return m.Snapshot.Segments, nil
	case form == nil:
		return 0, fmt.Errorf("%s is at seq %d, and the backup at seq %d: a backup is restored into empty topics only",
			log, cursor.GetSeq(), m.Snapshot.Seq)
	case form[2] != m.Snapshot.Seal:
		return 0, fmt.Errorf("%s holds a part of another backup or of another state of this one, with the seal %s: "+
			"continue with that one, or delete the topics",
			log, form[2])
	}
	if segments, err = strconv.Atoi(form[1]); err != nil || segments < 1 || segments >= m.Snapshot.Segments {
		return 0, fmt.Errorf("the cursor of chain %d names %s segments of %d", m.ChainID, form[1], m.Snapshot.Segments)
	}
	return segments, nil
}

// ended reports whether a cursor is the last one of this restore.
func (r *restore) ended(cursor *event.Cursor) bool {
	a, b := proto.CloneOf(cursor), proto.CloneOf(r.final)
	a.InstanceId, b.InstanceId, a.WindowOffset, b.WindowOffset = nil, nil, 0, 0
	return proto.Equal(a, b)
}

func (r *restore) tail(ctx context.Context, cursor *event.Cursor, want uint64) error {
	from := chainlog.Position{Seq: max(cursor.GetWindowSeq(), 1) - 1, Offset: cursor.GetWindowOffset()}
	last := from.Seq
	err := chainlog.ReadRawAfter(ctx, r.manifest.ChainID, from, func(raw chainlog.Raw) error {
		last, r.last = raw.Seq, raw.Offset
		return nil
	}, r.kafka.Options()...)
	if err == nil && (last != want || cursor.GetSeq() != want) {
		err = fmt.Errorf("%s ends with seq %d, its cursor says %d, and the segments that were restored end with seq %d: "+
			"delete the topics, and restore again",
			chainlog.LogTopic(r.manifest.ChainID), last, cursor.GetSeq(), want)
	}
	return err
}

func (r *restore) empty(ctx context.Context, adm *kadm.Client) error {
	origin, err := chainlog.ReadOrigin(ctx, r.manifest.ChainID, r.kafka.Options()...)
	if err != nil {
		return err
	}
	if origin != nil {
		return fmt.Errorf("%s holds log %x: a backup is restored into empty topics only",
			chainlog.LogTopic(r.manifest.ChainID), origin.GetLogId())
	}
	names := []string{chainlog.ReferralDeposits(r.manifest.ChainID), chainlog.ReferralWithdrawals(r.manifest.ChainID)}
	details, err := chainlog.Checked(chainlog.ListTopics(ctx, adm, names...))
	if err != nil {
		return fmt.Errorf("list the referral topics: %w", err)
	}
	ends, err := chainlog.Checked(adm.ListEndOffsets(ctx, names...))
	if err != nil {
		return fmt.Errorf("read the ends of the referral topics: %w", err)
	}
	for _, d := range details {
		if n := int32(len(d.Partitions)); n != r.manifest.ReferralPartitions {
			return fmt.Errorf("%s has %s, and had %d when it was backed up: delete it, `navlog restore` makes it",
				d.Topic, printable.Count(n, "partition"), r.manifest.ReferralPartitions)
		}
	}
	// A restore that was killed in its first transaction has left records that were aborted.
	start := map[string]map[int32]kgo.Offset{}
	ends.Each(func(end kadm.ListedOffset) {
		if start[end.Topic] == nil {
			start[end.Topic] = map[int32]kgo.Offset{}
		}
		start[end.Topic][end.Partition] = kgo.NewOffset().At(0)
	})
	return chainlog.ReadUpTo(ctx, start, ends, func(record *kgo.Record) (stop bool, err error) {
		if !record.Attrs.IsControl() {
			err = fmt.Errorf("partition %d of %s holds records: a backup is restored into empty topics only", record.Partition,
				record.Topic)
		}
		return false, err
	}, r.kafka.Options()...)
}

// segment writes one segment and the cursor after it, in one transaction, also if ctx ends.
func (r *restore) segment(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), chainlog.CommitTimeout)
	defer cancel()
	if err := r.client.BeginTransaction(); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	promise := kgo.AbortingFirstErrPromise(r.client)
	seq := r.manifest.lastSeq(n)
	var newest, window *kgo.Record
	topics := map[string]bool{}
	err := readSegment(r.dir, r.manifest.ChainID, r.manifest.Segments[n], func(topic uint64, record *kgo.Record) error {
		if topic == topicLog {
			if seq++; seq == r.final.GetWindowSeq() {
				window = record
			}
			newest = record
		}
		topics[record.Topic] = true
		r.client.Produce(ctx, record, promise.Promise())
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	if err := r.client.Flush(ctx); err != nil {
		return fmt.Errorf("append the records: %w", err)
	}
	if err := promise.Err(); err != nil {
		return fmt.Errorf("append the records: %w", err)
	}
	if newest != nil {
		r.last = newest.Offset
	}
	if window != nil {
		r.window = window.Offset
	}
	cursor, err := chainlog.EncodeCursor(r.cursor(n + 1))
	if err != nil {
		return err
	}
	if err := r.client.ProduceSync(ctx, cursor).FirstErr(); err != nil {
		return fmt.Errorf("append the cursor: %w", err)
	}
	topics[cursor.Topic] = true
	if err := chainlog.EndTransaction(ctx, r.client, kgo.TryCommit, slices.Collect(maps.Keys(topics))...); err != nil {
		return fmt.Errorf("commit a transaction: %w", err)
	}
	return nil
}

// cursor returns the cursor after a number of segments. If the window's offset is unknown, ingest reads the log from
// its start, once.
func (r *restore) cursor(segments int) *event.Cursor {
	if segments == r.manifest.Snapshot.Segments {
		c := proto.CloneOf(r.final)
		c.InstanceId, c.WindowOffset = bytes.Clone(r.instance), r.window
		return c
	}
	seq := r.manifest.lastSeq(segments)
	return &event.Cursor{
		LogId: r.final.GetLogId(), GenesisHash: r.final.GetGenesisHash(), ChainId: r.final.GetChainId(),
		InstanceId: bytes.Clone(r.instance),
		Seq:        seq, WindowSeq: seq, WindowOffset: r.last,
		Frozen: restoringReason(segments, r.manifest.Snapshot.Segments, r.manifest.Snapshot.Seal),
	}
}

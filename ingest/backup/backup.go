package backup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

type backup struct {
	kafka    chainlog.Config
	chainID  uint64
	dir      string
	manifest *Manifest
	cursor   *event.Cursor // the records up to it are copied
	segment  *writer       // nil between two segments
	progress Progress
	done     int
	size     int64 // after which a segment ends
}

// Write copies the log of a chain into dir, up to its newest cursor. If dir holds a complete or interrupted backup,
// Write continues after its last segment. ingest may write to the log at the same time.
func Write(ctx context.Context, chainID uint64, kafka chainlog.Config, dir string, progress Progress) (*Report, error) {
	b := &backup{kafka: kafka, chainID: chainID, dir: dir, progress: progress, size: segmentBytes}
	return b.run(ctx)
}

func (b *backup) run(ctx context.Context) (_ *Report, err error) {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the backup: %w", err)
	}
	var unlock func()
	if b.manifest, unlock, err = open(b.dir); err != nil {
		return nil, err
	}
	defer unlock()
	if b.manifest != nil {
		if err := b.manifest.complete(b.dir); err != nil {
			return nil, err
		}
	}
	client, err := kgo.NewClient(b.kafka.Options()...)
	if err != nil {
		return nil, fmt.Errorf("create a Kafka client: %w", err)
	}
	defer client.Close()
	ends, err := b.prepare(ctx, kadm.NewClient(client))
	if err != nil {
		return nil, err
	}
	defer func() {
		if b.segment != nil {
			b.segment.drop()
		}
	}()
	if err := b.log(ctx); err != nil {
		return nil, err
	}
	if err := b.referrals(ctx, ends); err != nil {
		return nil, err
	}
	if err := b.snapshot(); err != nil {
		return nil, err
	}
	r := b.manifest.report()
	r.Done = b.done
	return r, nil
}

// prepare reads the cursor before the end offsets of the referral topics, so that every referral that was committed
// with the cursor lies before them.
func (b *backup) prepare(ctx context.Context, adm *kadm.Client) (ends kadm.ListedOffsets, err error) {
	if b.cursor, err = chainlog.ReadCursor(ctx, b.chainID, b.kafka.Options()...); err != nil {
		return nil, err
	}
	switch {
	case b.cursor.GetSeq() == 0:
		return nil, fmt.Errorf("the log of chain %d has no record yet: there is nothing to back up", b.chainID)
	case Restoring(b.cursor.GetFrozen()):
		return nil, fmt.Errorf("%s is being restored: run `navlog restore` to its end first", chainlog.LogTopic(b.chainID))
	}
	if err := chainlog.Settle(ctx, b.chainID, b.kafka.Options()...); err != nil {
		return nil, err
	}
	if err := b.source(ctx, adm); err != nil {
		return nil, err
	}
	ends, err = chainlog.Checked(adm.ListCommittedOffsets(ctx, chainlog.ReferralDeposits(b.chainID),
		chainlog.ReferralWithdrawals(b.chainID)))
	if err != nil {
		return nil, fmt.Errorf("read the ends of the referral topics: %w", err)
	}
	for name, source := range b.manifest.Source.Topics {
		for partition, next := range source.Next {
			if end, ok := ends.Lookup(name, partition); !ok || end.Offset < next {
				return nil, fmt.Errorf("partition %d of %s ends at offset %d, and the backup has it up to %d: %s",
					partition, name, end.Offset, next, newFolderAdvice)
			}
		}
	}
	return ends, nil
}

// newFolderAdvice is the advice to the operator if a backup cannot continue.
const newFolderAdvice = "Kafka was restored or replaced since; keep this backup, and begin another one in another " +
	"folder"

// source compares the topics with those of the backup, or creates the manifest of a new backup.
func (b *backup) source(ctx context.Context, adm *kadm.Client) error {
	deposits, withdrawals := chainlog.ReferralDeposits(b.chainID), chainlog.ReferralWithdrawals(b.chainID)
	details, err := chainlog.Checked(chainlog.ListTopics(ctx, adm, deposits, withdrawals))
	if err != nil {
		return fmt.Errorf("list the referral topics: %w", err)
	}
	topics, partitions := map[string]SourceTopic{}, 0
	for name, d := range details {
		topic := SourceTopic{ID: d.ID.String(), Next: map[int32]int64{}}
		for p := range d.Partitions {
			topic.Next[p] = 0
		}
		topics[name], partitions = topic, max(partitions, len(d.Partitions))
	}
	logID := hex.EncodeToString(b.cursor.GetLogId())
	if b.manifest == nil {
		b.manifest = &Manifest{Format: format, ChainID: b.chainID, LogID: logID, ReferralPartitions: int32(partitions),
			Segments: []Segment{}, Source: Source{Topics: topics}}
		return nil
	}
	m := b.manifest
	if m.ChainID != b.chainID || m.LogID != logID {
		return fmt.Errorf("the backup is of log %s of chain %d, and Kafka has log %s of chain %d: back it up into another "+
			"folder",
			m.LogID, m.ChainID, logID, b.chainID)
	}
	for name, topic := range topics {
		if had := m.Source.Topics[name]; had.ID != topic.ID || len(had.Next) != len(topic.Next) {
			return fmt.Errorf("%s is not the topic that was backed up: %s", name, newFolderAdvice)
		}
	}
	if last := m.lastSeq(len(m.Segments)); b.cursor.GetSeq() < last {
		return fmt.Errorf("%s ends with seq %d, and the backup has it up to %d: %s", chainlog.LogTopic(b.chainID),
			b.cursor.GetSeq(), last, newFolderAdvice)
	}
	return nil
}

var errCursorReached = errors.New("the log was read up to the cursor")

// log copies the records of the log up to the cursor. It compares the backup's last record with the log: if an older
// copy replaced the log and new records were written since, it differs.
func (b *backup) log(ctx context.Context) error {
	last := b.manifest.lastSeq(len(b.manifest.Segments))
	from := chainlog.Position{Seq: max(last, 1) - 1, Offset: b.manifest.Source.LogOffset}
	err := chainlog.ReadRawAfter(ctx, b.chainID, from, func(r chainlog.Raw) (err error) {
		if r.Seq <= last {
			if r.Seq == last && digest(string(r.Value)) != b.manifest.Source.LastRecord {
				return fmt.Errorf("record %d of %s differs from the backup: %s", r.Seq, chainlog.LogTopic(b.chainID),
					newFolderAdvice)
			}
			if r.Seq == b.cursor.GetSeq() {
				return errCursorReached
			}
			return nil
		}
		if err := b.write(topicLog, r.Kafka); err != nil {
			return err
		}
		b.segment.LastSeq = r.Seq
		b.progress.Report("backup: records of the log", r.Seq, b.cursor.GetSeq())
		reached := r.Seq == b.cursor.GetSeq()
		if reached && !r.Boundary {
			return fmt.Errorf("record %d of %s, to which the cursor points, does not end a unit", r.Seq,
				chainlog.LogTopic(b.chainID))
		}
		if reached || r.Boundary && b.segment.size >= b.size {
			b.manifest.Source.LogOffset, b.manifest.Source.LastRecord = r.Offset, digest(string(r.Value))
			err = b.end()
		}
		if err == nil && reached {
			err = errCursorReached
		}
		return err
	}, b.kafka.Options()...)
	if err == nil {
		err = fmt.Errorf("%s ends before seq %d, which the cursor names: restore both from one backup",
			chainlog.LogTopic(b.chainID), b.cursor.GetSeq())
	}
	if errors.Is(err, errCursorReached) {
		return nil
	}
	return err
}

func (b *backup) write(topic uint64, r *kgo.Record) (err error) {
	if b.segment == nil {
		n := len(b.manifest.Segments)
		if b.segment, err = newWriter(b.dir, n+1, b.manifest.lastSeq(n)); err != nil {
			return err
		}
	}
	return b.segment.write(topic, r)
}

func (b *backup) end() error {
	w := b.segment
	b.segment = nil
	s, err := w.end()
	if err != nil {
		return err
	}
	s.Chain = b.manifest.chained(len(b.manifest.Segments), s)
	b.manifest.Segments = append(b.manifest.Segments, s)
	b.done++
	return b.manifest.save(b.dir)
}

// referrals copies the referral topics up to ends, in each partition up to the first referral of a record that the
// cursor does not include.
func (b *backup) referrals(ctx context.Context, ends kadm.ListedOffsets) error {
	from := map[string]map[int32]kgo.Offset{}
	var records, read uint64
	topics := topicsOf(b.chainID)
	for name, source := range b.manifest.Source.Topics {
		from[name] = map[int32]kgo.Offset{}
		for partition, next := range source.Next {
			from[name][partition] = kgo.NewOffset().At(next)
			end, _ := ends.Lookup(name, partition)
			records += uint64(end.Offset - next)
		}
	}
	err := chainlog.ReadUpTo(ctx, from, ends, func(r *kgo.Record) (stop bool, err error) {
		if !r.Attrs.IsControl() {
			if seq, ours := referralSeq(r, b.manifest.LogID); ours && seq > b.cursor.GetSeq() {
				return true, nil
			}
			if b.segment != nil && b.segment.size >= b.size {
				if err := b.end(); err != nil {
					return false, err
				}
			}
			if err := b.write(uint64(slices.Index(topics, r.Topic)), r); err != nil {
				return false, err
			}
		}
		b.manifest.Source.Topics[r.Topic].Next[r.Partition] = r.Offset + 1
		read++
		b.progress.Report("backup: offsets of the referral topics", min(read, records), records)
		return false, nil
	}, b.kafka.Options()...)
	if err != nil || b.segment == nil {
		return err
	}
	return b.end()
}

func (b *backup) snapshot() error {
	m := b.manifest
	cursor, err := proto.MarshalOptions{Deterministic: true}.Marshal(b.cursor)
	if err != nil {
		return fmt.Errorf("write the cursor into the backup: %w", err)
	}
	if s := m.Snapshot; s != nil && s.Segments == len(m.Segments) && slices.Equal(s.Cursor, cursor) {
		return nil
	}
	m.Snapshot = &Snapshot{Segments: len(m.Segments), Seq: b.cursor.GetSeq(), Block: b.cursor.GetHead().GetNumber(),
		At: time.Now().UTC(), Cursor: cursor, Seal: m.seal(len(m.Segments), cursor)}
	return m.save(b.dir)
}

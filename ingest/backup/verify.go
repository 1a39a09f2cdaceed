package backup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// Progress is called often with the current step of a command and how much of it is done; of is 0 if the total is
// unknown. It may be nil.
type Progress func(what string, done, of uint64)

// Report calls p, unless it is nil.
func (p Progress) Report(what string, done, of uint64) {
	if p != nil {
		p(what, done, of)
	}
}

// Report describes the contents of a backup, or what was restored.
type Report struct {
	ChainID     uint64 `json:"chainId"`
	LogID       string `json:"logId"`
	Seq         uint64 `json:"seq"`
	Block       uint64 `json:"block"`
	Segments    int    `json:"segments"`
	Bytes       int64  `json:"bytes"` // size of the files
	Log         uint64 `json:"log"`   // records of the log topic
	Deposits    uint64 `json:"deposits"`
	Withdrawals uint64 `json:"withdrawals"`
	Seal        string `json:"seal"`
	// Done is how many segments this command wrote.
	Done int `json:"done"`
	// Unfinished is the number of further segments, which belong to a backup that is not complete.
	Unfinished int `json:"unfinished"`
}

func (m *Manifest) report() *Report {
	s := m.Snapshot
	r := &Report{ChainID: m.ChainID, LogID: m.LogID, Seq: s.Seq, Block: s.Block, Segments: s.Segments, Seal: s.Seal,
		Unfinished: len(m.Segments) - s.Segments}
	for _, segment := range m.Segments[:s.Segments] {
		r.Bytes += segment.Bytes
		r.Log += segment.Log
		r.Deposits += segment.Deposits
		r.Withdrawals += segment.Withdrawals
	}
	return r
}

// Verify checks, without Kafka, that a backup is intact: the files are those that were written, and the records are
// whole units of one log, without a gap, with their cursor. Its error is a *DamagedError if they are not.
func Verify(ctx context.Context, dir string, progress Progress) (*Report, error) {
	m, unlock, err := open(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := m.verify(ctx, dir, progress); err != nil {
		return nil, err
	}
	return m.report(), nil
}

func (m *Manifest) verify(ctx context.Context, dir string, progress Progress) error {
	if m == nil {
		return fmt.Errorf("%w in %s: it has no %s", ErrNone, dir, manifestName)
	}
	if m.Snapshot == nil {
		return fmt.Errorf("the backup %s has not ended: run `navlog backup` again, which continues it", dir)
	}
	if m.Snapshot.Segments < 1 || m.Snapshot.Segments > len(m.Segments) {
		return damaged("its snapshot has %d segments, and it has %d", m.Snapshot.Segments, len(m.Segments))
	}
	cursor, err := m.cursor()
	if err != nil {
		return err
	}
	c := check{manifest: m}
	for n, s := range m.Segments {
		progress.Report("verify: segments", uint64(n), uint64(len(m.Segments)))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := c.segment(dir, n, s); err != nil {
			return err
		}
	}
	switch {
	case m.seal(m.Snapshot.Segments, m.Snapshot.Cursor) != m.Snapshot.Seal:
		return damaged("the seal of its snapshot does not match")
	case hex.EncodeToString(cursor.GetLogId()) != m.LogID || cursor.GetChainId() != m.ChainID:
		return damaged("its cursor is of log %x of chain %d", cursor.GetLogId(), cursor.GetChainId())
	case cursor.GetSeq() != m.Snapshot.Seq || m.lastSeq(m.Snapshot.Segments) != m.Snapshot.Seq:
		return damaged("its log ends with seq %d, its cursor says %d, its snapshot %d",
			m.lastSeq(m.Snapshot.Segments), cursor.GetSeq(), m.Snapshot.Seq)
	}
	return nil
}

type check struct {
	manifest *Manifest
	seq      uint64
	boundary bool
}

func (c *check) segment(dir string, n int, s Segment) error {
	if filepath.Base(s.File) != s.File {
		return damaged("segment %d has the name %q", n+1, s.File)
	}
	sum, size, err := sumOf(filepath.Join(dir, s.File))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return damaged("%s is missing", s.File)
	case err != nil:
		return fmt.Errorf("read the backup: %w", err)
	case sum != s.SHA256 || size != s.Bytes:
		return damaged("%s was changed: it has %d bytes and SHA-256 %s, and the manifest has %d and %s", s.File, size, sum,
			s.Bytes, s.SHA256)
	case c.manifest.chained(n, s) != s.Chain:
		return damaged("%s is not the segment that follows the one before", s.File)
	}
	counted := Segment{LastSeq: c.seq}
	err = readSegment(dir, c.manifest.ChainID, s, func(topic uint64, r *kgo.Record) error {
		counted.count(topic)
		if topic == topicLog {
			return c.record(s, r, &counted)
		}
		return c.referral(s, r)
	})
	if err != nil {
		return err
	}
	if counted.LastSeq != s.LastSeq || counted.Log != s.Log || counted.Deposits != s.Deposits ||
		counted.Withdrawals != s.Withdrawals {
		return damaged("%s has %d, %d and %d records up to seq %d, and the manifest has %d, %d and %d up to seq %d", s.File,
			counted.Log, counted.Deposits, counted.Withdrawals, counted.LastSeq, s.Log, s.Deposits, s.Withdrawals, s.LastSeq)
	}
	if !c.boundary {
		return damaged("%s does not end with a whole unit", s.File)
	}
	return nil
}

func (c *check) record(s Segment, r *kgo.Record, counted *Segment) error {
	raw, err := chainlog.Peek(c.manifest.ChainID, r)
	if err != nil {
		return damaged("%s: %v", s.File, err)
	}
	if raw.Seq != c.seq+1 {
		return damaged("%s has seq %d where seq %d belongs", s.File, raw.Seq, c.seq+1)
	}
	if raw.Seq == 1 {
		first, err := chainlog.Decode(c.manifest.ChainID, r)
		if err != nil || hex.EncodeToString(first.GetOrigin().GetLogId()) != c.manifest.LogID {
			return damaged("%s begins log %x (%v), and the manifest says %s", s.File, first.GetOrigin().GetLogId(), err,
				c.manifest.LogID)
		}
	}
	c.seq, c.boundary, counted.LastSeq = raw.Seq, raw.Boundary, raw.Seq
	return nil
}

// referral checks a referral, if it belongs to this log: the topics also keep referrals of an earlier log, and records
// that cannot be decoded.
func (c *check) referral(s Segment, r *kgo.Record) error {
	if r.Partition >= c.manifest.ReferralPartitions {
		return damaged("%s has a referral in partition %d of %d", s.File, r.Partition, c.manifest.ReferralPartitions)
	}
	if seq, ours := referralSeq(r, c.manifest.LogID); ours && seq > c.seq {
		return damaged("%s has a referral of seq %d, and the log ends with seq %d there", s.File, seq, c.seq)
	}
	return nil
}

// referralSeq returns the seq of the log record that a referral repeats, if it belongs to this log.
func referralSeq(r *kgo.Record, logID string) (seq uint64, ours bool) {
	referral := new(event.Referral)
	if proto.Unmarshal(r.Value, referral) != nil || hex.EncodeToString(referral.GetLogId()) != logID {
		return 0, false
	}
	return referral.GetSeq(), true
}

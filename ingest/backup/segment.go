package backup

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/schemas/chainlog"
)

// segmentBytes is the size of records after which a segment ends, at the next boundary of a unit. A segment is restored
// in one transaction, within chainlog.CommitTimeout.
const segmentBytes = 16 << 20

// maxField bounds a key or a value. Kafka accepts no larger batch (chainlog.MaxBatchBytes).
const maxField = 4 << 20

const magic = "navlog segment 1\n"

// The topics of a segment.
const (
	topicLog = 1 + iota
	topicDeposits
	topicWithdrawals
)

// topicsOf returns the names of the topics of a segment, by their numbers.
func topicsOf(chainID uint64) []string {
	return []string{topicLog: chainlog.LogTopic(chainID), topicDeposits: chainlog.ReferralDeposits(chainID),
		topicWithdrawals: chainlog.ReferralWithdrawals(chainID)}
}

type writer struct {
	Segment
	dir    string
	file   *os.File
	sum    hash.Hash
	zip    *zstd.Encoder
	size   int64 // size of its records
	buffer []byte
}

func (s *Segment) count(topic uint64) {
	switch topic {
	case topicLog:
		s.Log++
	case topicDeposits:
		s.Deposits++
	default:
		s.Withdrawals++
	}
}

// newWriter begins segment number, counted from 1, after the segments up to lastSeq.
func newWriter(dir string, number int, lastSeq uint64) (*writer, error) {
	w := &writer{Segment: Segment{File: fmt.Sprintf("%06d.zst", number), LastSeq: lastSeq}, dir: dir, sum: sha256.New()}
	var err error
	if w.file, err = os.OpenFile(w.path()+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return nil, fmt.Errorf("write a segment of the backup: %w", err)
	}
	w.zip, err = zstd.NewWriter(io.MultiWriter(w.file, w.sum), zstd.WithEncoderConcurrency(1))
	if err == nil {
		_, err = io.WriteString(w.zip, magic)
	}
	if err != nil {
		w.file.Close()
		return nil, fmt.Errorf("write a segment of the backup: %w", err)
	}
	return w, nil
}

func (w *writer) path() string { return filepath.Join(w.dir, w.File) }

func (w *writer) write(topic uint64, r *kgo.Record) error {
	b := binary.AppendUvarint(w.buffer[:0], topic)
	b = binary.AppendUvarint(b, uint64(r.Partition))
	b = binary.AppendUvarint(b, uint64(r.Offset))
	b = binary.AppendVarint(b, r.Timestamp.UnixMilli())
	b = appendBytes(appendBytes(b, r.Key), r.Value)
	b = binary.AppendUvarint(b, uint64(len(r.Headers)))
	for _, h := range r.Headers {
		b = appendBytes(appendBytes(b, []byte(h.Key)), h.Value)
	}
	w.buffer = b
	w.count(topic)
	w.size += int64(len(b))
	if _, err := w.zip.Write(b); err != nil {
		return fmt.Errorf("write segment %s of the backup: %w", w.File, err)
	}
	return nil
}

func appendBytes(b, field []byte) []byte {
	if field == nil {
		return append(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(field))+1), field...)
}

// end makes the segment durable under its final name.
func (w *writer) end() (Segment, error) {
	err := w.zip.Close()
	info, failed := w.file.Stat()
	if err = errors.Join(err, failed, w.file.Sync(), w.file.Close()); err == nil {
		err = os.Rename(w.path()+".new", w.path())
	}
	if err == nil {
		err = syncDir(w.dir)
	}
	if err != nil {
		return Segment{}, fmt.Errorf("write segment %s of the backup: %w", w.File, err)
	}
	w.Bytes, w.SHA256 = info.Size(), hex.EncodeToString(w.sum.Sum(nil))
	return w.Segment, nil
}

func (w *writer) drop() {
	w.zip.Close()
	w.file.Close()
	os.Remove(w.path() + ".new")
}

// readSegment calls visit with every record of a segment, in order. It does not check the hash of the file.
func readSegment(dir string, chainID uint64, s Segment, visit func(topic uint64, r *kgo.Record) error) error {
	file, err := os.Open(filepath.Join(dir, s.File))
	if err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	defer file.Close()
	zip, err := zstd.NewReader(bufio.NewReader(file), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return fmt.Errorf("read segment %s of the backup: %w", s.File, err)
	}
	defer zip.Close()
	topics := topicsOf(chainID)
	in := &fields{Reader: bufio.NewReaderSize(zip, 64<<10)}
	begin := make([]byte, len(magic))
	if _, err := io.ReadFull(in, begin); err != nil || string(begin) != magic {
		return damaged("%s is not a segment (%v)", s.File, err)
	}
	for n := 1; ; n++ {
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			return nil
		}
		topic := in.number()
		r := &kgo.Record{Partition: int32(in.number()), Offset: int64(in.number()), Timestamp: in.time()}
		r.Key, r.Value = in.bytes(), in.bytes()
		for left := in.number(); left > 0 && in.err == nil; left-- {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: string(in.bytes()), Value: in.bytes()})
		}
		if in.err == nil && (topic < topicLog || topic > topicWithdrawals) {
			in.err = fmt.Errorf("there is no topic %d", topic)
		}
		if in.err != nil {
			return damaged("record %d of %s cannot be read: %v", n, s.File, in.err)
		}
		r.Topic = topics[topic]
		if err := visit(topic, r); err != nil {
			return err
		}
	}
}

// fields reads the fields of records and remembers the first error.
type fields struct {
	*bufio.Reader
	err error
}

func (f *fields) number() (n uint64) {
	if f.err == nil {
		n, f.err = binary.ReadUvarint(f)
	}
	return n
}

func (f *fields) time() time.Time {
	var n int64
	if f.err == nil {
		n, f.err = binary.ReadVarint(f)
	}
	return time.UnixMilli(n)
}

func (f *fields) bytes() []byte {
	n := f.number()
	if f.err == nil && n > maxField {
		f.err = fmt.Errorf("a field has %d bytes", n-1)
	}
	if f.err != nil || n == 0 {
		return nil
	}
	b := make([]byte, n-1)
	_, f.err = io.ReadFull(f, b)
	return b
}

func sumOf(path string) (sum string, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	h := sha256.New()
	if size, err = io.Copy(h, file); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
)

const (
	format       = 1
	manifestName = "manifest.json"
)

// Manifest describes the contents of a backup.
type Manifest struct {
	Format             int       `json:"format"`
	ChainID            uint64    `json:"chainId"`
	LogID              string    `json:"logId"` // hex
	ReferralPartitions int32     `json:"referralPartitions"`
	Segments           []Segment `json:"segments"`
	// Snapshot is what can be restored; nil until the first backup is complete.
	Snapshot *Snapshot `json:"snapshot"`
	Source   Source    `json:"source"`
	// Sum is the SHA-256 of the file with noSum in its place; empty in a manifest of an earlier version.
	Sum string `json:"sum"`
}

var noSum = strings.Repeat("0", 2*sha256.Size)

// Segment is one file of records.
type Segment struct {
	File        string `json:"file"`
	Bytes       int64  `json:"bytes"`
	SHA256      string `json:"sha256"`
	Chain       string `json:"chain"` // the chained hash up to this segment
	LastSeq     uint64 `json:"lastSeq"`
	Log         uint64 `json:"log"` // records of the log topic
	Deposits    uint64 `json:"deposits"`
	Withdrawals uint64 `json:"withdrawals"`
}

// Snapshot is a state of the log that a backup can restore.
type Snapshot struct {
	Segments int       `json:"segments"` // number of segments that it includes
	Seq      uint64    `json:"seq"`
	Block    uint64    `json:"block"` // the newest indexed block
	At       time.Time `json:"at"`
	Cursor   []byte    `json:"cursor"` // protobuf navlog.event.Cursor, base64
	Seal     string    `json:"seal"`
}

// Source is the position from which the next backup continues.
type Source struct {
	// LogOffset is the offset of the last record of the log, and LastRecord the SHA-256 of its value.
	LogOffset  int64  `json:"logOffset"`
	LastRecord string `json:"lastRecord"`
	// Topics are the referral topics by name.
	Topics map[string]SourceTopic `json:"topics"`
}

// SourceTopic is a referral topic in Kafka. A topic that was deleted and created again has another id.
type SourceTopic struct {
	ID   string          `json:"id"`
	Next map[int32]int64 `json:"next"` // by partition, the offset after the last copied record
}

// DamagedError means that a backup does not hold what was written.
type DamagedError struct{ Reason string }

func (e *DamagedError) Error() string {
	return "the backup is damaged: " + e.Reason + "; use another copy of it, or begin a new one in an empty folder"
}

func damaged(form string, a ...any) error { return &DamagedError{fmt.Sprintf(form, a...)} }

func (m *Manifest) lastSeq(n int) uint64 {
	if n == 0 {
		return 0
	}
	return m.Segments[n-1].LastSeq
}

// chain returns the chained hash up to the first n segments.
func (m *Manifest) chain(n int) string {
	if n == 0 {
		return digest(fmt.Sprintf("navlog backup %d %d %s %d", m.Format, m.ChainID, m.LogID, m.ReferralPartitions))
	}
	return m.Segments[n-1].Chain
}

func (m *Manifest) chained(n int, s Segment) string { return digest(m.chain(n) + s.SHA256 + s.File) }

func (m *Manifest) seal(n int, cursor []byte) string { return digest(m.chain(n) + string(cursor)) }

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (m *Manifest) cursor() (*event.Cursor, error) {
	cursor := new(event.Cursor)
	if err := proto.Unmarshal(m.Snapshot.Cursor, cursor); err != nil {
		return nil, damaged("its cursor cannot be read: %v", err)
	}
	return cursor, nil
}

// ErrNone means that a folder holds no backup, or does not exist.
var ErrNone = errors.New("there is no backup")

// open locks a backup and reads its manifest. The manifest is nil if there is none. On a read-only file system nothing
// is written, so nothing is locked.
func open(dir string) (m *Manifest, unlock func(), err error) {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil, fmt.Errorf("%w in %s", ErrNone, dir)
	case errors.Is(err, syscall.EROFS):
	case err != nil:
		return nil, nil, fmt.Errorf("lock the backup: %w", err)
	default:
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			lock.Close()
			return nil, nil, fmt.Errorf("another command works on the backup %s: %w", dir, err)
		}
	}
	if m, err = readManifest(dir); errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil {
		lock.Close()
		return nil, nil, err
	}
	return m, func() { lock.Close() }, nil
}

// readManifest returns os.ErrNotExist if there is no manifest.
func readManifest(dir string) (*Manifest, error) {
	b, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return nil, fmt.Errorf("read the manifest of the backup: %w", err)
	}
	m := new(Manifest)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, damaged("%s cannot be read: %v", manifestName, err)
	}
	if m.Sum != "" && digest(strings.Replace(string(b), m.Sum, noSum, 1)) != m.Sum {
		return nil, damaged("%s was changed: its SHA-256 is not the one that it names", manifestName)
	}
	if m.Format != format {
		return nil, fmt.Errorf("the backup %s has format %d, and this navlog reads format %d", dir, m.Format, format)
	}
	return m, nil
}

// complete returns a *DamagedError if the file of a segment is missing or has another size.
func (m *Manifest) complete(dir string) error {
	for _, s := range m.Segments {
		info, err := os.Stat(filepath.Join(dir, s.File))
		if err == nil && info.Size() != s.Bytes {
			err = fmt.Errorf("it has %d bytes instead of %d", info.Size(), s.Bytes)
		}
		if err != nil {
			return damaged("%s of an earlier backup: %v; begin another backup in another folder", s.File, err)
		}
	}
	return nil
}

// save replaces the manifest atomically: after a crash the folder holds either the old or the new one.
func (m *Manifest) save(dir string) error {
	m.Sum = noSum
	b, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return fmt.Errorf("write the manifest of the backup: %w", err)
	}
	m.Sum = digest(string(b))
	b = bytes.Replace(b, []byte(noSum), []byte(m.Sum), 1)
	name := filepath.Join(dir, manifestName)
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the manifest of the backup: %w", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(name+".new", name)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("write the manifest of the backup: %w", err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

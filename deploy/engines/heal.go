package engines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A transaction's records are in the log from the moment they are sent; a marker behind them, in each of its partitions,
// says how it ended. kfake writes no markers for the transactions that were open when it died: it merely treats them as
// aborted until it is started again. Three things go wrong then. What the same producer commits next stays invisible, for it
// looks like more of the aborted transaction. After one more crash the aborted records appear, for the producer's
// next marker says "committed". And a death between the markers of one commit leaves a transaction that half the
// partitions hold.
//
// heal writes the missing markers. It reads each partition from where the log was last known to be sound and keeps the
// transactions whose data has no marker behind it. It leaves out those that the broker knows to be open (after an orderly
// stop it remembers them, and ends them itself), commits those that another partition has as committed, and aborts the
// rest. A transaction is known by its producer's id and epoch: the epoch is raised at each end (KIP-890), as long as
// broker and client speak EndTxn version 5 or later, which kfake and franz-go do.
//
// A commit that was completed is true on disk but not yet in the broker's memory, where the transaction is still taken
// for aborted: heal then says so, and the broker must read its log anew.
func heal(ctx context.Context, dir, addr string, dial func(context.Context, string, string) (net.Conn, error)) (again bool, err error) {
	b, err := newBroker(addr, kgo.Dialer(dial))
	if err != nil {
		return false, err
	}
	defer b.client.Close()
	open, err := b.openTransactions(ctx)
	if err != nil {
		return false, err
	}
	partitions, err := b.partitions(ctx)
	if err != nil {
		return false, err
	}
	sound, err := readSound(dir)
	if err != nil {
		return false, err
	}
	found := findings{sound: soundLog{}, committed: map[txID]bool{}}
	for _, p := range partitions {
		if err := found.read(ctx, b, p, sound[p.key()], open); err != nil {
			return false, fmt.Errorf("read %s-%d: %w", p.topic, p.partition, err)
		}
	}
	for _, loose := range found.loose {
		commit := found.committed[loose.tx]
		if err := b.mark(ctx, loose.partition, loose.tx, commit); err != nil {
			return false, fmt.Errorf("end the transaction of producer %d in %s-%d: %w", loose.tx.producer, loose.topic, loose.partition.partition, err)
		}
		again = again || commit
	}
	return again, found.sound.write(dir)
}

// A txID tells one transaction from all others.
type txID struct {
	producer int64
	epoch    int16
}

// A looseTx is a transaction without its marker in one partition.
type looseTx struct {
	partition
	tx txID
}

// findings are what reading the log has shown.
type findings struct {
	sound     soundLog
	loose     []looseTx
	committed map[txID]bool // somewhere
}

// read reads a partition from an offset on. open are the producers whose transaction the broker knows to be open.
func (f *findings) read(ctx context.Context, b *broker, p partition, from int64, open map[int64]bool) error {
	type begun struct {
		tx    txID
		first int64 // offset
	}
	left := make(map[int64]begun) // by producer, which has one transaction at a time
	end, err := b.batches(ctx, p, from, func(batch kmsg.RecordBatch) error {
		const transactional, control = 1 << 4, 1 << 5 // bits of a batch's attributes
		tx := txID{batch.ProducerID, batch.ProducerEpoch}
		switch {
		case batch.Attributes&control != 0:
			commit, err := isCommit(batch)
			if err != nil {
				return fmt.Errorf("the marker at offset %d: %w", batch.FirstOffset, err)
			}
			if commit {
				f.committed[tx] = true
			}
			delete(left, tx.producer)
		case batch.Attributes&transactional != 0:
			if _, more := left[tx.producer]; !more {
				left[tx.producer] = begun{tx, batch.FirstOffset}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for producer, tx := range left {
		if open[producer] {
			end = min(end, tx.first)
		} else {
			f.loose = append(f.loose, looseTx{p, tx.tx})
		}
	}
	f.sound[p.key()] = end
	return nil
}

// isCommit reads a marker.
func isCommit(batch kmsg.RecordBatch) (bool, error) {
	var (
		record kmsg.Record
		key    kmsg.ControlRecordKey
	)
	if err := record.ReadFrom(batch.Records); err != nil {
		return false, err
	}
	err := key.ReadFrom(record.Key)
	return key.Type == kmsg.ControlRecordKeyTypeCommit, err
}

// noteHealed notes, before an orderly stop, that the log is sound up to its end, so that the next start need not read it.
// The ends are read first: a transaction that has data before them and is not open afterwards has ended.
func noteHealed(dir, addr string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	b, err := newBroker(addr)
	if err != nil {
		return err
	}
	defer b.client.Close()
	partitions, err := b.partitions(ctx)
	if err != nil {
		return err
	}
	next := soundLog{}
	for _, p := range partitions {
		if next[p.key()], err = b.end(ctx, p); err != nil {
			return fmt.Errorf("read the end of %s-%d: %w", p.topic, p.partition, err)
		}
	}
	open, err := b.openTransactions(ctx)
	if err != nil || len(open) > 0 {
		return err
	}
	return next.write(dir)
}

// A soundLog says, per partition, up to which offset every transaction is known to have its marker.
type soundLog map[string]int64

func soundFile(dir string) string { return filepath.Join(dir, "sound.json") }

func readSound(dir string) (soundLog, error) {
	text, err := os.ReadFile(soundFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var s soundLog
	if err == nil && json.Unmarshal(text, &s) != nil {
		return nil, nil // torn by a crash: read the log from its start
	}
	return s, err
}

func (s soundLog) write(dir string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	half := soundFile(dir) + ".new"
	if err := os.WriteFile(half, text, 0o644); err != nil {
		return err
	}
	return os.Rename(half, soundFile(dir))
}

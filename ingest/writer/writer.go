package writer

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// ErrFenced means that another ingest has taken over the chain.
var ErrFenced = errors.New("another ingest writes this chain's log now")

// StartTimeout bounds the first contact with Kafka, and each read of a few records.
const StartTimeout = 30 * time.Second

// Log is a chain's log and cursor in Kafka.
type Log struct {
	ChainID uint64
	Kafka   chainlog.Config
}

// Cursor reads the newest cursor; nil for a new log.
func (l Log) Cursor(ctx context.Context) (*event.Cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	return chainlog.ReadCursor(ctx, l.ChainID, l.Kafka.Options()...)
}

// Mapped reads the newest record of each vault, which determines how the vault's logs are read and mapped, regardless
// of the configuration. The vaults of a cursor of an earlier version have the mapping of the reference contracts.
func (l Log) Mapped(
	ctx context.Context, cursor *event.Cursor,
) (*mapping.Vaults, map[common.Address]*event.Vault, error) {
	mapped, err := mapping.NewVaults()
	if err != nil {
		return nil, nil, err
	}
	all, err := chainlog.ReadVaults(ctx, l.ChainID, cursor, l.Kafka.Options()...)
	if err != nil {
		return nil, nil, err
	}
	records := map[common.Address]*event.Vault{}
	for _, r := range all {
		if err := mapped.Set(r); err != nil {
			return nil, nil, rpc.Refuse("%v: start a navlog that knows this mapping", err)
		}
		records[common.BytesToAddress(r.GetAddress())] = r
	}
	return mapped, records, nil
}

// Check returns a RefusedError if cursor, log and chain contradict each other, or if the cursor cannot exist.
func (l Log) Check(ctx context.Context, cursor *event.Cursor, genesis common.Hash) error {
	return l.recheckRefusal(ctx, cursor, l.check(ctx, cursor, genesis))
}

func (l Log) check(ctx context.Context, cursor *event.Cursor, genesis common.Hash) error {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	origin, err := chainlog.ReadOrigin(ctx, l.ChainID, l.Kafka.Options()...)
	if err != nil {
		return err
	}
	log, topic := chainlog.LogTopic(l.ChainID), chainlog.CursorTopic(l.ChainID)
	const advice = "restore both topics from the same backup, or delete both to index the chain into a new log"
	switch {
	case cursor == nil && origin == nil:
		return nil
	case cursor == nil:
		return rpc.Refuse("%s holds log %x but %s is empty: %s", log, origin.GetLogId(), topic, advice)
	case origin == nil:
		return rpc.Refuse("%s is at seq %d of log %x but %s is empty: %s", topic, cursor.GetSeq(), cursor.GetLogId(), log,
			advice)
	case !bytes.Equal(cursor.GetLogId(), origin.GetLogId()):
		return rpc.Refuse("%s belongs to log %x but %s holds log %x: %s", topic, cursor.GetLogId(), log, origin.GetLogId(),
			advice)
	case !bytes.Equal(origin.GetGenesisHash(), genesis[:]):
		return rpc.Refuse("the log %s was made from a chain with genesis 0x%x, but the node serves one with genesis 0x%x, "+
			"although both are chain %d: correct chain.rpc, or, if a development chain was restarted, delete %s and %s to "+
			"index it into a new log",
			log, origin.GetGenesisHash(), genesis, l.ChainID, log, topic)
	}
	if err := checkCursor(cursor); err != nil {
		return rpc.Refuse("the newest cursor of %s cannot be right: %v; restore the topic and the log from the same backup",
			topic, err)
	}
	return nil
}

// recheckRefusal drops a refusal because of cursor and log if another ingest wrote between the reads of the two.
func (l Log) recheckRefusal(ctx context.Context, cursor *event.Cursor, err error) error {
	if !rpc.Refused(err) {
		return err
	}
	now, failed := l.Cursor(ctx)
	if failed != nil {
		return failed
	}
	if proto.Equal(now, cursor) {
		return err
	}
	return fmt.Errorf("another ingest wrote to %s while it was read", chainlog.LogTopic(l.ChainID))
}

// IsPermanent reports whether no retry helps against an error.
func IsPermanent(err error) bool {
	_, corrupt := errors.AsType[*chainlog.CorruptError](err)
	_, hole := errors.AsType[*chainlog.HoleError](err)
	return corrupt || hole || rpc.Refused(err)
}

// Options are the settings of a writer.
type Options struct {
	Log
	Instance      []byte // id of the writer, in every cursor that it commits
	Window        uint64 // the number of unfinalised blocks that are kept
	Confirmations uint64 // that a referral needs, 0 for a final block
	// Unproven is true if no block counts as proven when it is appended: because blooms prove nothing, or because a
	// schedule proves all blocks by their receipts.
	Unproven bool
	// Proven returns the last block up to which the schedule has proven a vault's logs since they were appended; nil
	// without a schedule.
	Proven func(vault common.Address) uint64
	// Committed is called after each transaction, and when the log was read; nil for nothing.
	Committed func(*State)
	// EarlierAtOnce is the number of records that one call of SendEarlier reads; 0 for the default.
	EarlierAtOnce int
	// Hook, if set, is called at every step.
	Hook func(Step) error
}

// Writer is one transactional client and the state of its log, up to the first transaction that fails.
type Writer struct {
	Options
	State   *State // nil before Restore
	client  *kgo.Client
	status  *status.Tracker
	log     *slog.Logger
	earlier *earlier // search for referrals; nil while none runs
	// noState is the last block at which a sample of a vault was due and whose state no endpoint has.
	noState map[common.Address]uint64
}

// New returns a writer that can read the log. It needs Fence before it can write.
func New(o Options, status *status.Tracker, log *slog.Logger) *Writer {
	return &Writer{Options: o, status: status, log: log, noState: map[common.Address]uint64{}}
}

// Fence makes the transactional client, and ends every older client of the chain and its transaction.
func (w *Writer) Fence(ctx context.Context) (err error) {
	w.client, err = kgo.NewClient(append(w.Kafka.WriterOptions(w.ChainID), kgo.RecordPartitioner(w.partitioner()))...)
	if err != nil {
		return fmt.Errorf("create the transactional Kafka client: %w", err)
	}
	if err := w.reached(BeforeFence); err != nil {
		return err
	}
	return chainlog.Fence(ctx, w.client)
}

// partitioner puts the records of the log and the cursor into partition 0, even if an operator added partitions, and
// each referral into the partition of its key.
func (w *Writer) partitioner() kgo.Partitioner {
	byKey := kgo.StickyKeyPartitioner(nil)
	return kgo.BasicConsistentPartitioner(func(topic string) func(*kgo.Record, int) int {
		switch topic {
		case chainlog.LogTopic(w.ChainID), chainlog.CursorTopic(w.ChainID):
			return func(*kgo.Record, int) int { return 0 }
		}
		return byKey.ForTopic(topic).Partition
	})
}

// Client returns the transactional client; nil before Fence.
func (w *Writer) Client() *kgo.Client { return w.client }

// Close ends the client.
func (w *Writer) Close() {
	w.endEarlier()
	if w.client != nil {
		w.client.Close()
	}
}

// CheckWriter returns ErrFenced unless a cursor is by this writer or by the last one.
func (w *Writer) CheckWriter(cursor *event.Cursor, last []byte) error {
	if by := cursor.GetInstanceId(); !bytes.Equal(by, last) && !bytes.Equal(by, w.Instance) {
		return fmt.Errorf("%w (the newest cursor of %s is by instance %x, this one is %x)", ErrFenced,
			chainlog.CursorTopic(w.ChainID), by, w.Instance)
	}
	return nil
}

// Restore builds the state from the cursor and the log's tail; for a new log the cursor is nil. genesis is that of the
// chain.
func (w *Writer) Restore(ctx context.Context, genesis common.Hash) (*event.Cursor, error) {
	cursor, err := w.Cursor(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.restoreFrom(ctx, cursor, genesis); err != nil {
		return nil, w.recheckRefusal(ctx, cursor, err)
	}
	w.report()
	return cursor, nil
}

func (w *Writer) restoreFrom(ctx context.Context, cursor *event.Cursor, genesis common.Hash) (err error) {
	if err := w.check(ctx, cursor, genesis); err != nil {
		return err
	}
	if cursor == nil {
		w.State = &State{logID: make([]byte, 16), genesis: genesis}
		rand.Read(w.State.logID)
	} else {
		w.State = stateOf(cursor)
	}
	bounded, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	if w.State.Mapped, w.State.Records, err = w.Mapped(bounded, cursor); err != nil || cursor == nil {
		return err
	}
	return w.readTail(ctx, cursor)
}

// readTail folds the end of the log into the window and checks that the log ends where the cursor says.
func (w *Writer) readTail(ctx context.Context, cursor *event.Cursor) error {
	from := chainlog.Position{Seq: max(cursor.GetWindowSeq(), 1) - 1, Offset: cursor.GetWindowOffset()}
	last := from.Seq
	err := chainlog.ReadAfter(ctx, w.ChainID, from, func(e chainlog.Entry) error {
		if b := e.GetBlock(); b != nil && !isComplete(b) {
			return &chainlog.CorruptError{Topic: chainlog.LogTopic(w.ChainID), Offset: e.Offset,
				Err: fmt.Errorf("the hashes of block %d are not 32 bytes long", b.GetNumber())}
		}
		w.State.Window.Apply(e)
		last, w.State.offset = e.GetSeq(), e.Offset
		return nil
	}, w.Kafka.Options()...)
	if err != nil {
		return err
	}
	if last != w.State.Seq {
		return rpc.Refuse("%s ends with seq %d, but %s says %d: one of the topics was restored or written by another "+
			"program; restore both from the same backup",
			chainlog.LogTopic(w.ChainID), last, chainlog.CursorTopic(w.ChainID), w.State.Seq)
	}
	w.State.prune(w.Window)
	return nil
}

// Cover returns a vault's coverage when its logs are appended up to a block. unproven is the last block that was
// accepted unproven; 0 for none.
func (w *Writer) Cover(v Coverage, to, unproven uint64) Coverage {
	if w.Unproven {
		unproven = to
	}
	v.acceptUnproven(v.To, unproven)
	v.To = to
	return v
}

// Moves reports whether a commit of a final block moves it, or makes referrals due.
func (w *Writer) Moves(final uint64) bool {
	next := *w.State
	next.Final = max(next.Final, final)
	return next.Final > w.State.Final || next.publishTarget(w.Confirmations) > w.State.published
}

// Claim commits a cursor with the id of this writer, so that a predecessor that is still alive learns that it was
// replaced.
func (w *Writer) Claim(ctx context.Context) error {
	return w.Commit(ctx, &Change{claim: true, Frozen: w.State.Frozen})
}

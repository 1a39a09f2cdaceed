package ingest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// session is the life of one transactional client. It begins with the state at the broker and ends with the first
// transaction that fails.
type session struct {
	state  *state // position of the log; nil before restore
	ingest *Ingest
	nodes  *rpc.Pool
	client *kgo.Client

	inbox    *inbox        // nil without a registry
	proofs   *proofs       // on a schedule; nil for none
	ranges   *rpc.Pipeline // of final blocks, read ahead; nil while there are none
	appended *rpc.Header   // the last of them that was appended; nil before the first
	doubts   doubts
	lateness lateness
	finality finality
	earlier  *earlier                  // search of a command for referrals; nil while none runs
	noState  map[common.Address]uint64 // the last block at which a sample of a vault was due and whose state no endpoint has
	heard    map[view]hexutil.Bytes    // responses of vaults, in case the node fails between two calls
}

// session fences every other writer, restores the state and advances until ctx
// ends or a transaction fails. last is the instance of the newest cursor that a
// session of this Run has seen or written.
func (i *Ingest) session(ctx context.Context, last *[]byte, wait *rpc.Backoff) error {
	if *last != nil {
		if err := i.stillOurs(ctx, *last); err != nil {
			return err
		}
	}
	client, err := i.transactional()
	if err != nil {
		return err
	}
	defer client.Close()
	if err := i.reached(beforeFence); err != nil {
		return err
	}
	if err := fence(ctx, client); err != nil {
		return err
	}
	living, end := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() { i.live(living, client) })
	defer func() { end(); ended.Wait() }()
	s := i.newSession(client)
	defer func() { s.ranges.Close(); s.earlier.close() }()
	cursor, err := s.restore(ctx)
	if err != nil {
		return err
	}
	if *last != nil && cursor != nil {
		// An ingest that claimed the log after stillOurs is alive: once it finds itself fenced, its next session continues.
		if err := i.rightful(cursor, *last); err != nil {
			return err
		}
	}
	*last = cursor.GetInstanceId()
	if *last == nil {
		*last = i.instance
	}
	if cursor != nil && !bytes.Equal(*last, i.instance) {
		if err := s.commit(ctx, &change{claim: true, frozen: s.state.frozen}); err != nil {
			return err
		}
	}
	if i.commands != nil {
		s.inbox = newInbox(i.commands, i.log)
		looking, stop := context.WithCancel(ctx)
		var stopped sync.WaitGroup
		first := make(chan struct{})
		stopped.Go(func() { s.inbox.run(looking, first) })
		defer func() { stop(); stopped.Wait() }()
		<-first // a command may make space for a vault of chain.vaults
	}
	*last = i.instance // from now on, a cursor by the last writer means that it came back
	if s.proofs = i.newProofs(s.state); s.proofs != nil && s.state.frozen == "" {
		proving, stop := context.WithCancel(ctx)
		var stopped sync.WaitGroup
		stopped.Go(func() { s.proofs.schedule.Run(proving) })
		defer func() { stop(); stopped.Wait() }()
	}
	return s.follow(ctx, wait)
}

func (i *Ingest) newSession(client *kgo.Client) *session {
	return &session{ingest: i, nodes: i.nodes, client: client, lateness: lateness{wait: rpc.NewBackoff()}, heard: map[view]hexutil.Bytes{}, noState: map[common.Address]uint64{}}
}

// transactional returns the client of the chain's single writer.
func (i *Ingest) transactional() (*kgo.Client, error) {
	client, err := kgo.NewClient(append(i.kafka.Options(),
		kgo.TransactionalID(chainlog.TransactionalID(i.config.ID)),
		kgo.TransactionTimeout(transactionTimeout),
		// The fastest level packs these records as small as the default one, in half the time.
		kgo.ProducerBatchCompression(kgo.ZstdCompression().WithLevel(1), kgo.SnappyCompression(), kgo.NoCompression()),
	)...)
	if err != nil {
		return nil, fmt.Errorf("make the transactional Kafka client: %w", err)
	}
	return client, nil
}

// fence ends every older client with this transactional id, and its transaction.
func fence(ctx context.Context, client *kgo.Client) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	if _, _, err := client.ProducerID(ctx); err != nil {
		return fmt.Errorf("fence the previous writer: %w", chainlog.Explain(err))
	}
	return nil
}

// stillOurs reads the newest cursor without fencing any writer. It must be the one with which this Run began, or one of
// its own.
func (i *Ingest) stillOurs(ctx context.Context, last []byte) error {
	cursor, err := i.readCursor(ctx)
	if err != nil || cursor == nil {
		return err
	}
	return i.rightful(cursor, last)
}

// rightful returns an error unless a cursor is by this writer or by the last one.
func (i *Ingest) rightful(cursor *event.Cursor, last []byte) error {
	if by := cursor.GetInstanceId(); !bytes.Equal(by, last) && !bytes.Equal(by, i.instance) {
		return fmt.Errorf("%w (the newest cursor of %s is by instance %x, this one is %x)", ErrFenced, chainlog.CursorTopic(i.config.ID), by, i.instance)
	}
	return nil
}

func (i *Ingest) readCursor(ctx context.Context) (*event.Cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return chainlog.ReadCursor(ctx, i.config.ID, i.kafka.Options()...)
}

// restore builds the state from the cursor and the log's tail, or the state of a new log. The cursor is nil for a new
// log.
func (s *session) restore(ctx context.Context) (*event.Cursor, error) {
	if _, err := s.nodes.First(ctx); err != nil {
		return nil, err
	}
	cursor, err := s.ingest.readCursor(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.restoreFrom(ctx, cursor); err != nil {
		return nil, s.ingest.unlessMoved(ctx, cursor, err)
	}
	s.ingest.note(func(st *Status) { st.indexed(s.state) })
	s.ingest.noteProven(s.state.covered)
	s.ingest.metrics.position(s.state)
	return cursor, nil
}

func (s *session) restoreFrom(ctx context.Context, cursor *event.Cursor) error {
	genesis := s.nodes.Genesis()
	bounded, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	origin, err := chainlog.ReadOrigin(bounded, s.ingest.config.ID, s.ingest.kafka.Options()...)
	if err != nil {
		return err
	}
	if err := s.ingest.compatible(cursor, origin, genesis[:]); err != nil {
		return err
	}
	if cursor == nil {
		mapped, err := mapping.NewVaults()
		if err != nil {
			return err
		}
		s.state = &state{logID: make([]byte, 16), genesis: genesis, mapped: mapped, records: map[common.Address]*event.Vault{}}
		rand.Read(s.state.logID)
		s.watch()
		return nil
	}
	if s.state, err = stateOf(cursor); err != nil {
		return err
	}
	if s.state.mapped, s.state.records, err = s.ingest.readMapped(bounded, cursor); err != nil {
		return err
	}
	s.watch()
	return s.readTail(ctx, cursor)
}

// unlessMoved drops a refusal because of cursor and log if another ingest wrote to them between the reads of the two:
// that is no contradiction, and the next session will see which writer is current.
func (i *Ingest) unlessMoved(ctx context.Context, cursor *event.Cursor, err error) error {
	if !rpc.Refused(err) {
		return err
	}
	now, failed := i.readCursor(ctx)
	if failed != nil {
		return failed
	}
	if proto.Equal(now, cursor) {
		return err
	}
	return fmt.Errorf("another ingest wrote to %s while it was read", chainlog.LogTopic(i.config.ID))
}

// readTail folds the end of the log into the window and checks that the log ends where the cursor says.
func (s *session) readTail(ctx context.Context, cursor *event.Cursor) error {
	from := chainlog.Position{Seq: max(cursor.GetWindowSeq(), 1) - 1, Offset: cursor.GetWindowOffset()}
	last := from.Seq
	err := chainlog.ReadAfter(ctx, s.ingest.config.ID, from, func(e chainlog.Entry) error {
		if b := e.GetBlock(); b != nil && !whole(b) {
			return &chainlog.CorruptError{Topic: chainlog.LogTopic(s.ingest.config.ID), Offset: e.Offset, Err: fmt.Errorf("the hashes of block %d are not 32 bytes long", b.GetNumber())}
		}
		s.state.window.apply(e)
		last, s.state.offset = e.GetSeq(), e.Offset
		return nil
	}, s.ingest.kafka.Options()...)
	if err != nil {
		return err
	}
	if last != s.state.seq {
		return rpc.Refuse("%s ends with seq %d, but %s says %d: one of the topics was restored or written by another program; restore both from the same backup",
			chainlog.LogTopic(s.ingest.config.ID), last, chainlog.CursorTopic(s.ingest.config.ID), s.state.seq)
	}
	s.state.prune(s.ingest.config.Window)
	return nil
}

// compatible returns an error if cursor, log, chain and configuration contradict each other.
func (i *Ingest) compatible(cursor *event.Cursor, origin *event.Origin, genesis []byte) error {
	log, topic := chainlog.LogTopic(i.config.ID), chainlog.CursorTopic(i.config.ID)
	const anew = "restore both topics from the same backup, or delete both to index the chain into a new log"
	switch {
	case cursor == nil && origin == nil:
		return nil
	case cursor == nil:
		return rpc.Refuse("%s holds log %x but %s is empty: %s", log, origin.GetLogId(), topic, anew)
	case origin == nil:
		return rpc.Refuse("%s is at seq %d of log %x but %s is empty: %s", topic, cursor.GetSeq(), cursor.GetLogId(), log, anew)
	case !bytes.Equal(cursor.GetLogId(), origin.GetLogId()):
		return rpc.Refuse("%s belongs to log %x but %s holds log %x: %s", topic, cursor.GetLogId(), log, origin.GetLogId(), anew)
	case !bytes.Equal(origin.GetGenesisHash(), genesis):
		return rpc.Refuse("the log %s was made from a chain with genesis 0x%x, but the node serves one with genesis 0x%x, although both are chain %d: correct chain.rpc, or, if a development chain was restarted, delete %s and %s to index it into a new log",
			log, origin.GetGenesisHash(), genesis, i.config.ID, log, topic)
	}
	return i.startsKept(cursor)
}

func (i *Ingest) startsKept(cursor *event.Cursor) error {
	var faults []error
	for _, v := range i.vaults {
		for _, have := range cursor.GetVaults() {
			if bytes.Equal(have.GetAddress(), v.address[:]) && v.start < have.GetStartBlock() {
				faults = append(faults, fmt.Errorf("the start block of vault %s was lowered from %d to %d, but the log is append-only and holds the vault from block %d on: set it back, or delete %s and %s to index the chain into a new log and run `navlog projection rebuild`",
					v.address, have.GetStartBlock(), v.start, have.GetStartBlock(), chainlog.LogTopic(i.config.ID), chainlog.CursorTopic(i.config.ID)))
			}
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return rpc.Refuse("%s", errors.Join(faults...).Error())
}

// follow advances until ctx ends, a transaction fails or the log is frozen.
func (s *session) follow(ctx context.Context, wait *rpc.Backoff) error {
	for {
		if s.state.frozen != "" {
			return s.stayFrozen(ctx)
		}
		more, err := s.advance(ctx)
		var failed *commitError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &failed), hopeless(err):
			return err
		case err != nil:
			s.ingest.log.Warn("step failed, retrying", "error", err)
			s.ingest.note(func(st *Status) { st.Reason = err.Error() })
			s.nodes.Next()
			if wait.Sleep(ctx) != nil {
				return nil
			}
			continue
		}
		wait.Reset()
		if !more && s.nodes.Rest(ctx, s.ingest.config.PollInterval) != nil {
			return nil
		}
	}
}

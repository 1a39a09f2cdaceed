package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/navlog/navlog/ingest/backup"
	"github.com/navlog/navlog/ingest/operate"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// Resumption describes what it takes, or took, to continue with the chain that froze the log.
type Resumption struct {
	ChainID  uint64        `json:"chainId"`
	Frozen   string        `json:"frozen"`   // why the log is frozen
	Endpoint string        `json:"endpoint"` // the endpoint with this chain: scheme and host
	Head     operate.Place `json:"head"`     // newest block of the log
	// Ancestor is the newest block of the log that is also in the chain. It is block 0 if no recorded one is.
	Ancestor operate.Place `json:"ancestor"`
	// Records above the ancestor that are retracted, and how many of them are blocks and logs.
	Records int `json:"records"`
	Blocks  int `json:"blocks"`
	Logs    int `json:"logs"`
	// Referrals that may have been sent to partners and whose cause is gone.
	Referrals []LostReferral `json:"referrals"`
	// Accepted reports whether it was done.
	Accepted bool `json:"accepted"`
}

// The kinds of the decisions around the records that an operator retracts.
const (
	acceptReorgOpen  = "accept-reorg:open"
	acceptReorgClose = "accept-reorg:close"
)

// The approximate number of records in a transaction and in a unit of a resumption.
const (
	takenBackAtOnce = 100_000
	takenBackAsUnit = 10_000
)

// Resume shows what it takes to accept the chain that froze the log and, with accept, does it: between two decision
// records it retracts everything above the newest recorded block that is in the chain, and ends the freeze. A running
// ingest, or the next one, then continues from that block as usual.
//
// Resume fences like any writer, but uses the id of the writer that froze, which thereby learns that it may continue.
// Every transaction leaves a log that Resume can continue with; only the last one ends the freeze. It returns a
// *RefusedError if there is nothing to resume or the node cannot be trusted yet. progress is called for what is read
// and retracted; it may be nil.
func (i *Ingest) Resume(ctx context.Context, accept bool, progress operate.Progress) (*Resumption, error) {
	defer i.nodes.Close()
	s := i.newSession(nil)
	if cursor, err := i.readCursor(ctx); err != nil {
		return nil, err
	} else if err := frozenAt(cursor, i.config.ID); err != nil {
		return nil, err // before fencing, so that the writer continues
	}
	if accept {
		client, err := i.transactional()
		if err != nil {
			return nil, err
		}
		defer client.Close()
		if err := fence(ctx, client); err != nil {
			return nil, err
		}
		s.client = client
	}
	cursor, err := s.restore(ctx)
	if err != nil {
		return nil, err
	}
	if err := frozenAt(cursor, i.config.ID); err != nil {
		return nil, err
	}
	i.instance = cursor.GetInstanceId()
	n, err := i.nodes.First(ctx)
	if err != nil {
		return nil, err
	}
	plan, ancestor, err := s.plan(ctx, n, progress)
	if err != nil || !accept {
		return plan, err
	}
	i.log.Warn("the operator accepts the chain", "endpoint", n.Name, "ancestor", ancestor.Number, "records", plan.Records, "frozen", plan.Frozen)
	if err := s.accept(ctx, plan, ancestor, progress); err != nil {
		return nil, fmt.Errorf("retract the records above block %d: %w; the log is intact and still frozen: run the command again", ancestor.Number, err)
	}
	plan.Accepted = true
	return plan, nil
}

// frozenAt returns an error for the cursor of a log that is not frozen.
func frozenAt(cursor *event.Cursor, chainID uint64) error {
	if backup.Restoring(cursor.GetFrozen()) {
		return rpc.Refuse("there is nothing to resume: %s", cursor.GetFrozen())
	}
	if cursor.GetFrozen() == "" || cursor.GetHead() == nil {
		return rpc.Refuse("there is nothing to resume: %s is not frozen", chainlog.LogTopic(chainID))
	}
	return nil
}

// plan finds the ancestor, and restores the window to everything above it and what an ingest with its head at the
// ancestor would need.
func (s *session) plan(ctx context.Context, n *rpc.Node, progress operate.Progress) (*Resumption, *rpc.Header, error) {
	tip, err := n.Latest(ctx)
	if err != nil {
		return nil, nil, err
	}
	if tip.Number < s.state.head.Number {
		return nil, nil, rpc.Refuse("the head at %s is block %d, below the log's block %d: wait until the node is in sync, or correct chain.rpc", n.Name, tip.Number, s.state.head.Number)
	}
	if h, err := n.ByNumber(ctx, s.state.head.Number); err == nil && h.Hash != s.state.head.Hash {
		if keeper := s.nodes.Keeper(ctx, n, s.state.head); keeper != nil {
			return nil, nil, rpc.Refuse("%s has another block %d than the log, but %s has the log's: remove the wrong one from chain.rpc", n.Name, s.state.head.Number, keeper.Name)
		}
	}
	ancestor, err := s.ancestor(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	told, err := s.reopen(ctx, ancestor.Number, progress)
	if err != nil {
		return nil, nil, err
	}
	plan := &Resumption{
		ChainID: s.ingest.config.ID, Frozen: s.state.frozen, Endpoint: n.Name,
		Head:     operate.Place{Number: s.state.head.Number, Hash: s.state.head.Hash.Hex()},
		Ancestor: operate.Place{Number: ancestor.Number, Hash: ancestor.Hash.Hex()},
	}
	for _, lost := range s.state.window.above(ancestor.Number) {
		plan.Records++
		switch {
		case lost.GetBlock() != nil:
			plan.Blocks++
		case lost.GetLog() != nil:
			plan.Logs++
		}
	}
	plan.Referrals, err = gone(ctx, n, s.ingest.config.ID, s.state.mapped, s.vaults(), told)
	return plan, ancestor, err
}

// reopen reads the whole log to build the window for a head at the ancestor, plus everything above the ancestor. It
// returns the published referrals above the ancestor, including those that an earlier, unfinished resumption retracted.
func (s *session) reopen(ctx context.Context, ancestor uint64, progress operate.Progress) (told []*event.Record, err error) {
	s.state.window = window{}
	toldTo := min(s.state.told, ancestor)
	s.state.floor = max(min(s.state.final, toldTo), ancestor-min(ancestor, s.ingest.config.Window))
	var unfinished []*event.Record
	wasTold := func(r *event.Record) bool {
		return r.GetLog().GetBlockNumber() <= s.state.told && mayRefer(s.state.mapped, r.GetLog())
	}
	err = chainlog.ReadAfter(ctx, s.ingest.config.ID, chainlog.Position{}, func(e chainlog.Entry) error {
		progress.Tell(operate.ReadingLog, min(e.GetSeq(), s.state.seq), s.state.seq)
		switch kind := e.GetDecision().GetKind(); {
		case kind == acceptReorgClose:
			unfinished = nil
		case kind == acceptReorgOpen && unfinished == nil:
			unfinished = []*event.Record{}
		case unfinished != nil && e.GetRetracts() != 0 && wasTold(e.Record):
			unfinished = append(unfinished, e.Record)
		}
		if e.GetRetracts() != 0 || matters(s.state.mapped, e.Record, s.state.floor, toldTo) {
			s.state.window.apply(e)
		}
		return nil
	}, s.ingest.kafka.Options()...)
	for _, lost := range s.state.window.above(ancestor) {
		if wasTold(lost.Record) {
			told = append(told, lost.Record)
		}
	}
	return append(unfinished, told...), err
}

// accept retracts everything above the ancestor, in as many transactions as needed. The log stays frozen until the last
// one.
func (s *session) accept(ctx context.Context, plan *Resumption, ancestor *rpc.Header, progress operate.Progress) error {
	units := append(takenBack(s.state.window.above(ancestor.Number), s.ingest.takeBack.asUnit), []*event.Record{decision(acceptReorgClose, plan)})
	c := &change{units: [][]*event.Record{{decision(acceptReorgOpen, plan)}}, frozen: s.state.frozen}
	records, done := 0, 0
	for _, unit := range units {
		progress.Tell("records retracted", uint64(min(done, plan.Records)), uint64(plan.Records))
		done += len(unit)
		if records += len(unit); records > s.ingest.takeBack.atOnce {
			if err := s.commit(ctx, c); err != nil {
				return err
			}
			c, records = &change{frozen: s.state.frozen}, len(unit)
		}
		c.units = append(c.units, unit)
	}
	c.head, c.ancestor, c.reopens, c.frozen = ancestor, &ancestor.Number, true, ""
	for _, v := range s.state.covered {
		v.to = max(v.start-1, min(v.to, ancestor.Number))
		c.covered = append(c.covered, v)
	}
	return s.commit(ctx, c)
}

// takenBack returns the units that retract records, which are newest first, as are those of each unit. Each unit
// retracts everything above the block below its lowest one, so that a reader of the log, unit by unit, sees a chain
// that becomes shorter: the highest blocks go first, rather than the newest records, because the records of a late
// vault belong to low blocks. A unit ends above a recorded block, which is then the newest one.
func takenBack(lost []chainlog.Entry, asUnit int) (units [][]*event.Record) {
	number := func(e chainlog.Entry) uint64 { n, _ := blockOf(e.Record); return n }
	byBlock := slices.Clone(lost)
	slices.SortStableFunc(byBlock, func(a, b chainlog.Entry) int { return cmp.Compare(number(b), number(a)) })
	recorded := map[uint64]bool{}
	for _, e := range byBlock {
		if e.GetBlock() != nil {
			recorded[number(e)] = true
		}
	}
	for first, next := 0, 1; next <= len(byBlock); next++ {
		if next < len(byBlock) {
			below := number(byBlock[next]) < number(byBlock[next-1])
			if next-first < asUnit || !below || !recorded[number(byBlock[next])] {
				continue
			}
		}
		unit := byBlock[first:next]
		slices.SortFunc(unit, func(a, b chainlog.Entry) int { return cmp.Compare(b.GetSeq(), a.GetSeq()) })
		retractions := make([]*event.Record, len(unit))
		for i, e := range unit {
			retractions[i] = retraction(e)
		}
		units, first = append(units, retractions), next
	}
	return units
}

func decision(kind string, plan *Resumption) *event.Record {
	reason := fmt.Sprintf("the operator accepts the chain at %s: %d records above block %d (%s) are retracted; the log was frozen because %s",
		plan.Endpoint, plan.Records, plan.Ancestor.Number, plan.Ancestor.Hash, plan.Frozen)
	return &event.Record{Fact: &event.Record_Decision{Decision: &event.Decision{Kind: kind, Reason: reason, Time: uint64(time.Now().UnixMilli())}}}
}

// errThawed means that the log is no longer frozen.
var errThawed = errors.New("an operator has accepted the chain")

// frozenPause is the minimum pause between two checks whether the log is still frozen.
const frozenPause = 250 * time.Millisecond

// stayFrozen waits until an operator's resumption, which uses the id of the writer that it found, has ended the freeze,
// or until another writer has taken over.
func (s *session) stayFrozen(ctx context.Context) error {
	s.ingest.log.Error("ingest is frozen: nothing is appended until an operator acts (see `navlog ingest resume`)", "reason", s.state.frozen)
	reason := s.state.frozen
	if !backup.Restoring(reason) {
		reason += "; `navlog ingest resume` shows what it takes to continue with that chain"
	}
	s.ingest.note(func(st *Status) { st.State, st.Reason = Frozen, reason })
	for {
		if rpc.Sleep(ctx, max(s.ingest.config.PollInterval, frozenPause)) != nil {
			return nil
		}
		cursor, err := s.ingest.readCursor(ctx)
		if err == nil {
			err = s.ingest.rightful(cursor, s.ingest.instance)
		}
		if err != nil {
			return err
		}
		if cursor.GetFrozen() == "" {
			return errThawed
		}
	}
}

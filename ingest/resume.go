package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/navlog/navlog/ingest/backup"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// Resumption says what it takes, or took, to go on with the chain that froze
// the log.
type Resumption struct {
	ChainID  uint64 `json:"chainId"`
	Frozen   string `json:"frozen"`   // why the log is frozen
	Endpoint string `json:"endpoint"` // whose chain it is: scheme and host
	Head     Place  `json:"head"`     // newest block of the log
	// Ancestor is the newest block of the log that is one of the chain too. It is
	// block 0 where no recorded one is.
	Ancestor Place `json:"ancestor"`
	// Records above the ancestor that are taken back, and how many of them are
	// blocks and logs.
	Records int `json:"records"`
	Blocks  int `json:"blocks"`
	Logs    int `json:"logs"`
	// Referrals that partners may have heard of and whose cause is gone.
	Referrals []LostReferral `json:"referrals"`
	// Accepted says that it was done.
	Accepted bool `json:"accepted"`
}

// Place is a block.
type Place struct {
	Number uint64 `json:"number"`
	Hash   string `json:"hash"`
}

// The kinds of the decisions around what an operator takes back.
const (
	acceptReorgOpen  = "accept-reorg:open"
	acceptReorgClose = "accept-reorg:close"
)

// A transaction of a resumption holds about so many records, and a unit so many.
const (
	takenBackAtOnce = 100_000
	takenBackAsUnit = 10_000
)

// Resume shows what accepting the chain takes that froze the log and, with
// accept, does it: between two decision records it takes back everything above
// the newest recorded block that is in the chain, and ends the freeze. An
// ingest that runs, or the next one, then goes on from that block as from any.
//
// Resume fences like any writer, but signs with the name of the one that froze,
// who so learns that it may go on. Every transaction leaves a log that Resume
// can go on with; only the last one ends the freeze. It returns a *RefusedError
// where there is nothing to resume or the node is not to be believed yet. progress hears of
// what is read and taken back; nil for nobody.
func (i *Ingest) Resume(ctx context.Context, accept bool, progress Progress) (*Resumption, error) {
	defer i.nodes.Close()
	s := i.newSession(nil)
	if cursor, err := i.readCursor(ctx); err != nil {
		return nil, err
	} else if err := frozenAt(cursor, i.config.ID); err != nil {
		return nil, err // and whoever writes goes on
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
		return nil, fmt.Errorf("take back what is above block %d: %w; the log is whole and still frozen: run the command again", ancestor.Number, err)
	}
	plan.Accepted = true
	return plan, nil
}

// frozenAt refuses a cursor of a log that is not frozen.
func frozenAt(cursor *event.Cursor, chainID uint64) error {
	if backup.Restoring(cursor.GetFrozen()) {
		return refuse("there is nothing to resume: %s", cursor.GetFrozen())
	}
	if cursor.GetFrozen() == "" || cursor.GetHead() == nil {
		return refuse("there is nothing to resume: %s is not frozen", chainlog.LogTopic(chainID))
	}
	return nil
}

// plan finds the ancestor, and restores the window to all that is above it and
// what an ingest would need whose head it is.
func (s *session) plan(ctx context.Context, n *rpc.Node, progress Progress) (*Resumption, *rpc.Header, error) {
	tip, err := n.Latest(ctx)
	if err != nil {
		return nil, nil, err
	}
	if tip.Number < s.state.head.Number {
		return nil, nil, refuse("the head at %s is block %d, below the log's block %d: wait until the node is in sync, or correct chain.rpc", n.Name, tip.Number, s.state.head.Number)
	}
	if h, err := n.ByNumber(ctx, s.state.head.Number); err == nil && h.Hash != s.state.head.Hash {
		if keeper := s.keeper(ctx, n); keeper != nil {
			return nil, nil, refuse("%s has another block %d than the log, but %s has the log's: take the wrong one out of chain.rpc", n.Name, s.state.head.Number, keeper.Name)
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
		Head: Place{s.state.head.Number, s.state.head.Hash.Hex()}, Ancestor: Place{ancestor.Number, ancestor.Hash.Hex()},
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

// reopen reads the whole log, to make the window that a head at the ancestor
// has, with everything above that in it. It gives the referrals above the
// ancestor that were told, those included that an earlier, unfinished
// resumption took back.
func (s *session) reopen(ctx context.Context, ancestor uint64, progress Progress) (told []*event.Record, err error) {
	s.state.window = window{}
	toldTo := min(s.state.told, ancestor)
	s.state.floor = max(min(s.state.final, toldTo), ancestor-min(ancestor, s.ingest.config.Window))
	var unfinished []*event.Record
	wasTold := func(r *event.Record) bool {
		return r.GetLog().GetBlockNumber() <= s.state.told && mayRefer(s.state.mapped, r.GetLog())
	}
	err = chainlog.ReadAfter(ctx, s.ingest.config.ID, chainlog.Position{}, func(e chainlog.Entry) error {
		progress.tell(readingLog, min(e.GetSeq(), s.state.seq), s.state.seq)
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

// accept takes back what is above the ancestor, in as many transactions as it
// needs. Up to the last one the log stays frozen.
func (s *session) accept(ctx context.Context, plan *Resumption, ancestor *rpc.Header, progress Progress) error {
	units := append(takenBack(s.state.window.above(ancestor.Number), s.ingest.takeBack.asUnit), []*event.Record{decision(acceptReorgClose, plan)})
	c := &change{units: [][]*event.Record{{decision(acceptReorgOpen, plan)}}, frozen: s.state.frozen}
	records, done := 0, 0
	for _, unit := range units {
		progress.tell("records taken back", uint64(min(done, plan.Records)), uint64(plan.Records))
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

// takenBack makes the units that retract records, which are newest first; so are those
// of each unit. Each takes back everything above the block below its lowest one, so that
// whoever reads the log unit by unit sees a chain that became shorter: the highest blocks
// go first, and not the newest records, for those of a vault that came late are of low
// blocks. A unit ends above a recorded block, which is then the newest one.
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
	reason := fmt.Sprintf("the operator accepts the chain at %s: %d records above block %d (%s) are taken back; the log was frozen because %s",
		plan.Endpoint, plan.Records, plan.Ancestor.Number, plan.Ancestor.Hash, plan.Frozen)
	return &event.Record{Fact: &event.Record_Decision{Decision: &event.Decision{Kind: kind, Reason: reason, Time: uint64(time.Now().UnixMilli())}}}
}

// errThawed says that the log is not frozen any more.
var errThawed = errors.New("an operator has accepted the chain")

// frozenPause is the least time between two looks whether the log is frozen.
const frozenPause = 250 * time.Millisecond

// stayFrozen waits until an operator's resumption, which writes under the name
// of the writer that it found, has ended the freeze, or until another writer has
// taken over.
func (s *session) stayFrozen(ctx context.Context) error {
	s.ingest.log.Error("ingest is frozen: nothing is appended until an operator acts (see `navlog ingest resume`)", "reason", s.state.frozen)
	reason := s.state.frozen
	if !backup.Restoring(reason) {
		reason += "; `navlog ingest resume` shows what it takes to go on with that chain"
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

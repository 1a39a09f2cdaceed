package ingest

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/navlog/navlog/ingest/backup"
	"github.com/navlog/navlog/ingest/catchup"
	"github.com/navlog/navlog/ingest/follow"
	"github.com/navlog/navlog/ingest/operate"
	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/event"
)

type session struct {
	*Ingest
	writer    *writer.Writer
	follower  *follow.Follower
	catchup   *catchup.Catchup
	registrar *vaults.Registrar
	schedule  *operate.Schedule // of proofs by receipts; nil for none

	// After an error of a node, no command is executed and no vault is added before commandsRetryAt.
	commandsRetryAt time.Time
	commandsBackoff rpc.Backoff
}

func (i *Ingest) newSession() *session {
	s := &session{Ingest: i}
	s.writer = writer.New(writer.Options{
		Log: i.topics(), Instance: i.instance, Window: i.config.Window, Confirmations: uint64(i.config.Confirmations),
		Unproven:  i.config.Proof == proof.None || i.config.ReceiptsEvery > 0,
		Committed: s.committed, EarlierAtOnce: i.earlierAtOnce, Hook: i.hook,
	}, i.status, i.log)
	s.follower = follow.New(follow.Options{Finality: rpc.Finality(i.config.Finality), Proof: i.config.Proof}, s.writer,
		i.nodes, i.status, i.log)
	s.catchup = catchup.New(catchup.Options{BatchBlocks: i.config.BatchBlocks, RangesInFlight: i.config.RangesInFlight},
		s.writer, s.follower, i.nodes, i.status, i.log)
	s.registrar = vaults.NewRegistrar(i.vaults, i.nodes, s.writer, i.status, i.log)
	return s
}

func (s *session) close() {
	s.catchup.Discard()
	s.writer.Close()
}

// session waits until this ingest may write, fences every other writer, restores the state and advances until ctx ends
// or a transaction fails. It stands by first, unless the newest cursor of its claim is its own. A node must respond
// first, because without one this ingest would only interrupt another writer.
func (i *Ingest) session(ctx context.Context, c *claim, wait *rpc.Backoff) error {
	s := i.newSession()
	defer s.close()
	if bytes.Equal(c.last, i.instance) {
		if err := s.checkWriter(ctx, c.last); err != nil {
			return err
		}
		if err := i.nodes.CheckAnswers(ctx); err != nil {
			return err
		}
	} else {
		c.fenced = false
		if err := i.standBy(ctx); err != nil {
			return err
		}
	}
	// Again, because another one may have written meanwhile.
	if err := s.checkWriter(ctx, c.last); err != nil {
		return err
	}
	if err := s.writer.Fence(ctx); err != nil {
		return err
	}
	c.fenced = true
	defer inBackground(ctx, func(ctx context.Context) { i.sendHeartbeats(ctx, s.writer.Client()) })()
	cursor, err := s.restore(ctx)
	if err != nil {
		return err
	}
	if c.last != nil && cursor != nil {
		// An ingest that claimed the log after the first check is running: once it finds itself fenced, its next session
		// continues.
		if err := s.writer.CheckWriter(cursor, c.last); err != nil {
			return err
		}
	}
	c.last = cursor.GetInstanceId()
	if c.last == nil {
		c.last = i.instance
	}
	if cursor != nil && !bytes.Equal(c.last, i.instance) {
		if err := s.writer.Claim(ctx); err != nil {
			return err
		}
	}
	if i.commands != nil {
		defer s.registrar.Receive(ctx, i.commands)()
	}
	c.last = i.instance // from now on, a cursor by the last writer means that it came back
	if i.config.ReceiptsEvery > 0 && s.writer.State.Frozen == "" {
		s.schedule = i.newSchedule(s.writer.State)
		s.writer.Proven = s.schedule.Proven
		defer inBackground(ctx, s.schedule.Run)()
	}
	return s.follow(ctx, wait)
}

// checkWriter returns an error if another ingest than last, unless that is nil, has written the newest cursor.
func (s *session) checkWriter(ctx context.Context, last []byte) error {
	if last == nil {
		return nil
	}
	cursor, err := s.writer.Cursor(ctx)
	if err != nil || cursor == nil {
		return err
	}
	return s.writer.CheckWriter(cursor, last)
}

// newSchedule returns a schedule of proofs by receipts. While it is on, the log accepts all blocks unproven, and only a
// run of the schedule proves them.
func (i *Ingest) newSchedule(state *writer.State) *operate.Schedule {
	schedule := operate.NewSchedule(i.operatedLog(state.Mapped), i.config.ReceiptsEvery, i.config.ReceiptsPerSecond,
		i.status, i.log, i.noteProven)
	schedule.Committed(state)
	return schedule
}

// committed reports a state that was committed, or read.
func (s *session) committed(state *writer.State) {
	if s.schedule != nil {
		s.schedule.Committed(state)
	}
	s.noteProven(state.Covered)
}

func (s *session) restore(ctx context.Context) (*event.Cursor, error) {
	cursor, err := s.writer.Restore(ctx, s.nodes.Genesis())
	if err == nil {
		err = s.vaults.CheckStarts(cursor)
	}
	if err != nil {
		return nil, err
	}
	s.registrar.SelectVaults()
	return cursor, nil
}

func (s *session) follow(ctx context.Context, wait *rpc.Backoff) error {
	for {
		if s.writer.State.Frozen != "" {
			return s.waitForResume(ctx)
		}
		more, err := s.advance(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, writer.ErrCommit), writer.IsPermanent(err):
			return err
		case err != nil:
			s.log.Warn("step failed, retrying", "error", err)
			s.status.Note(func(st *status.Status) { st.Reason = err.Error() })
			// No transaction may fail for long, which would show that another ingest has taken over.
			if err := s.checkWriter(ctx, s.instance); errors.Is(err, writer.ErrFenced) {
				return err
			}
			s.nodes.NextAfter(err)
			if wait.Sleep(ctx) != nil {
				return nil
			}
			continue
		}
		wait.Reset()
		if !more && s.nodes.WaitForHead(ctx, s.config.PollInterval) != nil {
			return nil
		}
	}
}

// advance takes the next steps (the package comment lists them) and reports whether more can follow at once.
func (s *session) advance(ctx context.Context) (more bool, err error) {
	view, more, err := s.follower.ReadHead(ctx)
	if view == nil || err != nil {
		return more, err
	}
	did, pending, err := s.runCommands(ctx, view.Node, view.Tip)
	if err != nil {
		return true, err
	}
	if did {
		s.catchup.Discard() // another mapping may sample at other blocks
		return true, nil
	}
	if from, far := s.catchup.FarBehind(view.Final); far {
		s.status.Note(func(st *status.Status) { st.State, st.LateVaults = status.Backfilling, nil })
		_, err := s.catchup.Backfill(ctx, view, from)
		return true, err
	}
	if s.writer.State.Head == nil {
		return true, s.follower.Anchor(ctx, view)
	}
	s.status.Note(func(st *status.Status) { st.State = status.Following })
	more, appendErr := s.follower.AppendBlocks(ctx, view)
	// If endpoints contradict each other, the one that names the final block may be the wrong one.
	if ctx.Err() != nil || errors.Is(appendErr, writer.ErrCommit) || errors.Is(appendErr, rpc.ErrDisagree) {
		return false, appendErr
	}
	if caught, err := s.catchup.Step(ctx, view, appendErr != nil); caught || err != nil {
		return true, err
	}
	// If no next block can be taken, for example until a second endpoint agrees on it, blocks of the log that have
	// become final are still committed as final.
	if s.writer.Moves(view.Final) || s.schedule != nil && s.schedule.HasUnsavedRun() {
		if err := s.writer.Commit(ctx, &writer.Change{Final: view.Final}); err != nil {
			return false, err
		}
	}
	return more || pending, appendErr
}

// runCommands executes the oldest command, or else appends the records of vaults that are not in the log. If a node
// fails, only these wait: the vaults of the log continue, and the next attempt follows after a pause.
func (s *session) runCommands(ctx context.Context, n *rpc.Node, tip *rpc.Header) (did, pending bool, err error) {
	if time.Now().Before(s.commandsRetryAt) {
		return false, false, nil
	}
	did, pending, err = s.registrar.Execute(ctx, n, tip)
	if !did && err == nil {
		did, err = s.registrar.Describe(ctx, n, tip)
	}
	others := s.writer.State.Head != nil && len(s.writer.State.Indexed()) > 0
	if err != nil && (!others || ctx.Err() != nil || errors.Is(err, writer.ErrCommit) || writer.IsPermanent(err)) {
		return did, pending, err
	}
	warning := ""
	if err == nil {
		s.commandsRetryAt = time.Time{}
		s.commandsBackoff.Reset()
	} else {
		s.commandsRetryAt, warning = time.Now().Add(s.commandsBackoff.Pause()),
			"a command about a vault, or a new vault, waits: "+err.Error()
		s.log.Warn("cannot execute a command or add a vault, retrying; the vaults of the log continue", "error", err)
		s.nodes.Next()
	}
	s.status.Note(func(st *status.Status) { st.CommandWarning = warning })
	return did && err == nil, pending && err == nil, nil
}

// frozenPause is the minimum pause between two checks whether the log is still frozen.
const frozenPause = 250 * time.Millisecond

// waitForResume waits until an operator's resumption has ended the freeze, or until another writer has taken over.
func (s *session) waitForResume(ctx context.Context) error {
	reason := s.writer.State.Frozen
	s.log.Error("ingest is frozen: nothing is appended until an operator acts (see `navlog ingest resume`)", "reason",
		reason)
	if !backup.Restoring(reason) {
		reason += "; `navlog ingest resume` shows what it takes to continue with that chain"
	}
	s.status.Note(func(st *status.Status) { st.State, st.Reason = status.Frozen, reason })
	for {
		if rpc.Sleep(ctx, max(s.config.PollInterval, frozenPause)) != nil {
			return nil
		}
		cursor, err := s.writer.Cursor(ctx)
		if err == nil {
			err = s.writer.CheckWriter(cursor, s.instance)
		}
		if err != nil {
			return err
		}
		if cursor.GetFrozen() == "" {
			return errors.New("an operator has accepted the chain") // the next session continues
		}
	}
}

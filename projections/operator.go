package projections

import (
	"context"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/projections/write"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Operator decides which generations exist and which one is live, by changing the registry's list. It writes no rows:
// any running Projections does, when it sees the list. docs/architecture.md draws the states of a generation.
type Operator struct {
	// Progress is called often with what a command is waiting for or comparing; it may be nil.
	Progress verify.Progress

	stores
	every    time.Duration // between checks of a generation that is being built
	patience time.Duration // until a notice that no projector builds the generation
}

// NewOperator returns an operator. The caller must close it.
func NewOperator(chainID uint64, kafka chainlog.Config, ch readmodel.Config, pool *pgxpool.Pool) (*Operator, error) {
	conn, err := ch.Open("")
	if err != nil {
		return nil, err
	}
	return &Operator{stores: stores{chainID, kafka, ch, conn, pool}, every: 500 * time.Millisecond,
		patience: 10 * time.Second}, nil
}

// Reach fails if ClickHouse does not respond, or is too old.
func (o *Operator) Reach(ctx context.Context) error { return readmodel.Reach(ctx, o.conn) }

// Close ends its connections to ClickHouse.
func (o *Operator) Close() error { return o.conn.Close() }

// audit audits a generation and, if it lost or duplicated a row, marks it bad, even if it is in use: no response is
// better than a wrong one. The projector audits it on opening and then every hour while it writes. When the audit
// fails and the mark is made, the error wraps a *verify.BrokenError with what to do.
func (o *Operator) audit(ctx context.Context, id int32, database string) error {
	conn, err := o.clickhouse.OpenPatient(database)
	if err != nil {
		return err
	}
	defer conn.Close()
	return verify.MarkIfBroken(ctx, o.pool, id,
		verify.Audit(o.Progress.Asked(ctx, fmt.Sprintf("generation %d: no row lost or doubled", id)), conn))
}

// Generation is one line of the list.
type Generation struct {
	ID       int32  `json:"id"`
	State    string `json:"state"`
	Schema   string `json:"schema"`
	Database string `json:"database"`
	LogID    string `json:"logId"`
	// Seq is the seq up to which both tables are written; nil if there are no tables, or tables of another schema
	// under other names.
	Seq       *uint64   `json:"seq"`
	CreatedAt time.Time `json:"createdAt"`
	// Note explains what is unusual about the generation, and what to do; empty if nothing is.
	Note string `json:"note,omitempty"`
	// Outdated means that a vault was added, removed or restored, or got another mapping, since its lists were built.
	// While such a generation is live, a projector builds its successor and makes it live.
	Outdated bool `json:"outdated,omitempty"`

	vaults   [][]byte
	without  [][]byte
	reported *Status // what projectors report about it; nil if none of them writes it
}

// unwritten reports whether a projector cannot write the generation any more.
func (g *Generation) unwritten() bool { return g.reported != nil && g.reported.State == Bad }

// List returns the generations by id, including dropped ones.
func (o *Operator) List(ctx context.Context) ([]Generation, error) {
	rows, err := o.listed(ctx)
	if err != nil {
		return nil, err
	}
	reported, err := o.reports(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Generation, len(rows))
	for i, g := range rows {
		out[i] = Generation{ID: g.ID, State: g.State, Schema: g.Schema, Database: o.clickhouse.Database(g.ID),
			LogID: hex.EncodeToString(g.LogID), CreatedAt: g.CreatedAt, vaults: g.Vaults, without: g.Without,
			Outdated: g.Outdated, reported: reported[g.ID]}
		if out[i].Seq, err = o.seq(ctx, out[i].Database); err != nil {
			return nil, err
		}
		if err := o.noteDatabaseLeft(ctx, &out[i]); err != nil {
			return nil, err
		}
	}
	noteUnwritten(out)
	noteStaysBuilding(out)
	return out, nil
}

// noteUnwritten adds a note to each generation that its projector cannot write, for now or any more.
func noteUnwritten(all []Generation) {
	for i := range all {
		switch g := &all[i]; {
		case g.reported == nil:
		case g.reported.State == Retrying:
			g.Note = "it is not written, retrying: " + g.reported.Reason + "; it continues when this ends"
		case g.unwritten():
			g.Note = unwrittenReason(g.reported)
			if g.State != registry.Live {
				g.Note += fmt.Sprintf(": drop it with `navlog projection drop %d`", g.ID)
			}
		}
	}
}

// unwrittenReason returns why a generation in state bad stays where it is.
func unwrittenReason(s *Status) string {
	return "it is not written any more, because " + s.Reason
}

// noteStaysBuilding adds a note to each generation that will stay in state building: project makes it live only if
// no other one is live or the live one is outdated, and otherwise a rebuild must do it. Such a generation remains
// after an interrupted rebuild, or after a restore of PostgreSQL to a time at which it was being built.
func noteStaysBuilding(all []Generation) {
	i := slices.IndexFunc(all, func(g Generation) bool { return g.State == registry.Live })
	if i < 0 || all[i].Outdated {
		return
	}
	live := all[i]
	for i := range all {
		g := &all[i]
		switch {
		case g.State != registry.Building || g.Note != "":
		case !sameLogAndSchema(g, &live):
			g.Note = fmt.Sprintf("left building, from another log or of another schema than the live one: drop it with "+
				"`navlog projection drop %d`", g.ID)
		case g.Seq != nil && live.Seq != nil && *g.Seq >= *live.Seq:
			g.Note = fmt.Sprintf("left building, with everything that the live one has: unless a rebuild is running, "+
				"continue with `navlog projection rebuild`, or drop it with `navlog projection drop %d`", g.ID)
		}
	}
}

// noteDatabaseLeft adds a note to a dropped generation whose database has tables. The list shows a drop before the
// database is dropped, so the program may have ended between the two.
func (o *Operator) noteDatabaseLeft(ctx context.Context, g *Generation) error {
	if g.State != registry.Dropped {
		return nil
	}
	tables, err := readmodel.Tables(ctx, o.conn, g.Database)
	if len(tables) > 0 {
		g.Note = fmt.Sprintf("dropped, but its database %s exists: unless it belongs to another deployment, drop it with "+
			"`navlog projection drop %d`", g.Database, g.ID)
	}
	return err
}

// seq returns the position of a generation; nil if it lacks a table of this binary's schema, because the tables do not
// exist (yet, or any more) or belong to a schema with other names, or if a part cannot be read. Such a generation
// must still be listed, replaced and dropped.
func (o *Operator) seq(ctx context.Context, database string) (*uint64, error) {
	at, err := readmodel.ReadPosition(ctx, o.conn, database)
	if corrupted(err) {
		return nil, nil
	}
	if err != nil || !at.Found {
		return nil, err
	}
	return &at.Seq, nil
}

// find returns the generation with an id, and the live one; nil if none is live.
func (o *Operator) find(ctx context.Context, id int32) (g, live *Generation, err error) {
	all, err := o.List(ctx)
	for i := range all {
		if all[i].ID == id {
			g = &all[i]
		}
		if all[i].State == registry.Live {
			live = &all[i]
		}
	}
	if err == nil && g == nil {
		err = fmt.Errorf("there is no generation %d: `navlog projection list` shows them", id)
	}
	return g, live, err
}

// catchUp is how long a switch waits for a generation that is slightly behind.
const catchUp = 30 * time.Second

// Switch makes a standby generation the live one, and the live one standby.
func (o *Operator) Switch(ctx context.Context, id int32) error {
	g, live, err := o.find(ctx, id)
	if err != nil {
		return err
	}
	switch g.State {
	case registry.Standby:
	case registry.Live:
		return fmt.Errorf("generation %d is live already", id)
	case registry.Building:
		return fmt.Errorf("generation %d is being built and was not compared yet: `navlog projection rebuild` continues it",
			id)
	default:
		return fmt.Errorf("generation %d is %s and cannot be live: `navlog projection rebuild` makes a new one", id, g.State)
	}
	if g.Seq == nil {
		return fmt.Errorf("generation %d is standby and %s has no tables of the schema %s that this navlog knows (its own "+
			"is %s): drop it, and run `navlog projection rebuild`", id, g.Database, readmodel.Schema(), g.Schema)
	}
	if live != nil && g.LogID != live.LogID {
		return fmt.Errorf("generation %d was made from log %s and the live generation %d from log %s: an older log cannot "+
			"be served again", id, g.LogID, live.ID, live.LogID)
	}
	if err := o.audit(ctx, id, g.Database); err != nil {
		return fmt.Errorf("generation %d cannot be live: %w", id, err)
	}
	if live != nil {
		if err := o.waitUntilCaughtUp(ctx, g, live); err != nil {
			return err
		}
	}
	return promote(ctx, o.pool, id, registry.Standby, idOf(live))
}

// waitUntilCaughtUp waits until a generation has reached the current position of the live one. A generation that is
// not written any more never will.
func (o *Operator) waitUntilCaughtUp(ctx context.Context, g, live *Generation) error {
	seq, err := o.seq(ctx, live.Database)
	if err != nil || seq == nil {
		return err
	}
	for began, want := time.Now(), *seq; ; {
		at, err := readmodel.ReadPosition(ctx, o.conn, g.Database)
		if err != nil || at.Seq >= want {
			return err
		}
		reported, err := o.reports(ctx)
		if err != nil {
			return err
		}
		if s := reported[g.ID]; s != nil && s.State == Bad {
			return fmt.Errorf("generation %d is at seq %d and the live one at %d: nothing was switched; %s", g.ID, at.Seq, want,
				unwrittenReason(s))
		}
		o.Progress.Report(fmt.Sprintf("generation %d: what the live one has", g.ID), at.Seq, want)
		if time.Since(began) > catchUp {
			return fmt.Errorf("generation %d is at seq %d and the live one at %d: nothing was switched; is it written, by a "+
				"`navlog project` of schema %s (`navlog status`)?", g.ID, at.Seq, want, g.Schema)
		}
		if err := write.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// promote moves the pointer, in one transaction. over is the generation that was live when the caller decided; 0: none
// was. If a third one is live by now, a rollback, a rebuild or a projector decided later, and nothing is changed.
func promote(ctx context.Context, pool *pgxpool.Pool, id int32, from string, over int32) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		live, err := q.LiveGeneration(ctx)
		if err == nil && live.ID == id {
			return nil
		}
		if err == nil && live.ID != over {
			return fmt.Errorf("nothing was switched, because generation %d was made live meanwhile: check `navlog projection "+
				"list`, and run this again", live.ID)
		}
		if err == nil {
			err = move(ctx, q, live.ID, registry.Live, registry.Standby)
		}
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return move(ctx, q, id, from, registry.Live)
	})
	if err != nil {
		return fmt.Errorf("make generation %d the live one: %w", id, err)
	}
	return nil
}

// idOf returns the id of a generation; 0 for none.
func idOf(g *Generation) int32 {
	if g == nil {
		return 0
	}
	return g.ID
}

// move changes a state, which must still be the expected one.
func move(ctx context.Context, q *db.Queries, id int32, from, to string) error {
	n, err := q.SetGenerationState(ctx, db.SetGenerationStateParams{ID: id, OldState: from, NewState: to})
	if err == nil && n != 1 {
		err = fmt.Errorf("generation %d is no longer %s: another command or a projector changed it; check `navlog "+
			"projection list` and retry", id, from)
	}
	return err
}

// Rollback makes the newest standby generation of this navlog's schema the live one, or else the newest of any schema,
// and returns its id.
func (o *Operator) Rollback(ctx context.Context) (int32, error) {
	all, err := o.List(ctx)
	if err != nil {
		return 0, err
	}
	var to Generation
	for _, g := range all {
		if g.State == registry.Standby && (g.Schema == readmodel.Schema() || to.Schema != readmodel.Schema()) {
			to = g
		}
	}
	if to.ID == 0 {
		return 0, errors.New("there is no standby generation to go back to: `navlog projection rebuild` makes a new one")
	}
	return to.ID, o.Switch(ctx, to.ID)
}

// Drop removes a generation that is not live and that no `navlog serve` reads. Its entry in the registry stays.
// Dropping it again completes an interrupted drop.
func (o *Operator) Drop(ctx context.Context, id int32) error {
	g, _, err := o.find(ctx, id)
	if err != nil {
		return err
	}
	if g.State == registry.Live {
		return fmt.Errorf("generation %d is live and is not dropped: switch to another one first (`navlog projection "+
			"switch`, `rebuild`)", id)
	}
	if err := o.checkNotServed(ctx, id); err != nil {
		return err
	}
	if g.State != registry.Dropped {
		if err := move(ctx, db.New(o.pool), id, g.State, registry.Dropped); err != nil {
			return err
		}
	}
	// Its writer sees the list and drops the lease. While this command has the lease, no projector writes or
	// recreates the tables.
	o.Progress.Report(fmt.Sprintf("generation %d: waiting for its lease", id), 0, 0)
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	lease, err := newLeases(o.pool).Acquire(limited, int64(id), func() {})
	if err != nil {
		return fmt.Errorf("generation %d is dropped, and its database %s is left because a projector still holds it; run "+
			"this again: %w", id, g.Database, err)
	}
	defer lease.Drop(ctx)
	o.Progress.Report(fmt.Sprintf("generation %d: dropping %s", id, g.Database), 0, 0)
	group, ctx := errgroup.WithContext(ctx)
	dropping, dropped := context.WithCancel(ctx)
	group.Go(func() error { return lease.Watch(dropping) })
	group.Go(func() error {
		defer dropped()
		return o.clickhouse.Drop(ctx, o.conn, g.Database)
	})
	if err := group.Wait(); err != nil {
		return fmt.Errorf("generation %d is dropped, and its database %s is left; run this again: %w", id, g.Database, err)
	}
	return nil
}

// checkNotServed rejects a generation from which an instance of `navlog serve` has served within the last 30 s, or that
// requests from before a switch may still be reading: the instance reports for how long.
func (o *Operator) checkNotServed(ctx context.Context, id int32) error {
	all, err := db.New(o.pool).ListStatus(ctx)
	if err != nil {
		return fmt.Errorf("read the status of the programs: %w", err)
	}
	for _, s := range all {
		var reader struct {
			Generation int32 `json:"generation"`
			Leaving    []struct {
				Generation int32 `json:"generation"`
				ForMs      int64 `json:"forMs"`
			} `json:"leaving"`
		}
		if s.Program != registry.Serve || json.Unmarshal(s.Status, &reader) != nil {
			continue
		}
		if reader.Generation == id && s.AgeMs <= 30_000 {
			return fmt.Errorf("generation %d is not dropped: `navlog serve` %s read it %d s ago; it follows a "+
				"switch within a second, or within 30 s if the schema differs, so retry in 30 s", id, s.Instance, s.AgeMs/1000)
		}
		for _, g := range reader.Leaving {
			if left := g.ForMs - s.AgeMs; g.Generation == id && left > 0 {
				return fmt.Errorf("generation %d is not dropped: responses that `navlog serve` %s began before it followed "+
					"the switch may still read it; retry in %d s", id, s.Instance, left/1000+1)
			}
		}
	}
	return nil
}

// Attribution is a value that attributes deposits and requests of a vault to a partner.
type Attribution struct {
	Vault    common.Address `ch:"vault"`
	Value    common.Hash    `ch:"attribution"`
	Deposits uint64         `ch:"deposits"`
	Requests uint64         `ch:"requests"`
	// First is the block of the first of them, and Since its time in Unix seconds.
	First uint64 `ch:"first"`
	Since uint32 `ch:"since"`
}

//go:embed sql/attributions.sql
var sqlAttributions string

// Attributions returns the attribution values of the live generation, the most frequent first, at most the given
// number.
func (o *Operator) Attributions(ctx context.Context, most uint64) (all []Attribution, err error) {
	generations, err := o.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range generations {
		if g.State != registry.Live || g.Seq == nil {
			continue
		}
		conn, err := o.clickhouse.OpenPatient(g.Database)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		if err := conn.Select(readmodel.Parameters(ctx, map[string]uint64{"seq": *g.Seq, "most": most}), &all,
			sqlAttributions); err != nil {
			return nil, fmt.Errorf("read the attribution values of generation %d: %w", g.ID, err)
		}
		return all, nil
	}
	return nil, errors.New("no generation is live: `navlog projection list` shows them")
}

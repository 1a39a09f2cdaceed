package projections

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/projections/write"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// RebuildOptions configure how a rebuild ends, and who is notified.
type RebuildOptions struct {
	NoSwitch   bool // leave the new generation in standby
	AcceptDiff bool // switch although it differs from the live one
	// Notice is called with messages for the operator. It may be nil.
	Notice func(string)
}

// Rebuilt is the result of a rebuild.
type Rebuilt struct {
	Generation int32 `json:"generation"`
	// Continued reports whether an earlier rebuild had created this generation.
	Continued bool `json:"continued"`
	// Parity is the comparison with the live generation. If there was none with this log and schema, Verified is the
	// comparison with the log itself.
	Parity   *verify.Parity `json:"parity,omitempty"`
	Verified *verify.Report `json:"verified,omitempty"`
	// Accepted reports whether it was made live although it differs.
	Accepted bool `json:"accepted,omitempty"`
	// Live reports whether it is the live generation now.
	Live bool `json:"live"`
}

// ErrDiffers means that a rebuild ended without a switch, because the new generation differs from what it was
// compared with. The report has the details.
var ErrDiffers = errors.New("the new generation differs")

// Rebuild creates a new generation, or continues one that an earlier rebuild left, waits while a `navlog project`
// builds it from the log, compares it with the live one, and makes it live if they are equal. It can be interrupted
// at any time: the live generation is not touched before the switch, and the next Rebuild continues. It returns its
// result even with an error; nil if it did nothing.
func (o *Operator) Rebuild(ctx context.Context, options RebuildOptions) (*Rebuilt, error) {
	if options.Notice == nil {
		options.Notice = func(string) {}
	}
	id, continued, err := o.candidate(ctx)
	if err != nil {
		return nil, err
	}
	out := &Rebuilt{Generation: id, Continued: continued}
	if continued {
		options.Notice(fmt.Sprintf("continuing generation %d, which an earlier rebuild created", id))
	} else {
		options.Notice(fmt.Sprintf("generation %d is created; a `navlog project` builds it from the log, and if this command "+
			"fails, run it again: it continues", id))
	}
	g, live, err := o.waitUntilBuilt(ctx, id, options)
	if err != nil {
		return out, err
	}
	if err := o.audit(ctx, id, g.Database); err != nil {
		return out, fmt.Errorf("generation %d cannot be live: %w", id, err)
	}
	over := idOf(live)
	if live, err = o.comparableLive(ctx, g, live, options); err != nil {
		return out, err
	}
	if live != nil {
		if err = o.compareWithLive(ctx, g, live, out, options.AcceptDiff); corrupted(err) {
			live = o.noticeBroken(live, err, options) // the audit does not read all columns
		}
	}
	if live == nil {
		options.Notice("no sound generation of this log and schema is live: comparing with the log itself")
		err = o.compareWithLog(ctx, g, out)
	}
	if kept := o.keep(ctx, out); kept != nil {
		return out, errors.Join(err, kept) // without a record, a difference is not accepted
	}
	if err != nil {
		return out, err
	}
	if g.State == registry.Live { // a projector made it live, because there was no other one to serve
		out.Live = true
		return out, nil
	}
	if options.NoSwitch {
		return out, move(ctx, db.New(o.pool), id, registry.Building, registry.Standby)
	}
	if live != nil {
		if err := o.waitUntilCaughtUp(ctx, g, live); err != nil {
			return out, err
		}
	}
	err = promote(ctx, o.pool, id, registry.Building, over)
	out.Live = err == nil
	return out, err
}

// comparableLive returns the live generation if it can serve for comparison with g; nil if there is none of this log
// and schema, or if nothing can be equal to it: it lost or duplicated a row, ClickHouse cannot read a part of it, or
// it is not written any more and has records that the log does not have, because the log was restored from an older
// copy.
func (o *Operator) comparableLive(
	ctx context.Context, g, live *Generation, options RebuildOptions,
) (*Generation, error) {
	if live == nil || !sameLogAndSchema(g, live) {
		return nil, nil
	}
	if live.unwritten() && live.Seq != nil && *live.Seq > *g.Seq {
		options.Notice(fmt.Sprintf("the live generation %d is at seq %d, and the log ends at %d", live.ID, *live.Seq, *g.Seq))
		return nil, nil
	}
	err := o.audit(ctx, live.ID, live.Database)
	if is[*verify.BrokenError](err) || corrupted(err) {
		return o.noticeBroken(live, err, options), nil
	}
	return live, err
}

// noticeBroken reports why the live generation cannot serve for comparison, and returns nil.
func (o *Operator) noticeBroken(live *Generation, err error, options RebuildOptions) *Generation {
	options.Notice(fmt.Sprintf("the live generation %d is broken: %v", live.ID, err))
	return nil
}

// sameLogAndSchema reports whether two generations are of the same log and schema.
func sameLogAndSchema(g, other *Generation) bool {
	return g.LogID == other.LogID && g.Schema == other.Schema
}

// compareWithLog proves that a generation is a fold of the log. It checks every user and request, not a sample: there
// is no other check before the switch, and equality must hold for all of them.
func (o *Operator) compareWithLog(ctx context.Context, g *Generation, out *Rebuilt) (err error) {
	options := verify.Options{Progress: o.Progress}
	if out.Verified, err = verify.Generation(ctx, o.chainID, o.kafka, o.clickhouse, g.ID, g.vaults, g.without,
		options); err != nil {
		return err
	}
	if out.Verified.Err() != nil && g.State == registry.Live {
		return fmt.Errorf("%w: generation %d is not a fold of the log, and a projector made it live, because no other one "+
			"could serve; run `navlog projection rebuild` again", ErrDiffers, g.ID)
	}
	if out.Verified.Err() != nil {
		return fmt.Errorf("%w: generation %d is not a fold of the log, and is not made live; drop it with `navlog "+
			"projection drop %d`", ErrDiffers, g.ID, g.ID)
	}
	return nil
}

func (o *Operator) compareWithLive(ctx context.Context, g, live *Generation, out *Rebuilt, accept bool) (err error) {
	if out.Parity, err = verify.Compare(ctx, o.clickhouse, live.ID, g.ID, o.Progress); err != nil {
		return err
	}
	out.Accepted = accept && out.Parity.Err() != nil
	if out.Parity.Err() != nil && !accept {
		return fmt.Errorf("%w: generation %d is not equal to generation %d, which stays live; `navlog verify` shows "+
			"whether that one is a fold of the log; then switch with `navlog projection rebuild --accept-diff`, or drop the "+
			"new one with `navlog projection drop %d`", ErrDiffers, g.ID, live.ID, g.ID)
	}
	return nil
}

// keep stores the result of the comparison with the generation in PostgreSQL.
func (o *Operator) keep(ctx context.Context, r *Rebuilt) error {
	text, err := json.Marshal(r)
	if err == nil {
		err = db.New(o.pool).KeepGenerationReport(ctx,
			db.KeepGenerationReportParams{ID: r.Generation, Report: printable.JSON(text)})
	}
	if err != nil {
		return fmt.Errorf("store the report of generation %d in PostgreSQL: %w", r.Generation, err)
	}
	return nil
}

// Show returns the stored result of a generation's last rebuild, with Live updated from the list.
func (o *Operator) Show(ctx context.Context, id int32) (*Rebuilt, error) {
	row, err := db.New(o.pool).GenerationReport(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("there is no generation %d: `navlog projection list` shows them", id)
	}
	if err != nil {
		return nil, fmt.Errorf("read the report of generation %d from PostgreSQL: %w", id, err)
	}
	if row.Report == nil {
		return nil, fmt.Errorf("generation %d has no report: it was not compared, because it is the first one or is not "+
			"built yet", id)
	}
	out := new(Rebuilt)
	if err := json.Unmarshal(row.Report, out); err != nil {
		return nil, fmt.Errorf("read the report of generation %d: %w", id, err)
	}
	out.Live = row.State == registry.Live
	return out, nil
}

// candidate finds the generation that an earlier rebuild left, or creates one.
func (o *Operator) candidate(ctx context.Context) (id int32, continued bool, err error) {
	origin, err := chainlog.ReadOrigin(ctx, o.chainID, o.kafka.Options()...)
	if err != nil {
		return 0, false, fmt.Errorf("look for the first record: %w", err)
	}
	if origin == nil {
		return 0, false, errors.New("the log has no record yet, there is nothing to rebuild from: is `navlog ingest` " +
			"running?")
	}
	for {
		all, err := o.List(ctx)
		if err != nil {
			return 0, false, err
		}
		if len(all) == 0 {
			return 0, false, errors.New("there is no generation yet: `navlog project` makes the first one by itself")
		}
		for _, g := range slices.Backward(all) {
			if g.State == registry.Building && g.LogID == hex.EncodeToString(origin.GetLogId()) &&
				g.Schema == readmodel.Schema() {
				return g.ID, true, nil
			}
		}
		id = all[len(all)-1].ID + 1
		made, err := o.create(ctx, id, origin)
		if made || err != nil {
			return id, false, err
		}
		// Another rebuild was faster: continue with its generation.
	}
}

// targetDistance is how far behind the live generation, in records, a generation may be to fix the target of its
// comparison: the live one's position at that moment. A log that is written all the time has no end to wait for.
const targetDistance = 10_000

// waitUntilBuilt waits until a projector has brought the generation to the end of the log, or to the position that
// the live one had when the new one came near, unless the live one is not written any more. It also returns the live
// generation, unless that is the new one.
func (o *Operator) waitUntilBuilt(
	ctx context.Context, id int32, options RebuildOptions,
) (g, live *Generation, err error) {
	began, noticed, retrying := time.Now(), false, false
	var target *uint64
	for {
		g, live, err = o.find(ctx, id)
		if err != nil {
			return nil, nil, interrupted(id, err)
		}
		if g.State == registry.Live {
			return g, nil, nil // none was live, or the live one was outdated, so a projector made this one live
		}
		if g.State != registry.Building {
			return nil, nil, fmt.Errorf("generation %d is %s now: another command or a projector changed it; check `navlog "+
				"projection list`", id, g.State)
		}
		s := g.reported
		if s != nil && s.State == Retrying && !retrying {
			options.Notice(fmt.Sprintf("generation %d is not written, retrying: %s", id, s.Reason))
		}
		retrying = s != nil && (s.State == Retrying || retrying && !registry.Working(s.State))
		switch {
		case s == nil && !noticed && time.Since(began) > o.patience:
			noticed = true
			options.Notice(fmt.Sprintf("no `navlog project` writes generation %d: is one of this version running (schema "+
				"%s)? still waiting", id, g.Schema))
		case s == nil: // wait
		case s.State == Bad:
			return nil, nil, fmt.Errorf("generation %d cannot be built: %s; resolve that, restart `navlog project`, and "+
				"run this again, or drop it with `navlog projection drop %d` before the next rebuild", id, s.Reason, id)
		case g.Seq != nil:
			atEnd := s.State == Following
			if live != nil && live.Seq != nil && sameLogAndSchema(g, live) && !live.unwritten() {
				if target == nil && (atEnd || *g.Seq+targetDistance >= *live.Seq) {
					target = live.Seq
				}
				atEnd = target != nil && *g.Seq >= *target && s.Built
			}
			o.Progress.Report(buildingText(id), *g.Seq, endOf(*g.Seq, s.Lag, atEnd))
			if atEnd {
				return g, live, nil
			}
		}
		if err := write.Pause(ctx, o.every); err != nil {
			return nil, nil, interrupted(id, err)
		}
	}
}

// interrupted is the error of a rebuild that ends before its generation is built.
func interrupted(id int32, err error) error {
	return fmt.Errorf("generation %d stays, and the next `navlog projection rebuild` continues it: %w", id, err)
}

// buildingText names the building of a generation in progress messages.
func buildingText(id int32) string { return fmt.Sprintf("generation %d: building, records", id) }

// endOf estimates the newest seq of the log: the number of remaining offsets is close to the number of remaining
// records. 0 means unknown.
func endOf(seq uint64, left int64, atEnd bool) uint64 {
	switch {
	case atEnd:
		return seq
	case left <= 0:
		return 0
	}
	return seq + uint64(left)
}

// reports returns what projectors report about each generation that one of them writes. The report of the one that
// writes takes precedence: another one may retry, because it does not reach an engine.
func (o *Operator) reports(ctx context.Context) (map[int32]*Status, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	all, err := db.New(o.pool).ListStatus(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the status of the programs: %w", err)
	}
	out := map[int32]*Status{}
	for _, row := range all {
		var reported Status
		if row.Program != registry.Project || row.AgeMs > 5000 || json.Unmarshal(row.Status, &reported) != nil {
			continue
		}
		for _, s := range append(reported.Others, reported) {
			best := out[s.Generation]
			if s.State != Starting && (best == nil || best.State == StandingBy || registry.Working(s.State)) {
				out[s.Generation] = &s
			}
		}
	}
	return out, nil
}

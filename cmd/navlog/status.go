package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/dispatch"
	"github.com/navlog/navlog/ingest/backup"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// staleAfter is the age at which a program's reported state is no longer valid.
const staleAfter = 5 * time.Second

type statusCmd struct {
	registryFlags
	URL   string        `placeholder:"URL" help:"Read the status from this API, without a configuration, instead of from the registry."`
	Watch bool          `short:"w" help:"Refresh the screen until a signal arrives."`
	Every time.Duration `default:"2s" range:"200ms to 1h" help:"Interval of --watch: 200ms to 1h."`
}

type statusRow struct {
	Program  string          `json:"program"`
	Instance string          `json:"instance"`
	AgeMs    int64           `json:"ageMs"`
	Known    bool            `json:"known"`
	Status   json.RawMessage `json:"status"`
}

// Run prints one line per program, the state of the chain and its endpoints, and the number of undelivered
// deliveries in each state. It fails if the chain is frozen, so that scripts notice.
func (cmd statusCmd) Run(ctx context.Context, s *cli.Streams) error {
	if cmd.URL != "" {
		return cmd.repeat(ctx, s, func(out io.Writer) error { return cmd.showPublic(ctx, out) })
	}
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		return cmd.repeat(ctx, s, func(out io.Writer) error {
			return withTimeout(ctx, answersWithin, func(ctx context.Context) error { return cmd.show(ctx, pool, out) })
		})
	})
}

// clearScreen moves the cursor to the upper left corner and clears the screen.
const clearScreen = "\x1b[H\x1b[2J"

// repeat shows the status once, or with --watch until ctx ends: a fault is shown, and the status is requested again.
func (cmd statusCmd) repeat(ctx context.Context, s *cli.Streams, show func(io.Writer) error) error {
	if !cmd.Watch {
		return show(s.Out)
	}
	tick := time.NewTicker(cmd.Every)
	defer tick.Stop()
	for {
		var screen bytes.Buffer
		fault := show(&screen)
		if ctx.Err() != nil {
			return nil
		}
		if !cmd.JSON {
			fmt.Fprintf(&screen, "\n%s\n", time.Now().UTC().Format(time.RFC3339))
			if terminal := cli.NewScreen(s.Out).Terminal(); terminal != nil {
				fmt.Fprint(terminal, clearScreen)
			}
		}
		if _, err := screen.WriteTo(s.Out); err != nil {
			return err
		}
		if fault != nil { // after the status, which would clear it off a terminal
			cli.PrintError(s.Err, "navlog", fault)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (cmd statusCmd) show(ctx context.Context, pool *pgxpool.Pool, out io.Writer) error {
	rows, err := readStatus(ctx, pool)
	if err != nil {
		return err
	}
	err = cmd.Print(out, map[string]any{"programs": rows, "deliveries": deliveriesOf(rows)},
		func(w io.Writer) { writeStatus(w, rows) })
	return errors.Join(err, frozen(rows), unreported(ctx, pool, rows))
}

// unreported returns why no program reports its state, if PostgreSQL is the reason.
func unreported(ctx context.Context, pool *pgxpool.Pool, rows []statusRow) error {
	if len(rows) == 0 || slices.ContainsFunc(rows, func(r statusRow) bool { return r.Known }) {
		return nil
	}
	if err := registry.WritableByOthers(ctx, pool); err != nil {
		return fmt.Errorf("no program can report its state: %w", err)
	}
	return nil
}

// readStatus reads what the programs have reported.
func readStatus(ctx context.Context, pool *pgxpool.Pool) ([]statusRow, error) {
	found, err := db.New(pool).ListStatus(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the programs' status: %w", err)
	}
	rows := make([]statusRow, 0, len(found))
	for _, f := range found {
		rows = append(rows, statusRow{f.Program, f.Instance, f.AgeMs, f.AgeMs <= staleAfter.Milliseconds(), f.Status})
	}
	return rows, nil
}

// frozen returns the error that ends the command if the chain is frozen.
func frozen(rows []statusRow) error {
	for _, r := range rows {
		var st registry.ProgramStatus
		if r.Program == registry.Ingest && r.Known && json.Unmarshal(r.Status, &st) == nil && st.State == registry.Frozen {
			return errFrozen(st.Reason)
		}
	}
	return nil
}

func errFrozen(reason string) error {
	return cli.Frozen.With(fmt.Errorf("the chain is frozen: %s", reason))
}

// thawing returns how to end a freeze.
func thawing(reason string) string {
	if backup.Restoring(reason) {
		return "`navlog restore` with the same backup ends it"
	}
	return "`navlog ingest resume` shows what continuing would retract"
}

func (cmd statusCmd) showPublic(ctx context.Context, out io.Writer) error {
	document, st, err := fetchStatus(ctx, cmd.URL)
	if err != nil {
		return err
	}
	err = cmd.Print(out, document, func(w io.Writer) { writePublicStatus(w, st) })
	if st.FrozenReason != nil {
		err = errors.Join(err, errFrozen(cli.Printable(*st.FrozenReason)))
	}
	return err
}

// writeStatus prints the status for people.
func writeStatus(w io.Writer, rows []statusRow) {
	if len(rows) == 0 {
		fmt.Fprintln(w, "no program has run with this registry yet: start the programs, or check postgres.url")
		return
	}
	fmt.Fprintln(w, "PROGRAM\tINSTANCE\tAGE\tSTATE\t")
	for _, r := range withoutEnded(rows) {
		var st registry.ProgramStatus
		state := "unreadable"
		if json.Unmarshal(r.Status, &st) == nil {
			state = st.State
		}
		if !r.Known {
			state = "unknown (last: " + state + ")"
		}
		cli.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Program, r.Instance, time.Duration(r.AgeMs)*time.Millisecond, state,
			details(r))
	}
	for _, r := range rows {
		if r.Program == registry.Ingest && r.Known {
			writeChain(w, r.Instance, r.Status)
		}
	}
	writeServed(w, rows)
	writeVaultWarnings(w, rows)
	deliveries := deliveriesOf(rows)
	cli.Section(w, slices.Sorted(maps.Keys(deliveries)), "DELIVERIES\t", func(state string) []any {
		n, more := deliveries[state], ""
		if n == dispatch.GivenUpCounted && (state == registry.Failed || state == registry.NoEndpoint) { // counted no further
			more = " or more"
		}
		return []any{state, fmt.Sprint(n) + more}
	})
}

// deliveriesOf returns how many deliveries are in each state but delivered, as a dispatcher measured last: empty if
// none runs. To count them here would read all deliveries, which are kept forever.
func deliveriesOf(rows []statusRow) map[string]int64 {
	newest := dispatch.Status{Deliveries: map[string]int64{}}
	for _, r := range rows {
		var st dispatch.Status
		if r.Program == registry.Dispatch && r.Known && json.Unmarshal(r.Status, &st) == nil &&
			st.MeasuredAt.After(newest.MeasuredAt) {
			newest = st
		}
	}
	return newest.Deliveries
}

// served is the state from which an instance of serve responds, and its distance from the head.
type served struct {
	Generation   int32      `json:"generation"`
	IndexedBlock uint64     `json:"indexedBlock"`
	IndexedAt    *time.Time `json:"indexedAt"`
	Behind       *uint64    // nil while no ingest reports the head
	BehindFor    *uint64
}

// servedBy compares the state of an instance of serve with the head that ingest reports; false if the instance serves
// nothing.
func servedBy(r statusRow, ingest *registry.ProgramStatus) (s served, ok bool) {
	if r.Program != registry.Serve || !r.Known || json.Unmarshal(r.Status, &s) != nil || s.Generation == 0 {
		return s, false
	}
	if ingest == nil || ingest.LagBlocks == nil || ingest.HeadBlock == 0 {
		return s, true
	}
	behind := ingest.HeadBlock - min(ingest.HeadBlock, s.IndexedBlock)
	s.Behind = &behind
	if s.IndexedAt != nil && ingest.HeadTime > 0 {
		at := uint64(s.IndexedAt.Unix())
		apart := ingest.HeadTime - min(ingest.HeadTime, at)
		s.BehindFor = &apart
	}
	return s, true
}

// ingestOf returns the state of the active ingest; nil if there is none.
func ingestOf(rows []statusRow) *registry.ProgramStatus {
	for _, r := range rows {
		var st registry.ProgramStatus
		if r.Program == registry.Ingest && r.Known && json.Unmarshal(r.Status, &st) == nil &&
			st.State != registry.StandingBy {
			return &st
		}
	}
	return nil
}

// writeServed prints the block from which each instance of serve responds.
func writeServed(w io.Writer, rows []statusRow) {
	ingest := ingestOf(rows)
	serving := slices.DeleteFunc(slices.Clone(rows), func(r statusRow) bool { _, ok := servedBy(r, ingest); return !ok })
	cli.Section(w, serving, "SERVED BY\tGENERATION\tBLOCK\t", func(r statusRow) []any {
		s, _ := servedBy(r, ingest)
		return []any{r.Instance, s.Generation, fmt.Sprint(s.IndexedBlock) + lag(s.Behind, s.BehindFor)}
	})
}

// writeVaultWarnings prints the programs' warnings about vaults.
func writeVaultWarnings(w io.Writer, rows []statusRow) {
	var warnings []registry.VaultWarning
	for _, r := range rows {
		var st registry.ProgramStatus
		if r.Known && json.Unmarshal(r.Status, &st) == nil {
			warnings = append(warnings, st.VaultWarnings...)
		}
	}
	cli.Section(w, warnings, "VAULT\tWARNING", func(v registry.VaultWarning) []any { return []any{v.Address, v.Warning} })
}

// details are the other things that project, serve and dispatch report. ingest has a separate section, and so has the
// state from which serve responds.
func details(r statusRow) string {
	var st struct {
		Generation           int32
		Seq                  *uint64
		Built                *bool `json:"derived"`
		Lag                  *int64
		RecordsPerSecond     float64
		ETASeconds           *uint64
		Listen               string
		Intake               bool
		LagRecords           *int64
		Lanes                *int
		OldestPendingSeconds float64
		OldestParkedSeconds  float64
		OpenBreakers         int64
		Reason               string
	}
	if r.Program == registry.Ingest || json.Unmarshal(r.Status, &st) != nil {
		return ""
	}
	var words []string
	say := func(when bool, format string, args ...any) {
		if when {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	say(st.Listen != "", "on %s", st.Listen)
	if r.Program != registry.Serve {
		say(st.Generation > 0, "generation %d", st.Generation)
		if st.Seq != nil {
			say(true, "seq %d", *st.Seq)
		}
	}
	say(st.Built != nil && !*st.Built, "lists not built")
	if st.Lag != nil {
		say(true, "%s left", printable.Count(*st.Lag, "record"))
	}
	say(st.RecordsPerSecond > 0, "%.1f records/s", st.RecordsPerSecond)
	say(st.ETASeconds != nil, "%s left", console.Left(st.ETASeconds))
	say(st.Intake, "reads the referral topics")
	if st.LagRecords != nil {
		say(st.Intake || *st.LagRecords > 0, "%s left", printable.Count(*st.LagRecords, "referral"))
	}
	if st.Lanes != nil {
		say(true, "sends to %s", printable.Count(*st.Lanes, "partner"))
	}
	due := func(seconds float64) time.Duration { return time.Duration(seconds) * time.Second }
	say(st.OldestPendingSeconds >= 1, "oldest pending delivery due for %s", due(st.OldestPendingSeconds))
	say(st.OldestParkedSeconds >= 1, "oldest parked delivery due for %s", due(st.OldestParkedSeconds))
	say(st.OpenBreakers > 0, "open breakers: %d", st.OpenBreakers)
	say(st.Reason != "", "%s", st.Reason)
	return strings.Join(words, ", ")
}

// endedAfter is the age at which a row without a heartbeat is that of an instance that ended, if another instance of
// the program is running. Until then it may have hung.
const endedAfter = time.Minute

// withoutEnded leaves out the instances that ended and were replaced.
func withoutEnded(rows []statusRow) []statusRow {
	running := map[string]bool{}
	for _, r := range rows {
		running[r.Program] = running[r.Program] || r.Known
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r statusRow) bool {
		return running[r.Program] && r.AgeMs > endedAfter.Milliseconds()
	})
}

// writeChain prints how far the chain is indexed, and the state of its endpoints.
func writeChain(w io.Writer, instance string, raw json.RawMessage) {
	var st registry.ProgramStatus
	if json.Unmarshal(raw, &st) != nil {
		return
	}
	cli.Fprintf(w, "\nCHAIN, by ingest %s\t\n", instance)
	if st.State != registry.StandingBy { // a standby does not read the chain
		cli.Fprintf(w, "head\tblock %d\nindexed\tblock %d%s\nfinal\tblock %d\n", st.HeadBlock, st.IndexedBlock,
			lag(st.LagBlocks, st.LagSeconds), st.FinalBlock)
	}
	if b := st.Backfill; b != nil {
		cli.Fprintf(w, "backfill\t%s\n", console.BackfillText(b, st.ETASeconds))
	}
	if st.ProvenTo > 0 {
		cli.Fprintf(w, "proven\tup to block %d\n", st.ProvenTo)
	}
	if st.Disproven != "" {
		cli.Fprintf(w, "DISPROVEN\t%s\n", st.Disproven)
	}
	if st.LogsWithoutData > 0 {
		fmt.Fprintf(w, "without data\t%s, whose data no record holds: `navlog verify` lists them\n",
			printable.Count(st.LogsWithoutData, "log"))
	}
	if len(st.Calls) > 0 {
		cli.Fprintf(w, "spent\t%s, %s (%s)\n", console.Spent(st.Calls),
			printable.Count(registry.Spent(st.Calls).Bytes, "byte"), console.ByMethod(st.Calls))
	}
	if st.Reason != "" {
		cli.Fprintf(w, "%s\t%s\n", st.State, st.Reason)
	}
	if st.Warning != "" {
		cli.Fprintf(w, "warning\t%s\n", st.Warning)
	}
	cli.Section(w, st.Endpoints, "ENDPOINT\tSTATE\tLATENCY\tHEAD\tCALLS\tUNITS\tLAST ERROR",
		func(e registry.EndpointStatus) []any {
			return []any{e.Name, endpointState(e), milliseconds(e.LatencyMs), orDash(int64(e.HeadBlock)), e.Calls, e.Units,
				lastError(e)}
		})
}

func lag[N int | uint64](blocks, seconds *N) string {
	if blocks == nil {
		return ""
	}
	if seconds == nil {
		return fmt.Sprintf(" (%s behind)", printable.Count(*blocks, "block"))
	}
	return fmt.Sprintf(" (%s, %s behind)", printable.Count(*blocks, "block"), time.Duration(*seconds)*time.Second)
}

func endpointState(e registry.EndpointStatus) string {
	state := e.State
	if e.LimitedUntil != nil {
		state += " until " + e.LimitedUntil.UTC().Format(time.TimeOnly)
	}
	if e.InUse {
		state += ", in use"
	}
	if e.Subscribed {
		state += ", announces blocks"
	}
	return state
}

func lastError(e registry.EndpointStatus) string {
	if e.LastErrorAt == nil {
		return e.LastError
	}
	return fmt.Sprintf("%s: %s", e.LastErrorAt.UTC().Format(time.DateTime), e.LastError)
}

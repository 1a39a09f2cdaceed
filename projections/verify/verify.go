package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Options configure how much Verify compares.
type Options struct {
	// Sample n compares one in n users, requests and partners with the oracle, and one in n blocks and ranges of
	// BatchBlocks blocks with the chain, chosen at random each time; 0 and 1 compare all. What was not chosen is not
	// proven. Events and the definitions are always compared completely.
	Sample uint64
	// Node is the URL of a node of the chain; empty: the log is not compared with the chain.
	Node string
	// RequestsPerSecond limits the requests to the node; 0 for no limit. Requests by other programs are not counted.
	RequestsPerSecond float64
	// BatchBlocks is the largest range of blocks in one request to the node; 0 for 2000. If the node rejects it,
	// shorter ranges are used.
	BatchBlocks uint64
	// Progress is called often with what is being compared; it may be nil.
	Progress Progress

	patience time.Duration    // for one response of the node; 0 for nodeTimeout
	vaults   *mapping.Vaults  // how the generation maps the logs of vaults; nil: by the first vault records of the log
	has      []common.Address // vaults that the generation must have; others it may skip
}

// of sets what the registry has about a generation: the vault records when it was created, by which it maps logs, and
// the addresses of the vaults that it omits.
func (o *Options) of(id int32, vaults, without [][]byte) (err error) {
	if o.vaults, err = mapping.Decode(vaults); err != nil {
		return fmt.Errorf("generation %d: %w", id, err)
	}
	o.has = nil
	for _, encoded := range vaults {
		var v event.Vault
		if err := proto.Unmarshal(encoded, &v); err != nil {
			return fmt.Errorf("generation %d: %w", id, err)
		}
		if !slices.ContainsFunc(without, func(omitted []byte) bool { return bytes.Equal(omitted, v.GetAddress()) }) {
			o.has = append(o.has, common.BytesToAddress(v.GetAddress()))
		}
	}
	return nil
}

// Verify proves that the live generation is a fold of the log: it reads the log from its first record to the cursor
// of lists, folds it into plain maps, and compares. It also proves that the log equals a node's chain, as far as the
// log covers each vault. It runs beside live traffic and writes nothing, except that it marks a generation bad that
// lost or duplicated a row. Its memory grows with the length of the log, and shrinks with the sample if no node is
// used. An error means that it could not compare; the result is in the report.
func Verify(ctx context.Context, chainID uint64, kafka chainlog.Config, ch readmodel.Config, pool *pgxpool.Pool,
	options Options) (*Report, error) {
	live, err := db.New(pool).LiveGeneration(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errors.New("no generation is live: is `navlog project` running, or was a generation marked bad " +
			"(`navlog projection list`)?")
	}
	if err != nil {
		return nil, fmt.Errorf("read the live generation: %w", err)
	}
	v, err := verifierOf(chainID, kafka, ch, live.ID, live.Vaults, live.Without, options)
	if err != nil {
		return nil, err
	}
	defer v.close()
	if err := readmodel.Reach(ctx, v.conn); err != nil {
		return nil, err
	}
	whole := Check{Name: "tables: no row lost or doubled"}
	err = MarkIfBroken(ctx, pool, live.ID, Audit(options.Progress.Asked(ctx, whole.Name), v.conn))
	if broken := new(BrokenError); errors.As(err, &broken) {
		whole.Difference = err.Error()
	} else if err != nil {
		return nil, err
	}
	v.live = true
	if err := v.all(ctx, chainID, kafka); err != nil {
		return nil, err
	}
	if whole.Difference == "" {
		whole.Compared = v.report.Seq
	}
	v.report.Checks = slices.Insert(v.report.Checks, 0, whole)
	return v.report, nil
}

// Generation compares a generation, which need not be live, with the log: its lists may not be built yet, which the
// report states. vaults are the vault records that the registry has for it, and without the vaults that it omits.
func Generation(ctx context.Context, chainID uint64, kafka chainlog.Config, ch readmodel.Config, id int32,
	vaults, without [][]byte, options Options) (*Report, error) {
	v, err := verifierOf(chainID, kafka, ch, id, vaults, without, options)
	if err != nil {
		return nil, err
	}
	defer v.close()
	return v.report, v.all(ctx, chainID, kafka)
}

// verifierOf returns a verifier of a generation, which the caller must close.
func verifierOf(chainID uint64, kafka chainlog.Config, ch readmodel.Config, id int32, vaults, without [][]byte,
	options Options) (*verifier, error) {
	if err := options.of(id, vaults, without); err != nil {
		return nil, err
	}
	c, err := connect(ch, ch.Database(id))
	if err != nil {
		return nil, err
	}
	v := newVerifier(c, kafkaLog(chainID, kafka), options)
	v.report.Generation, v.report.Database = id, ch.Database(id)
	return v, nil
}

// readLog calls visit for the records after a position, up to a seq that the log has, in order.
type readLog func(ctx context.Context, after chainlog.Position, to uint64, visit func(chainlog.Entry) error) error

func kafkaLog(chainID uint64, kafka chainlog.Config) readLog {
	return func(ctx context.Context, after chainlog.Position, to uint64, visit func(chainlog.Entry) error) error {
		if after.Seq >= to {
			return nil
		}
		err := chainlog.ReadAfter(ctx, chainID, after, func(e chainlog.Entry) error {
			err := visit(e)
			if err == nil && e.GetSeq() >= to {
				err = errStop
			}
			return err
		}, kafka.Options()...)
		switch {
		case errors.Is(err, errStop):
			return nil
		case err == nil:
			return fmt.Errorf("%s ends before seq %d: restore it from a replica or a backup", chainlog.LogTopic(chainID), to)
		}
		return err
	}
}

type verifier struct {
	connections
	log     readLog
	report  *Report
	options Options
	sample  sample
	live    bool // the generation must have lists

	definitions *definitions

	fold   *oracle.Fold
	at     chainlog.Position // position of the fold's last record
	prints prints
}

func newVerifier(c connections, log readLog, options Options) *verifier {
	v := &verifier{connections: c, log: log, report: new(Report), options: options, sample: newSample(options.Sample),
		definitions: newDefinitions(c.session), fold: oracle.New(options.vaults)}
	if options.Node == "" { // the chain's totals need every log
		v.fold = oracle.Sampled(options.vaults, v.sample.includes)
	}
	return v
}

// connections are those of a comparison: a patient one to the database of a
// generation, and a session, in which the definitions run.
type connections struct{ conn, session driver.Conn }

func connect(ch readmodel.Config, database string) (c connections, err error) {
	if c.conn, err = ch.OpenPatient(database); err != nil {
		return c, err
	}
	if c.session, err = ch.OpenSession(database); err != nil {
		c.conn.Close()
	}
	return c, err
}

func (c connections) close() {
	c.session.Close()
	c.conn.Close()
}

// all compares the tables with the log and the log with the chain.
func (v *verifier) all(ctx context.Context, chainID uint64, kafka chainlog.Config) error {
	if err := v.tables(ctx); err != nil || v.options.Node == "" || v.broken() {
		return err
	}
	if err := chainlog.Settle(ctx, chainID, kafka.Options()...); err != nil {
		return err
	}
	cursor, err := chainlog.ReadCursor(ctx, chainID, kafka.Options()...)
	if err != nil {
		return err
	}
	if cursor.GetSeq() < v.fold.Seq() {
		return fmt.Errorf("%s is at seq %d, but the tables are at seq %d of %s: restore both topics from the same backup, "+
			"or compare nothing with the chain (--no-chain)",
			chainlog.CursorTopic(chainID), cursor.GetSeq(), v.fold.Seq(), chainlog.LogTopic(chainID))
	}
	if err := v.follow(ctx, cursor.GetSeq()); err != nil || v.broken() {
		return err
	}
	return againstChain(ctx, v.options, cursor, v.fold.Records(), v.fold.Vaults(), v.report)
}

// tables compares events and lists with the log.
func (v *verifier) tables(ctx context.Context) error {
	built, err := v.events(ctx)
	if err != nil || v.broken() { // lists cannot be equal to anything then
		return err
	}
	if !built {
		check := Check{Name: "lists: not built yet"}
		if v.live {
			check = Check{Name: "lists",
				Difference: "a live generation must have lists, and they have no cursor; run `navlog projection rebuild`"}
		}
		v.report.Checks = append(v.report.Checks, check)
		return nil
	}
	return v.lists(ctx)
}

// events compares events with the log, unless the log itself is broken. built reports whether lists exist.
func (v *verifier) events(ctx context.Context) (built bool, err error) {
	at, err := readmodel.ReadPosition(ctx, v.conn, "")
	if err != nil {
		return false, err
	}
	v.report.Seq, built = at.Seq, at.Built
	skipped, err := skippedBy(ctx, v.conn, v.report.Seq)
	if err != nil {
		return false, err
	}
	v.fold.Skip(skipped)
	v.report.Checks = []Check{{Name: "log: seq contiguous"}}
	v.report.Skipped = hexWithout(skipped.Vaults, nil)
	v.checkVaults(skipped.Vaults)
	if err := v.follow(ctx, v.report.Seq); err != nil {
		return false, err
	}
	if v.broken() {
		return built, nil
	}
	return built, v.againstLog(ctx)
}

// checkVaults checks that the generation skips no vault that the log had when it was created, except those that it
// omits. It skips the others because they joined later.
func (v *verifier) checkVaults(skipped []common.Address) {
	if len(v.options.has) == 0 {
		return
	}
	check := Check{Name: "events: vaults that must be there"}
	for _, vault := range v.options.has {
		if slices.Contains(skipped, vault) {
			check.Difference = fmt.Sprintf("the generation skips vault %s, which the log had when it was created", vault)
			break
		}
		check.Compared++
	}
	v.report.Checks = append(v.report.Checks, check)
}

// lists compares lists with their definitions, and with the fold of the log.
func (v *verifier) lists(ctx context.Context) error {
	checks, err := v.definitions.compare(ctx, v.conn, v.options.Progress)
	if err != nil {
		return err
	}
	v.report.Checks = append(v.report.Checks, checks...)
	return v.againstOracle(ctx)
}

// broken reports whether the log itself is broken.
func (v *verifier) broken() bool { return v.report.Checks[0].Difference != "" }

// brokenLog means that a record cannot be the next one in the log.
type brokenLog struct{ error }

// follow folds the log up to a seq that it has, and computes the fingerprints of the expected rows. A broken log is a
// difference, not an error.
func (v *verifier) follow(ctx context.Context, to uint64) error {
	if v.broken() || to <= v.fold.Seq() {
		return nil
	}
	check := &v.report.Checks[0]
	err := v.log(ctx, v.at, to, func(e chainlog.Entry) error {
		v.options.Progress.Report(check.Name, e.GetSeq(), to)
		if err := v.fold.Apply(e.Record); err != nil {
			return brokenLog{err}
		}
		if e.GetSeq() <= v.report.Seq {
			v.prints.add(e, v.fold)
		}
		v.at = chainlog.Position{Seq: e.GetSeq(), Offset: e.Offset}
		check.Compared++
		return nil
	})
	var broken brokenLog
	var corrupt *chainlog.CorruptError
	var hole *chainlog.HoleError
	if errors.As(err, &broken) || errors.As(err, &corrupt) || errors.As(err, &hole) {
		check.Difference = err.Error()
		return nil
	}
	return err
}

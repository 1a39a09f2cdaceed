package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/projections/fold"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Report is what Verify compared and found.
type Report struct {
	Generation int32  `json:"generation"`
	Database   string `json:"database"`
	// Seq at which the log and the tables were compared. The log and the chain are
	// compared at the seq of the newest cursor.
	Seq    uint64  `json:"seq"`
	Checks []Check `json:"checks"`
	// Quarantined is the live logs that are in no total, Impossible what the
	// chain says and cannot be. Both are facts about the chain, not faults of
	// the read model.
	Quarantined []uint64 `json:"quarantined"`
	Impossible  []string `json:"impossible"`
}

// Check is one comparison.
type Check struct {
	Name string `json:"name"`
	// Compared is how many things were equal, up to the first difference.
	Compared uint64 `json:"compared"`
	// Difference is the first one, in words; empty when there is none.
	Difference string `json:"difference,omitempty"`
}

// Err is nil when everything is equal, and names the first difference of each
// check otherwise.
func (r *Report) Err() error {
	var faults []error
	for _, c := range r.Checks {
		if c.Difference != "" {
			faults = append(faults, fmt.Errorf("%s: %s", c.Name, c.Difference))
		}
	}
	return errors.Join(faults...)
}

// String prints the report, a line for each thing.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "generation %d (%s) at seq %d\n", r.Generation, r.Database, r.Seq)
	for _, c := range r.Checks {
		state := "equal"
		if c.Difference != "" {
			state = "DIFFERENT: " + c.Difference
		}
		fmt.Fprintf(&b, "%-32s %10d  %s\n", c.Name, c.Compared, state)
	}
	fmt.Fprintf(&b, "%-32s %10d\n", "quarantined logs", len(r.Quarantined))
	for _, seq := range r.Quarantined {
		fmt.Fprintf(&b, "  seq %d\n", seq)
	}
	fmt.Fprintf(&b, "%-32s %10d\n", "logs that cannot be", len(r.Impossible))
	for _, what := range r.Impossible {
		fmt.Fprintf(&b, "  %s\n", what)
	}
	return b.String()
}

// VerifyOptions say how much Verify compares.
type VerifyOptions struct {
	// Sample of n compares one user, request, block and range of BatchBlocks blocks
	// in n, chosen anew each time, and everything that there are few of; 0 and 1
	// compare all. What was not chosen is not proven.
	Sample uint64
	// Node is the URL of a node of the chain; empty: the log is not compared
	// with the chain.
	Node string
	// RequestsPerSecond that the node is asked at most; 0 for no limit. Whatever
	// else asks the same node is not counted.
	RequestsPerSecond float64
	// BatchBlocks is the largest range of blocks that the node is asked for at once;
	// 0 for 2000. The node may refuse it, and is asked for less.
	BatchBlocks uint64

	patience time.Duration // for one answer of the node; 0 for nodeTimeout
}

// Verify proves that the live generation is a fold of the log: it reads the
// log from its first record to the seq that all tables have, folds it in plain
// maps, and compares; and that the log is what a node says of the chain, as far as
// it covers each vault. It runs beside live traffic and writes nothing, but that a
// generation which lost or doubled a row is marked bad. Its memory grows with the
// log's length, and shrinks with the sample where no node is asked. The error says
// that it could not compare; what it found is in the report.
func Verify(ctx context.Context, chainID uint64, kafka chainlog.Config, ch readmodel.Config, pool *pgxpool.Pool, options VerifyOptions) (*Report, error) {
	live, err := db.New(pool).LiveGeneration(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errors.New("no generation is live: is `navlog project` running, or was a generation marked bad (`navlog projection list`)?")
	}
	if err != nil {
		return nil, fmt.Errorf("read the live generation: %w", err)
	}
	conn, err := ch.OpenPatient()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	whole := Check{Name: "tables: no row lost or doubled"}
	err = prove(ctx, conn, pool, live.ID, ch.Database(live.ID))
	if broken := new(brokenError); errors.As(err, &broken) {
		whole.Difference = err.Error()
	} else if err != nil {
		return nil, err
	}
	report, err := verifyGeneration(ctx, chainID, kafka, conn, live.ID, ch.Database(live.ID), options)
	if err != nil {
		return nil, err
	}
	if whole.Difference == "" {
		whole.Compared = report.Seq
	}
	report.Checks = slices.Insert(report.Checks, 0, whole)
	return report, nil
}

// verifyGeneration compares a generation with the log. Its questions read whole
// tables: conn is to be a patient one.
func verifyGeneration(ctx context.Context, chainID uint64, kafka chainlog.Config, conn driver.Conn, id int32, database string, options VerifyOptions) (*Report, error) {
	v := &verifier{conn: conn, report: &Report{Generation: id, Database: database}, options: options, sample: newSample(options.Sample), span: rowsSpan}
	var err error
	if v.report.Seq, err = position(ctx, conn, database); err != nil {
		return nil, err
	}
	if err := v.readLog(ctx, chainID, kafka); err != nil {
		return nil, err
	}
	for _, table := range readmodel.Tables {
		if err := v.rows(ctx, table); err != nil {
			return nil, err
		}
	}
	if v.books == nil {
		return v.report, nil // the log itself is broken
	}
	v.report.Quarantined, v.report.Impossible = v.books.Quarantined, v.books.Impossible
	for _, c := range append(comparisons(v.books), v.prints.comparison()) {
		if err := v.compare(ctx, c, fold.Newest); err != nil {
			return nil, err
		}
	}
	return v.report, nil
}

type verifier struct {
	conn    driver.Conn
	report  *Report
	options VerifyOptions
	books   *fold.Books
	prints  prints
	sample  sample
	span    uint64 // of seqs whose rows are told apart at once
}

// readLog folds the log up to the report's seq, and compares it with the chain.
// A log that is broken is a difference, not an error.
func (v *verifier) readLog(ctx context.Context, chainID uint64, kafka chainlog.Config) error {
	check := Check{Name: "log: seq contiguous"}
	f := fold.New()
	if v.options.Node == "" { // the chain's totals need every log
		f = fold.Sampled(v.sample.keeps)
	}
	cursor, err := v.foldLog(ctx, chainID, kafka, f, &check)
	if err != nil {
		return err
	}
	v.report.Checks = append(v.report.Checks, check)
	if check.Difference != "" || v.options.Node == "" {
		return nil
	}
	return againstChain(ctx, v.options, cursor, f.Records(), v.report)
}

// foldLog makes the books at the report's seq and, for the chain, goes on to the
// seq of the newest cursor, which says how far the log goes for each vault there.
func (v *verifier) foldLog(ctx context.Context, chainID uint64, kafka chainlog.Config, f *fold.Fold, check *Check) (*event.Cursor, error) {
	reader, err := chainlog.NewReader(chainID, chainlog.Position{}, kafka.Options()...)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	if err := v.follow(ctx, reader, f, v.report.Seq, check); err != nil || check.Difference != "" {
		return nil, err
	}
	v.books = f.Books(fold.Newest)
	v.sample.thin(v.books)
	if v.options.Node == "" {
		return nil, nil
	}
	if err := chainlog.Settle(ctx, chainID, kafka.Options()...); err != nil {
		return nil, err
	}
	cursor, err := chainlog.ReadCursor(ctx, chainID, kafka.Options()...)
	if err != nil {
		return nil, err
	}
	if cursor.GetSeq() < v.report.Seq {
		return nil, fmt.Errorf("%s is at seq %d, but the tables are at seq %d of %s: restore both topics from the same backup, or compare nothing with the chain (--no-chain)",
			chainlog.CursorTopic(chainID), cursor.GetSeq(), v.report.Seq, chainlog.LogTopic(chainID))
	}
	return cursor, v.follow(ctx, reader, f, cursor.GetSeq(), check)
}

// follow reads the log into f up to a seq that is in it, and takes the fingerprints
// of what the tables have of it.
func (v *verifier) follow(ctx context.Context, reader *chainlog.Reader, f *fold.Fold, to uint64, check *Check) error {
	for f.Seq() < to {
		entries, err := reader.Poll(ctx, int(min(10_000, to-f.Seq())))
		if permanent(err) {
			check.Difference = err.Error()
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := f.Apply(e.Record); err != nil {
				check.Difference = err.Error()
				return nil
			}
			if e.GetSeq() <= v.report.Seq {
				v.prints.add(e.Record, e.Value)
			}
			check.Compared++
		}
	}
	return nil
}

// rowsSpan is the seqs whose rows are told apart at once: at most 6 rows each, of
// 8 bytes in a set of the engine's, which stays far below its limit.
const rowsSpan = 4 << 20

// rows checks that no row is doubled, and that records has one for each seq.
func (v *verifier) rows(ctx context.Context, table string) error {
	check := Check{Name: table + ": rows unique"}
	var count, names uint64
	for after := uint64(0); after < v.report.Seq; after += v.span {
		n, unique, err := v.rowsOf(ctx, table, after, min(after+v.span, v.report.Seq))
		if err != nil {
			return err
		}
		count, names = count+n, names+unique
	}
	check.Compared = names
	if count != names {
		check.Difference = fmt.Sprintf("%d rows, %d of them different", count, names)
	}
	if table == "records" && names != v.report.Seq {
		check.Difference = fmt.Sprintf("%d rows up to seq %d", names, v.report.Seq)
	}
	v.report.Checks = append(v.report.Checks, check)
	return nil
}

// rowsOf counts the rows of a table in a range of seqs, and the names that they have.
func (v *verifier) rowsOf(ctx context.Context, table string, after, to uint64) (count, names uint64, err error) {
	ctx = clickhouse.Context(ctx, clickhouse.WithParameters(clickhouse.Parameters{"after": fmt.Sprint(after), "to": fmt.Sprint(to)}))
	if err := v.conn.QueryRow(ctx, v.question("verify_rows", table)).Scan(&count, &names); err != nil {
		return 0, 0, fmt.Errorf("count the rows of %s.%s from seq %d to %d: %w", v.report.Database, table, after+1, to, err)
	}
	return count, names, nil
}

func (v *verifier) question(name, table string) string {
	return strings.ReplaceAll(v.sample.question(name, v.report.Database), "{table}", table)
}

func (v *verifier) parameters(ctx context.Context, block uint64) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithParameters(clickhouse.Parameters{
		"seq": fmt.Sprint(v.report.Seq), "block": fmt.Sprint(block)}))
}

// compare reads the lines of a question and compares them with the fold's.
func (v *verifier) compare(ctx context.Context, c comparison, block uint64) error {
	check := Check{Name: c.name}
	rows, err := v.conn.Query(v.parameters(ctx, block), v.question(c.question, ""))
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	defer rows.Close()
	for rows.Next() && check.Difference == "" {
		line, err := scanLine(rows)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		switch n := int(check.Compared); {
		case n >= len(c.want):
			check.Difference = fmt.Sprintf("the table has %q and the log has nothing more", line)
		case line != c.want[n]:
			check.Difference = fmt.Sprintf("the table has %q where the log gives %q", line, c.want[n])
		default:
			check.Compared++
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	if n := int(check.Compared); check.Difference == "" && n < len(c.want) {
		check.Difference = fmt.Sprintf("the table lacks %q", c.want[n])
	}
	v.report.Checks = append(v.report.Checks, check)
	return nil
}

// scanLine prints a row, its values apart by a space.
func scanLine(rows driver.Rows) (string, error) {
	values := make([]any, len(rows.ColumnTypes()))
	for i, t := range rows.ColumnTypes() {
		switch t.DatabaseTypeName() {
		case "String":
			values[i] = new(string)
		case "Int64":
			values[i] = new(int64)
		case "UInt32":
			values[i] = new(uint32)
		case "UInt64":
			values[i] = new(uint64)
		default:
			return "", fmt.Errorf("column %s has type %s", t.Name(), t.DatabaseTypeName())
		}
	}
	if err := rows.Scan(values...); err != nil {
		return "", err
	}
	words := make([]string, len(values))
	for i, value := range values {
		switch value := value.(type) {
		case *string:
			words[i] = *value
		case *int64:
			words[i] = fmt.Sprint(*value)
		case *uint32:
			words[i] = fmt.Sprint(*value)
		case *uint64:
			words[i] = fmt.Sprint(*value)
		}
	}
	return strings.Join(words, " "), nil
}

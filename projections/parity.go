package projections

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/navlog/navlog/projections/fold"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Parity is the comparison of two generations of one log at a seq that both have.
type Parity struct {
	Live int32 `json:"live"`
	New  int32 `json:"new"`
	// Seq up to which both were compared.
	Seq uint64 `json:"seq"`
	// Checks are the rows of all tables and the totals of vaults and partners.
	// Where the rows differ there are also those of users and requests, which
	// say what the difference comes to.
	Checks []Check `json:"checks"`
	// FirstSeq is the lowest record of the log whose rows differ, 0 when none
	// does, and FirstRecord is what that record says.
	FirstSeq    uint64 `json:"firstSeq,omitempty"`
	FirstRecord string `json:"firstRecord,omitempty"`
	// Events is what each generation says of that record, and of what its users
	// and requests did up to there, newest first, at most 20 lines of each.
	Events []string `json:"events,omitempty"`
}

// Err is nil when the generations are equal, and names the first difference of
// each check otherwise.
func (p *Parity) Err() error {
	var faults []error
	for _, c := range p.Checks {
		if c.Difference != "" {
			faults = append(faults, fmt.Errorf("%s: %s", c.Name, c.Difference))
		}
	}
	return errors.Join(faults...)
}

// String prints the report, a line for each check.
func (p *Parity) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "generation %d (live) and generation %d at seq %d\n", p.Live, p.New, p.Seq)
	for _, c := range p.Checks {
		state := "equal"
		if c.Difference != "" {
			state = "DIFFERENT: " + c.Difference
		}
		fmt.Fprintf(&b, "%-32s %10d  %s\n", c.Name, c.Compared, state)
	}
	if p.FirstSeq > 0 {
		fmt.Fprintf(&b, "first difference: seq %d, %s\n", p.FirstSeq, p.FirstRecord)
	}
	for _, e := range p.Events {
		fmt.Fprintf(&b, "  %s\n", e)
	}
	return b.String()
}

// side is one of the two generations that are compared.
type side struct {
	id       int32
	database string
}

// compareGenerations compares two generations at the highest seq that both
// have in every table. Both may be written meanwhile.
func compareGenerations(ctx context.Context, conn driver.Conn, live, fresh side) (*Parity, error) {
	c := &comparer{conn: conn, sides: [2]side{live, fresh}, report: &Parity{Live: live.id, New: fresh.id, Seq: math.MaxUint64}}
	for _, s := range c.sides {
		seq, err := position(ctx, conn, s.database)
		if err != nil {
			return nil, err
		}
		c.report.Seq = min(c.report.Seq, seq)
	}
	for _, table := range readmodel.Tables {
		if err := c.rows(ctx, table); err != nil {
			return nil, err
		}
	}
	for _, lines := range []struct {
		name, question string
		long           bool
	}{
		{"totals by vault", "parity_vaults", false},
		{"totals by partner", "verify_partners", false},
		{"queue by vault", "verify_queue", false},
		{"quarantined logs", "verify_records", false},
		{"totals by vault and user", "verify_flows", true},
		{"totals by user", "verify_users", true},
		{"states of requests", "verify_requests", true},
	} {
		if lines.long && c.report.Err() == nil {
			continue // of equal rows every sum is equal: these would only take as long again
		}
		if err := c.lines(ctx, lines.name, lines.question); err != nil {
			return nil, err
		}
	}
	return c.report, c.tell(ctx)
}

// position is the seq up to which every table of a generation is written.
func position(ctx context.Context, conn driver.Conn, database string) (uint64, error) {
	lowest := uint64(math.MaxUint64)
	for _, table := range readmodel.Tables {
		seq, err := readmodel.LastSeq(ctx, conn, database, table)
		if err != nil {
			return 0, err
		}
		lowest = min(lowest, seq)
	}
	return lowest, nil
}

type comparer struct {
	conn   driver.Conn
	sides  [2]side
	report *Parity
}

// fingerprint is the number of rows of a range of seqs, and the sum of their hashes.
type fingerprint struct{ rows, hash uint64 }

func (c *comparer) fingerprints(ctx context.Context, table string, from, to uint64) (both [2]fingerprint, err error) {
	ctx = clickhouse.Context(ctx, clickhouse.WithParameters(clickhouse.Parameters{"from": fmt.Sprint(from), "seq": fmt.Sprint(to)}))
	for i, s := range c.sides {
		ask := strings.ReplaceAll(question("parity_rows", s.database), "{table}", table)
		if err := c.conn.QueryRow(ctx, ask).Scan(&both[i].rows, &both[i].hash); err != nil {
			return both, fmt.Errorf("compare the rows of %s.%s: %w", s.database, table, err)
		}
	}
	return both, nil
}

// rows compares all rows of a table, and finds the first seq that differs.
func (c *comparer) rows(ctx context.Context, table string) error {
	both, err := c.fingerprints(ctx, table, 0, c.report.Seq)
	if err != nil {
		return err
	}
	check := Check{Name: table + ": rows", Compared: both[0].rows}
	if both[0] != both[1] {
		first, err := c.bisect(ctx, table)
		if err != nil {
			return err
		}
		check.Difference = fmt.Sprintf("generation %d has %d rows and generation %d has %d, the first difference is in the rows of seq %d",
			c.sides[0].id, both[0].rows, c.sides[1].id, both[1].rows, first)
		if c.report.FirstSeq == 0 || first < c.report.FirstSeq {
			c.report.FirstSeq = first
		}
	}
	c.report.Checks = append(c.report.Checks, check)
	return nil
}

// bisect finds the lowest seq whose rows differ: all before after are equal,
// and those up to last are not.
func (c *comparer) bisect(ctx context.Context, table string) (uint64, error) {
	after, last := uint64(0), c.report.Seq
	for last-after > 1 {
		middle := after + (last-after)/2
		both, err := c.fingerprints(ctx, table, after, middle)
		if err != nil {
			return 0, err
		}
		if both[0] == both[1] {
			after = middle
		} else {
			last = middle
		}
	}
	return last, nil
}

// lines compares the answers to a question: their fingerprints, and line by
// line where those differ.
func (c *comparer) lines(ctx context.Context, name, ask string) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithParameters(clickhouse.Parameters{
		"seq": fmt.Sprint(c.report.Seq), "block": fmt.Sprint(uint64(fold.Newest))}))
	check := Check{Name: name}
	var prints [2]fingerprint
	for i, s := range c.sides {
		whole := "SELECT count(), sum(cityHash64(*)) FROM (\n" + question(ask, s.database) + ")"
		if err := c.conn.QueryRow(ctx, whole).Scan(&prints[i].rows, &prints[i].hash); err != nil {
			return fmt.Errorf("%s of %s: %w", name, s.database, err)
		}
	}
	if prints[0] == prints[1] {
		check.Compared = prints[0].rows
		c.report.Checks = append(c.report.Checks, check)
		return nil
	}
	var answers [2]driver.Rows
	for i, s := range c.sides {
		rows, err := c.conn.Query(ctx, question(ask, s.database))
		if err != nil {
			return fmt.Errorf("%s of %s: %w", name, s.database, err)
		}
		defer rows.Close()
		answers[i] = rows
	}
	for {
		var found [2]string
		var more [2]bool
		for i, rows := range answers {
			var err error
			if more[i] = rows.Next(); more[i] {
				found[i], err = scanLine(rows)
			} else {
				found[i], err = "nothing more", rows.Err()
			}
			if err != nil {
				return fmt.Errorf("%s of %s: %w", name, c.sides[i].database, err)
			}
		}
		if found != [2]string{found[0], found[0]} {
			check.Difference = fmt.Sprintf("generation %d has %q, generation %d has %q", c.sides[0].id, found[0], c.sides[1].id, found[1])
		}
		if check.Difference != "" || !more[0] {
			break
		}
		check.Compared++
	}
	c.report.Checks = append(c.report.Checks, check)
	return nil
}

// tell adds what the log says at the first seq that differs.
func (c *comparer) tell(ctx context.Context) error {
	if c.report.FirstSeq == 0 {
		return nil
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithParameters(clickhouse.Parameters{"seq": fmt.Sprint(c.report.FirstSeq)}))
	rows, err := c.conn.Query(ctx, question("parity_record", c.sides[0].database))
	if err != nil {
		return fmt.Errorf("read the record of seq %d: %w", c.report.FirstSeq, err)
	}
	defer rows.Close()
	for rows.Next() && c.report.FirstRecord == "" {
		if c.report.FirstRecord, err = scanLine(rows); err != nil {
			return fmt.Errorf("read the record of seq %d: %w", c.report.FirstSeq, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the record of seq %d: %w", c.report.FirstSeq, err)
	}
	for _, s := range c.sides {
		if err := c.events(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// events adds the rows that a generation has of the first seq that differs,
// and which logs of the same users came before.
func (c *comparer) events(ctx context.Context, s side) error {
	rows, err := c.conn.Query(ctx, question("parity_events", s.database))
	if err != nil {
		return fmt.Errorf("read the events of seq %d from %s: %w", c.report.FirstSeq, s.database, err)
	}
	defer rows.Close()
	for rows.Next() {
		line, err := scanLine(rows)
		if err != nil {
			return fmt.Errorf("read the events of seq %d from %s: %w", c.report.FirstSeq, s.database, err)
		}
		c.report.Events = append(c.report.Events, fmt.Sprintf("generation %d: %s", s.id, line))
	}
	return rows.Err()
}

package verify

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/readmodel"
)

// Side is one of two generations that are compared: its number, and a patient
// connection to its database.
type Side struct {
	ID   int32
	Conn driver.Conn
}

// Parity is the comparison of two generations of one log at a seq that both have.
type Parity struct {
	Live int32 `json:"live"`
	New  int32 `json:"new"`
	// Seq up to which the spine and the facts of both were compared.
	Seq uint64 `json:"seq"`
	// Checks are the rows of the spine and of the facts, totals, which say what a
	// difference comes to, and each generation's derived tables by their definition.
	Checks []Check `json:"checks"`
	// FirstSeq is the lowest record of the log whose rows differ, 0 when none
	// does, and FirstRecord is what that record says.
	FirstSeq    uint64 `json:"firstSeq,omitempty"`
	FirstRecord string `json:"firstRecord,omitempty"`
	// Events is what each generation says of that record, and of what its user
	// and request did up to there, newest first, at most 20 lines of each.
	Events []string `json:"events,omitempty"`
}

// Err is nil when the generations are equal, and names the first difference of
// each check otherwise.
func (p *Parity) Err() error { return faults(p.Checks) }

// String prints the report, a line for each check.
func (p *Parity) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "generation %d (live) and generation %d at seq %d\n", p.Live, p.New, p.Seq)
	for _, c := range p.Checks {
		b.WriteString(c.line())
	}
	if p.FirstSeq > 0 {
		fmt.Fprintf(&b, "first difference: seq %d, %s\n", p.FirstSeq, p.FirstRecord)
	}
	for _, e := range p.Events {
		fmt.Fprintf(&b, "  %s\n", e)
	}
	return b.String()
}

// Compare compares two generations at the highest seq that the spines of both
// have. Vaults that one of them passes over are left out of the facts of both: the
// other one may hold them. Both may be written meanwhile. progress hears what is compared;
// nil for nobody.
func Compare(ctx context.Context, live, fresh Side, progress Progress) (*Parity, error) {
	c := &comparer{sides: [2]Side{live, fresh}, progress: progress, report: &Parity{Live: live.ID, New: fresh.ID, Seq: math.MaxUint64}}
	for _, s := range c.sides {
		seq, err := readmodel.LastSeq(ctx, s.Conn, readmodel.Spine)
		if err != nil {
			return nil, err
		}
		c.report.Seq = min(c.report.Seq, seq)
	}
	var passed []common.Address
	for _, s := range c.sides {
		vaults, err := passedVaults(ctx, s.Conn, c.report.Seq)
		if err != nil {
			return nil, err
		}
		passed = append(passed, vaults...)
	}
	c.both = notOf(passed)
	for _, table := range appended {
		if err := c.rows(ctx, table); err != nil {
			return nil, err
		}
	}
	for _, lines := range []struct{ name, question string }{
		{"totals by vault", "totals_by_vault"},
		{"totals by partner", "totals_by_partner"},
		{"quarantined logs", "quarantined"},
	} {
		if err := c.lines(ctx, lines.name, lines.question); err != nil {
			return nil, err
		}
	}
	for _, s := range c.sides {
		if err := c.derived(ctx, s); err != nil {
			return nil, err
		}
	}
	return c.report, c.tell(ctx)
}

type comparer struct {
	sides  [2]Side
	both   string // the condition that a fact is of a vault that both have
	report *Parity

	progress Progress
}

func (c *comparer) fingerprints(ctx context.Context, table string, after, to uint64) (both [2]fingerprint, err error) {
	unsaid, where := "writer", c.both
	if table == readmodel.Spine {
		unsaid, where = "writer, passed", "1"
	}
	ask := question("rows", "{table}", table, "{unsaid}", unsaid, "{both}", where)
	for i, s := range c.sides {
		if err := s.Conn.QueryRow(readmodel.Parameters(ctx, numbers{"from": following(after), "to": to}), ask).Scan(&both[i].rows, &both[i].hash); err != nil {
			return both, fmt.Errorf("compare the rows of %s of generation %d: %w", table, s.ID, err)
		}
	}
	return both, nil
}

// rows compares all rows of a table, and finds the first seq that differs.
func (c *comparer) rows(ctx context.Context, table string) error {
	check := Check{Name: table + ": rows"}
	ctx = c.progress.Asked(ctx, check.Name)
	both, err := c.fingerprints(ctx, table, 0, c.report.Seq)
	if err != nil {
		return err
	}
	check.Compared = both[0].rows
	if both[0] != both[1] {
		first, err := c.bisect(ctx, table)
		if err != nil {
			return err
		}
		check.Difference = fmt.Sprintf("generation %d has %d rows and generation %d has %d, the first difference is in the rows of seq %d",
			c.sides[0].ID, both[0].rows, c.sides[1].ID, both[1].rows, first)
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

// lines compares the answers to a question, line by line.
func (c *comparer) lines(ctx context.Context, name, ask string) error {
	check := Check{Name: name}
	ctx = c.progress.Asked(ctx, name)
	var next [2]func() (string, error, bool)
	for i, s := range c.sides {
		n, stop := iter.Pull2(texts(ctx, s.Conn, question(ask, "{both}", c.both), numbers{"seq": c.report.Seq}))
		defer stop()
		next[i] = n
	}
	for {
		found := [2]string{"nothing more", "nothing more"}
		var more [2]bool
		for i := range c.sides {
			line, err, is := next[i]()
			if err != nil {
				return fmt.Errorf("%s of generation %d: %w", name, c.sides[i].ID, err)
			}
			if more[i] = is; is {
				found[i] = line
			}
		}
		if found[0] != found[1] {
			check.Difference = fmt.Sprintf("generation %d has %q, generation %d has %q", c.sides[0].ID, found[0], c.sides[1].ID, found[1])
		}
		if check.Difference != "" || !more[0] {
			break
		}
		check.Compared++
	}
	c.report.Checks = append(c.report.Checks, check)
	return nil
}

// derived compares the derived tables of a generation with their definitions:
// where the facts are equal, so are then the tables.
func (c *comparer) derived(ctx context.Context, s Side) error {
	there, err := derivedTables(ctx, s.Conn)
	if err != nil {
		return err
	}
	for _, table := range readmodel.Derived {
		check := Check{Name: table + ": not derived yet"}
		if there[table] {
			if check, err = defined(ctx, s.Conn, table, c.progress); err != nil {
				return fmt.Errorf("generation %d: %w", s.ID, err)
			}
		}
		check.Name = fmt.Sprintf("generation %d: %s", s.ID, check.Name)
		c.report.Checks = append(c.report.Checks, check)
	}
	return nil
}

// tell adds what the log says at the first seq that differs.
func (c *comparer) tell(ctx context.Context) error {
	if c.report.FirstSeq == 0 {
		return nil
	}
	at := numbers{"seq": c.report.FirstSeq}
	for _, s := range slices.Backward(c.sides[:]) { // the live one has the last word
		for text, err := range texts(ctx, s.Conn, question("record"), at) {
			if err != nil {
				return fmt.Errorf("read the record of seq %d: %w", c.report.FirstSeq, err)
			}
			c.report.FirstRecord = text
		}
	}
	for _, s := range c.sides {
		for line, err := range texts(ctx, s.Conn, question("events"), at) {
			if err != nil {
				return fmt.Errorf("read the events of seq %d from generation %d: %w", c.report.FirstSeq, s.ID, err)
			}
			c.report.Events = append(c.report.Events, fmt.Sprintf("generation %d: %s", s.ID, line))
		}
	}
	return nil
}

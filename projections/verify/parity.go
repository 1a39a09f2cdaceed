package verify

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/readmodel"
)

// side is one of two generations to compare.
type side struct {
	id int32
	connections
}

// Parity is the comparison of two generations of one log at a seq that both have reached.
type Parity struct {
	Live int32 `json:"live"`
	New  int32 `json:"new"`
	// Seq up to which events of both were compared.
	Seq uint64 `json:"seq"`
	// Checks compare the rows of events, and each generation's lists with their definitions. If events differ, they
	// also compare totals, which show the effect of the difference.
	Checks []Check `json:"checks"`
	// SkippedByLive and SkippedByNew are the vaults that only one of the generations skips. They are left out of the
	// totals, and are no difference: a new generation has vaults that joined later, and omits those that were removed.
	SkippedByLive []string `json:"skippedByLive,omitempty"`
	SkippedByNew  []string `json:"skippedByNew,omitempty"`
	// FirstSeq is the lowest record of the log whose rows differ, 0 if none does, and FirstRecord describes that record.
	FirstSeq    uint64 `json:"firstSeq,omitempty"`
	FirstRecord string `json:"firstRecord,omitempty"`
	// Events has each generation's rows of that record, and of earlier records of its user and request, newest first,
	// at most 20 lines of each.
	Events []string `json:"events,omitempty"`
}

// Err returns nil if the generations are equal, and otherwise names the first difference of each check.
func (p *Parity) Err() error { return faults(p.Checks) }

// String formats the report, with a line for each check.
func (p *Parity) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "generation %d (live) and generation %d at seq %d\n", p.Live, p.New, p.Seq)
	for _, c := range p.Checks {
		b.WriteString(c.line())
	}
	for i, vaults := range [][]string{p.SkippedByLive, p.SkippedByNew} {
		for _, vault := range vaults {
			fmt.Fprintf(&b, "only generation %d skips vault %s\n", []int32{p.Live, p.New}[i], vault)
		}
	}
	if p.FirstSeq > 0 {
		fmt.Fprintf(&b, "first difference: seq %d, %s\n", p.FirstSeq, p.FirstRecord)
	}
	for _, e := range p.Events {
		fmt.Fprintf(&b, "  %s\n", e)
	}
	return b.String()
}

// Compare compares two generations at the highest seq that both have reached. Vaults that one of them skips are left
// out of the totals of both, because the other one may count them. Both may be written at the same time. progress may
// be nil.
func Compare(ctx context.Context, ch readmodel.Config, live, fresh int32, progress Progress) (*Parity, error) {
	c := &comparer{progress: progress, report: &Parity{Live: live, New: fresh, Seq: math.MaxUint64}}
	var at [2]readmodel.Position
	for i, id := range []int32{live, fresh} {
		opened, err := connect(ch, ch.Database(id))
		if err != nil {
			return nil, err
		}
		defer opened.close()
		c.sides[i] = side{id, opened}
		if at[i], err = readmodel.ReadPosition(ctx, opened.conn, ""); err != nil {
			return nil, err
		}
		c.report.Seq = min(c.report.Seq, at[i].Seq)
	}
	var skipped [2]oracle.Skipped
	for i, s := range c.sides {
		var err error
		if skipped[i], err = skippedBy(ctx, s.conn, c.report.Seq); err != nil {
			return nil, err
		}
	}
	byLive, byNew := skipped[0].Vaults, skipped[1].Vaults
	c.report.SkippedByLive, c.report.SkippedByNew = hexWithout(byLive, byNew), hexWithout(byNew, byLive)
	c.both = excluding(slices.Concat(byLive, byNew))
	if err := c.rows(ctx); err != nil {
		return nil, err
	}
	equal := c.report.FirstSeq == 0
	if !equal {
		if err := c.totals(ctx); err != nil {
			return nil, err
		}
	}
	// Equal events of which the same ones are skipped define the same lists, so one computation serves both.
	shared := map[uint64]sums{}
	for i, s := range c.sides {
		d := newDefinitions(s.session)
		if equal && slices.Equal(byLive, byNew) && skipped[0].From == skipped[1].From {
			d.known = shared
		}
		if err := c.lists(ctx, s, at[i].Built, d); err != nil {
			return nil, err
		}
	}
	return c.report, c.describeFirst(ctx)
}

// totals compares what follows from the rows of events.
func (c *comparer) totals(ctx context.Context) error {
	for _, of := range []struct{ owner, text, where string }{
		{"vault", "lower(hex(vault))", "1"}, {"partner", "toString(partner)", "partner > 0"},
		{"user", "lower(hex(user))", "1"},
	} {
		ask := question("totals", "{both}", c.both, "{owner}", of.owner, "{text}", of.text, "{where}", of.where)
		if err := c.lines(ctx, "totals by "+of.owner, ask); err != nil {
			return err
		}
	}
	return c.lines(ctx, "quarantined logs", question("quarantined"))
}

type comparer struct {
	sides  [2]side
	both   string // condition that a row of events belongs to a vault that both have
	report *Parity

	progress Progress
}

func (c *comparer) fingerprints(ctx context.Context, after, to uint64) (both [2]fingerprint, err error) {
	for i, s := range c.sides {
		row := s.conn.QueryRow(readmodel.Parameters(ctx, numbers{"after": after, "to": to}), question("rows"))
		if err := row.Scan(&both[i].rows, &both[i].hash); err != nil {
			return both, fmt.Errorf("compare the rows of events of generation %d: %w", s.id, err)
		}
	}
	return both, nil
}

// rows compares all rows of events, and finds the first differing seq.
func (c *comparer) rows(ctx context.Context) error {
	check := Check{Name: "events: rows"}
	ctx = c.progress.Asked(ctx, check.Name)
	both, err := c.fingerprints(ctx, 0, c.report.Seq)
	if err != nil {
		return err
	}
	check.Compared = both[0].rows
	if both[0] != both[1] {
		if c.report.FirstSeq, err = c.bisect(ctx); err != nil {
			return err
		}
		check.Difference = fmt.Sprintf("generation %d has %d rows and generation %d has %d, the first difference is in "+
			"the rows of seq %d",
			c.sides[0].id, both[0].rows, c.sides[1].id, both[1].rows, c.report.FirstSeq)
	}
	c.report.Checks = append(c.report.Checks, check)
	return nil
}

// bisect finds the lowest seq whose rows differ: it narrows a range whose earlier rows are all equal.
func (c *comparer) bisect(ctx context.Context) (uint64, error) {
	after, last := uint64(0), c.report.Seq
	for last-after > 1 {
		middle := after + (last-after)/2
		both, err := c.fingerprints(ctx, after, middle)
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

// lines compares the results of a query, line by line.
func (c *comparer) lines(ctx context.Context, name, ask string) error {
	check := Check{Name: name}
	ctx = c.progress.Asked(ctx, name)
	var next [2]func() (string, error, bool)
	for i, s := range c.sides {
		n, stop := iter.Pull2(texts(ctx, s.conn, ask, numbers{"seq": c.report.Seq}))
		defer stop()
		next[i] = n
	}
	for {
		found := [2]string{"nothing more", "nothing more"}
		var more [2]bool
		for i := range c.sides {
			line, err, is := next[i]()
			if err != nil {
				return fmt.Errorf("%s of generation %d: %w", name, c.sides[i].id, err)
			}
			if more[i] = is; is {
				found[i] = line
			}
		}
		if found[0] != found[1] {
			check.Difference = fmt.Sprintf("generation %d has %q, generation %d has %q", c.sides[0].id, found[0], c.sides[1].id,
				found[1])
		}
		if check.Difference != "" || !more[0] {
			break
		}
		check.Compared++
	}
	c.report.Checks = append(c.report.Checks, check)
	return nil
}

// lists compares the lists of a generation with their definitions: if events are equal, the lists are then equal too.
func (c *comparer) lists(ctx context.Context, s side, built bool, d *definitions) error {
	name := func(check string) string { return fmt.Sprintf("generation %d: %s", s.id, check) }
	if !built {
		c.report.Checks = append(c.report.Checks, Check{Name: name("lists: not built yet")})
		return nil
	}
	checks, err := d.compare(ctx, s.conn, c.progress)
	if err != nil {
		return fmt.Errorf("generation %d: %w", s.id, err)
	}
	for _, check := range checks {
		check.Name = name(check.Name)
		c.report.Checks = append(c.report.Checks, check)
	}
	return nil
}

func (c *comparer) describeFirst(ctx context.Context) error {
	if c.report.FirstSeq == 0 {
		return nil
	}
	at := numbers{"seq": c.report.FirstSeq}
	for _, s := range slices.Backward(c.sides[:]) { // the live one last
		for text, err := range texts(ctx, s.conn, question("record"), at) {
			if err != nil {
				return fmt.Errorf("read the record of seq %d: %w", c.report.FirstSeq, err)
			}
			c.report.FirstRecord = text
		}
	}
	for _, s := range c.sides {
		for line, err := range texts(ctx, s.conn, question("history"), at) {
			if err != nil {
				return fmt.Errorf("read the events of seq %d from generation %d: %w", c.report.FirstSeq, s.id, err)
			}
			c.report.Events = append(c.report.Events, fmt.Sprintf("generation %d: %s", s.id, line))
		}
	}
	return nil
}

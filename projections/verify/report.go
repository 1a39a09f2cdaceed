package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Report is the result of Verify.
type Report struct {
	Generation int32  `json:"generation"`
	Database   string `json:"database"`
	// Seq at which the log was compared with events. Lists are compared as of their cursor, which may be a later seq
	// if the chain moves, and the log and the chain at the seq of ingest's newest cursor.
	Seq    uint64  `json:"seq"`
	Checks []Check `json:"checks"`
	// Skipped are the vaults that the generation skips: it omits them, or they joined after its lists were built. Their
	// records are compared, and expected in no list.
	Skipped []string `json:"skipped,omitempty"`
	// Quarantined are the live logs that are in no total, Impossible the logs of the chain that contradict the state.
	// Both are facts about the chain, not faults of the read model.
	Quarantined []uint64 `json:"quarantined"`
	Impossible  []string `json:"impossible"`
	// WithoutData are the live logs whose data no record contains: their length and hash are compared with the chain.
	// One of a known event is also quarantined.
	WithoutData []uint64 `json:"withoutData,omitempty"`
}

// Check is one comparison.
type Check struct {
	Name string `json:"name"`
	// Compared is the number of equal items: all of them, or those up to the first difference; 0 if unknown.
	Compared uint64 `json:"compared"`
	// Difference describes the first difference; empty if there is none.
	Difference string `json:"difference,omitempty"`
}

func (c Check) line() string {
	state := "equal"
	if c.Difference != "" {
		state = "DIFFERENT: " + c.Difference
	}
	return fmt.Sprintf("%-40s %10d  %s\n", c.Name, c.Compared, state)
}

// Err returns nil if everything is equal, and otherwise names the first difference of each check.
func (r *Report) Err() error { return faults(r.Checks) }

func faults(checks []Check) error {
	var all []error
	for _, c := range checks {
		if c.Difference != "" {
			all = append(all, fmt.Errorf("%s: %s", c.Name, c.Difference))
		}
	}
	return errors.Join(all...)
}

// String formats the report, with a line for each item.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "generation %d (%s) at seq %d\n", r.Generation, r.Database, r.Seq)
	for _, c := range r.Checks {
		b.WriteString(c.line())
	}
	for _, vault := range r.Skipped {
		fmt.Fprintf(&b, "skips vault %s: its records are in no list\n", vault)
	}
	fmt.Fprintf(&b, "%-40s %10d\n", "quarantined logs", len(r.Quarantined))
	for _, seq := range r.Quarantined {
		fmt.Fprintf(&b, "  seq %d\n", seq)
	}
	if len(r.WithoutData) > 0 {
		fmt.Fprintf(&b, "%-40s %10d\n", "logs without their data", len(r.WithoutData))
	}
	for _, seq := range r.WithoutData {
		fmt.Fprintf(&b, "  seq %d\n", seq)
	}
	fmt.Fprintf(&b, "%-40s %10d\n", "impossible logs", len(r.Impossible))
	for _, what := range r.Impossible {
		fmt.Fprintf(&b, "  %s\n", what)
	}
	return b.String()
}

// compareLines compares the lines of a table with those of the log, both in order.
func (c *Check) compareLines(table iter.Seq2[string, error], log iter.Seq[string]) error {
	next, stop := iter.Pull(log)
	defer stop()
	for line, err := range table {
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		want, more := next()
		switch {
		case !more:
			c.Difference = fmt.Sprintf("the table has %q, but the log has nothing more", line)
			return nil
		case line != want:
			c.Difference = fmt.Sprintf("the table has %q, but the log gives %q", line, want)
			return nil
		}
		c.Compared++
	}
	if want, more := next(); more {
		c.Difference = fmt.Sprintf("the table lacks %q", want)
	}
	return nil
}

// Progress is called with what is being compared, and how much of it is done: records, rows that ClickHouse has read,
// blocks, requests. of is 0 if the total is unknown. It is called often, by several goroutines, and must return at
// once.
type Progress func(what string, done, of uint64)

// Report calls p, unless it is nil.
func (p Progress) Report(what string, done, of uint64) {
	if p != nil {
		p(what, done, of)
	}
}

// Asked returns a context for ClickHouse queries that reports how many rows each query has read, of how many.
func (p Progress) Asked(ctx context.Context, what string) context.Context {
	if p == nil {
		return ctx
	}
	p(what, 0, 0)
	var mu sync.Mutex // the driver reports each query in a goroutine of its own, which may outlive the result
	var read, of uint64
	return clickhouse.Context(ctx, clickhouse.WithProgress(func(more *clickhouse.Progress) {
		mu.Lock()
		defer mu.Unlock()
		read, of = read+more.Rows, of+more.TotalRows // the engine reports increments
		p(what, read, max(read, of))
	}))
}

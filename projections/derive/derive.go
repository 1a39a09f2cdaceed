// Package derive says how a unit of the log changes the derived tables: what they
// held of the keys that it touches, and what they must hold after it.
//
//	touched keys ──▶ their live rows ──clip at the ancestor──▶ what was so before the unit ──fold──▶ what is so after it
//	                                                                                                     │
//	                          old rows that are no more (sign -1), new rows (sign 1) ◀── difference ─────┘
//
// A derived row says from which block on something is true, so what was so before
// a unit follows from the rows alone and no history is read: whatever began above
// the ancestor, the last block that the unit leaves as it was, is dropped, and
// whatever ended above it goes on. A reorganisation takes back every log above its
// ancestor and brings the new branch, so after the clip only its live records are
// folded, like those of any other unit. Sums over the newest block are the
// exception: they change by what is taken back, too.
//
// The tables have one definition each in SQL (readmodel.Definition), which builds
// them and proves them. What is here is held equal to it by a property test.
package derive

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Difference is what units change in a table.
type Difference[Row comparable] struct {
	Gone []Row // rows that were live and are no more
	Come []Row // rows that are live now
}

// between compares the live rows of some keys before and after.
func between[Row comparable](old, now map[Row]bool) (d Difference[Row]) {
	for row := range old {
		if !now[row] {
			d.Gone = append(d.Gone, row)
		}
	}
	for row := range now {
		if !old[row] {
			d.Come = append(d.Come, row)
		}
	}
	return d
}

// ancestor is the last block that none of the units changes.
func ancestor(units []decode.Unit) uint64 {
	lowest := readmodel.Never
	for i := range units {
		lowest = min(lowest, units[i].Ancestor())
	}
	return lowest
}

// table makes the external table of wanted keys.
func table(rows [][]any, columns ...func(*ext.Table) error) (*ext.Table, error) {
	t, err := ext.NewTable("wanted", columns...)
	for i := 0; err == nil && i < len(rows); i++ {
		err = t.Append(rows[i]...)
	}
	return t, err
}

// ask puts a question about wanted keys and gives each row to scan.
func ask(ctx context.Context, conn driver.Conn, question string, numbers map[string]uint64, wanted *ext.Table, scan func(driver.Rows) error) error {
	ctx = clickhouse.Context(readmodel.Parameters(ctx, numbers), clickhouse.WithExternalTable(wanted))
	rows, err := conn.Query(ctx, question)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// amountOf takes a number that ClickHouse has as Int256.
func amountOf(v *big.Int) (out decode.Amount) {
	out.SetFromBig(v)
	return out
}

func address(b []byte) common.Address { return common.BytesToAddress(b) }

func failed(table string, err error) error {
	return fmt.Errorf("read what %s holds of the keys of a unit: %w", table, err)
}

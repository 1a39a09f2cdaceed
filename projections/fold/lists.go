package fold

import (
	"context"
	"maps"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Lists returns how units that follow a cursor change lists, without their skipped records, in a generation that has
// some vaults. A unit that retracts must be the only one. The blocks of the others that are not skipped are not below
// the cursor's.
func Lists(ctx context.Context, conn driver.Conn, cursor readmodel.ListsCursor, units []decode.Unit, writer uint64,
	vaults []common.Address) (*Change, error) {
	c := newChange(vaults)
	c.Cursor, c.before, c.ancestor = cursor, cursor, cursor.Block
	c.Cursor.Seq, c.Cursor.Writer = units[len(units)-1].End(), writer
	if units[0].Rewrites {
		c.retracts, c.ancestor = true, units[0].Ancestor()
		c.Cursor.Rewrites++
	}
	for i := range units {
		c.collectKeys(&units[i])
	}
	if err := c.read(ctx, conn); err != nil {
		return nil, err
	}
	if c.retracts {
		c.clip(c.ancestor)
	}
	for i := range units {
		c.fold(&units[i])
	}
	if number, b := c.newest(); b != nil && (c.retracts || number >= cursor.Block) {
		// a skipped newest block may be recorded again
		c.Cursor.Block, c.Cursor.TS = number, b.ts
	} else if c.retracts && cursor.Block > c.ancestor {
		var err error
		if c.Cursor.Block, c.Cursor.TS, err = ancestorOf(ctx, conn, c.ancestor, cursor.Seq); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// collectKeys records the keys of lists that a unit may change.
func (c *Change) collectKeys(u *decode.Unit) {
	for f := range u.Facts.All() {
		if f.Skipped {
			continue
		}
		if f.Kind == readmodel.BlockRecord {
			c.blocks[f.Log.Block] = new(pair[block])
		}
		for i := range f.Effects {
			e := entryOf(f, i)
			c.addKeys(&e, f.Sign)
		}
	}
}

// Rows appends the rows of the change to rows of lists, those with sign -1 first.
func (c *Change) Rows(rows *readmodel.Rows[readmodel.ListRow]) {
	add := func(all ...readmodel.ListRow) {
		for i := range all {
			rows.Add(&all[i])
		}
	}
	if c.before.Seq > 0 {
		add(c.before.Rows(-1)...)
	}
	touched := map[readmodel.TouchedKey]bool{}
	c.difference(func(sign int8, row readmodel.ListRow) {
		row.Sign = sign
		add(row)
		for _, key := range row.Touches() {
			touched[key] = true
		}
	})
	add(c.touched(touched))
	add(c.Cursor.Rows(1)...)
}

// maxTouchedKeys is the maximum number of keys that a unit names. A unit that touches more names everything: a reader
// then drops its whole cache anyway, and the row stays small.
const maxTouchedKeys = 5000

func (c *Change) touched(keys map[readmodel.TouchedKey]bool) readmodel.ListRow {
	row := readmodel.ListRow{List: readmodel.TouchedList, Sign: 1, Seq: c.Cursor.Seq}
	row.Key.SetUint64(c.Cursor.Seq)
	if c.retracts { // the block below the lowest retracted record may itself not be recorded, and so be gone for now
		row.ID = min(c.ancestor, c.Cursor.Block) + 1
	}
	if len(keys) > maxTouchedKeys {
		keys = map[readmodel.TouchedKey]bool{readmodel.TouchedAll: true}
	}
	row.Touched = readmodel.JoinTouched(maps.Keys(keys))
	return row
}

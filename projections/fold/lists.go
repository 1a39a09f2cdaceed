package fold

import (
	"context"
	"maps"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Change is the change of lists by some units.
type Change struct {
	// Cursor is the cursor after the units.
	Cursor readmodel.ListsCursor
	// Impossible are the events of logs that contradict the state and change no request.
	Impossible []string

	state    *state
	before   readmodel.ListsCursor
	ancestor uint64 // of a unit that retracts
	retracts bool
}

// Batch contains units that follow a cursor.
type Batch struct {
	Units  []decode.Unit
	Writer uint64
	// Vaults are the vaults of the generation.
	Vaults []common.Address
}

// Lists returns how units change lists, without their skipped records. A unit that retracts must be the only one in the
// batch. The blocks of the others that are not skipped are not below the cursor's.
func Lists(ctx context.Context, conn driver.Conn, cursor readmodel.ListsCursor, batch Batch) (*Change, error) {
	c := &Change{Cursor: cursor, before: cursor, state: newState(batch.Vaults), ancestor: cursor.Block}
	c.Cursor.Seq, c.Cursor.Writer = batch.Units[len(batch.Units)-1].End(), batch.Writer
	for i := range batch.Units {
		if batch.Units[i].Rewrites {
			c.retracts, c.ancestor = true, batch.Units[i].Ancestor()
		}
	}
	if err := c.read(ctx, conn, batch.Units); err != nil {
		return nil, err
	}
	s := c.state
	if c.retracts {
		s.clip(c.ancestor)
		c.Cursor.Rewrites++
	}
	for i := range batch.Units {
		s.fold(&batch.Units[i])
	}
	c.Impossible = s.impossible
	if number, b := s.newest(); b != nil && (c.retracts || number >= cursor.Block) {
		// a skipped newest block may be recorded again
		c.Cursor.Block, c.Cursor.TS = number, b.ts
	} else if c.retracts && cursor.Block > c.ancestor {
		var err error
		if c.Cursor.Block, c.Cursor.TS, err = s.ancestorOf(ctx, conn, c.ancestor, cursor.Seq); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// read looks up the rows of lists for the keys that the units name.
func (c *Change) read(ctx context.Context, conn driver.Conn, units []decode.Unit) error {
	s := c.state
	for i := range units {
		for f := range units[i].Facts.All() {
			if f.Skipped {
				continue
			}
			if f.Kind == readmodel.BlockRecord {
				s.blocks[f.Log.Block] = new(pair[block])
			}
			for j := range f.Effects {
				e := entryOf(f, j)
				s.addKeys(&e, f.Sign)
			}
		}
	}
	if err := s.read(ctx, conn, c.ancestor, c.retracts); err != nil {
		return err
	}
	if err := s.readSwept(ctx, conn, c.ancestor); err != nil {
		return err
	}
	s.reindex()
	return s.readBlocks(ctx, conn, c.before.Block)
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
	c.state.difference(func(sign int8, row readmodel.ListRow) {
		row.Sign = sign
		add(row)
		for _, key := range row.Touches() {
			touched[key] = true
		}
	})
	add(c.touched(touched))
	add(c.Cursor.Rows(1)...)
}

// mostTouched is the maximum number of keys that a unit names. A unit that touches more names everything: a reader
// then drops its whole cache anyway, and the row stays small.
const mostTouched = 5000

func (c *Change) touched(keys map[readmodel.TouchedKey]bool) readmodel.ListRow {
	row := readmodel.ListRow{List: readmodel.TouchedList, Sign: 1, Seq: c.Cursor.Seq}
	row.Key.SetUint64(c.Cursor.Seq)
	if c.retracts { // the block below the lowest retracted record may itself not be recorded, and so be gone for now
		row.ID = min(c.ancestor, c.Cursor.Block) + 1
	}
	if len(keys) > mostTouched {
		keys = map[readmodel.TouchedKey]bool{readmodel.TouchedAll: true}
	}
	row.Touched = readmodel.JoinTouched(maps.Keys(keys))
	return row
}

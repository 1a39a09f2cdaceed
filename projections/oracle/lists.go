package oracle

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/readmodel/expect"
)

// Lists returns the expected rows of the table lists, in no order, without the list touched and the cursor.
func (f *Fold) Lists() []readmodel.ListRow {
	blocks := map[uint64]*event.Block{}
	for _, r := range f.Records() {
		if b := r.GetBlock(); b != nil && !f.Skips(r) {
			blocks[b.GetNumber()] = b
		}
	}
	logs, _ := f.logs()
	rows := OfLogs(logs)
	for number, b := range blocks {
		row := readmodel.ListRow{List: readmodel.Blocks, Block: number, Hash: common.BytesToHash(b.GetHash()),
			TS: seconds(b.GetTime())}
		row.Key.SetUint64(number)
		rows = append(rows, row)
	}
	return rows
}

// OfLogs returns the rows of lists for the effects of live logs, which must be in chain order.
func OfLogs(logs []Log) []readmodel.ListRow {
	effects := make([]readmodel.EventRow, len(logs))
	for i, l := range logs {
		effects[i] = readmodel.EventRow{Block: l.Block, LogIndex: l.Index, Sub: l.Sub, TS: seconds(l.Time), Vault: l.Vault,
			Tx: l.Tx}
		effect(l.Effect, &effects[i])
	}
	return expect.Lists(effects)
}

// Cursor returns the two rows of the cursor of lists, at the end of the fold. The time of a block that the generation
// skips is that of the newest one before it that it does not skip.
func (f *Fold) Cursor(writer uint64) []readmodel.ListRow {
	cursor := readmodel.ListRow{List: readmodel.CursorList, Seq: f.seq, Rewrites: f.rewrites, Writer: writer}
	var timed uint64
	for _, r := range f.Records() {
		b := r.GetBlock()
		cursor.Block = max(cursor.Block, b.GetNumber())
		if b != nil && !f.Skips(r) && b.GetNumber() >= timed {
			timed, cursor.TS = b.GetNumber(), seconds(b.GetTime())
		}
	}
	end := cursor
	end.List = readmodel.CursorEnd
	return []readmodel.ListRow{cursor, end}
}

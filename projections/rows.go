package projections

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"

	"github.com/navlog/navlog/schemas/readmodel"
)

// The rows of a batch are kept by column, each as ClickHouse's native format
// has it: the values one after the other, the lowest byte first. They are
// written there as the fold makes them and go from there to the engine, without
// a value of their own in between.

// layouts names the columns of each table in the order in which the fold writes
// them, with the bytes of a value; 0 for text. writer is added by the insert.
var layouts = map[string][]layout{
	"records": {{"seq", 8}, {"row", 1}, {"sign", 1}, {"retracts", 8}, {"kind", 1}, {"event", 1}, {"boundary", 1}, {"quarantined", 1},
		{"block", 8}, {"hash", 32}, {"ts", 4}, {"log_index", 4}, {"payload", 0}, {"vault", 20}, {"request_index", 8}, {"open", 1}, {"waiting", 1},
		{"estimate", 32}, {"expires_ts", 8}, {"vault_user", 1}, {"first_left", 4}, {"first_joined", 4}, {"deposited_left", 4},
		{"deposited_joined", 4}, {"withdrawn_left", 4}, {"withdrawn_joined", 4}},
	"deposits": {{"seq", 8}, {"row", 1}, {"sign", 1}, {"retracts", 8}, {"vault", 20}, {"deposit_id", 8}, {"user", 20}, {"sender", 20},
		{"partner", 4}, {"assets", 32}, {"shares", 32}, {"partner_user", 1}, {"block", 8}, {"ts", 4}, {"tx", 32}, {"log_index", 4}},
	"flows": {{"seq", 8}, {"row", 1}, {"sign", 1}, {"vault", 20}, {"user", 20}, {"deposits", 1}, {"deposited", 32}, {"requests", 1},
		{"estimated", 32}, {"withdrawn", 32}, {"vault_user", 1}, {"first_ts", 8}, {"block", 8}},
	"rankings": {{"seq", 8}, {"row", 1}, {"sign", 1}, {"list", 1}, {"bucket", 4}, {"key", 32}, {"user", 20},
		{"users", 1}, {"first", 8}, {"deposited", 32}, {"withdrawn", 32}},
	"requests": {{"seq", 8}, {"row", 1}, {"sign", 1}, {"retracts", 8}, {"vault", 20}, {"request_index", 8}, {"kind", 1}, {"user", 20},
		{"receiver", 20}, {"partner", 4}, {"shares", 32}, {"assets", 32}, {"estimate", 32}, {"expires_ts", 8}, {"open", 1}, {"waiting", 1},
		{"block", 8}, {"ts", 4}, {"tx", 32}, {"log_index", 4}},
	"navs": {{"seq", 8}, {"row", 1}, {"sign", 1}, {"retracts", 8}, {"vault", 20}, {"nav_per_share", 32}, {"total_assets", 32},
		{"total_supply", 32}, {"block", 8}, {"ts", 4}, {"tx", 32}, {"log_index", 4}},
	"sweeps": {{"seq", 8}, {"row", 1}, {"sign", 1}, {"retracts", 8}, {"vault", 20}, {"from_id", 8}, {"to_id", 8}, {"assets", 32},
		{"block", 8}, {"ts", 4}, {"tx", 32}, {"log_index", 4}},
}

type layout struct {
	name  string
	width int
}

// progressRow is the row number of a row that says nothing but its seq.
const progressRow = 255

// table is the rows of a batch for one table, in the order of seq. The values
// of a row are written one after the other, in the order of the layout.
type table struct {
	name   string
	layout []layout
	data   [][]byte   // by column, nil for text
	texts  [][]string // by column, nil for others
	seqs   []uint64
	next   int // column that the next value belongs to
}

func newTable(name string) table {
	l := layouts[name]
	return table{name: name, layout: l, data: make([][]byte, len(l)), texts: make([][]string, len(l))}
}

// row begins a row with the values that every table has.
func (t *table) row(seq uint64, row uint8, sign int8) {
	t.next = 0
	t.seqs = append(t.seqs, seq)
	t.u64(seq)
	t.u8(row)
	t.u8(uint8(sign))
}

func (t *table) u8(v uint8) {
	t.data[t.next] = append(t.data[t.next], v)
	t.next++
}

func (t *table) u32(v uint32) {
	t.data[t.next] = binary.LittleEndian.AppendUint32(t.data[t.next], v)
	t.next++
}

func (t *table) u64(v uint64) {
	t.data[t.next] = binary.LittleEndian.AppendUint64(t.data[t.next], v)
	t.next++
}

func (t *table) flag(v bool) {
	if v {
		t.u8(1)
	} else {
		t.u8(0)
	}
}

func (t *table) bytes(v []byte) {
	t.data[t.next] = append(t.data[t.next], v...)
	t.next++
}

func (t *table) amount(v *amount) {
	d := t.data[t.next]
	for _, word := range v {
		d = binary.LittleEndian.AppendUint64(d, word)
	}
	t.data[t.next] = d
	t.next++
}

func (t *table) text(v string) {
	t.texts[t.next] = append(t.texts[t.next], v)
	t.next++
}

// progress gives the table a row with that seq when it has none, so that a
// quiet table is never mistaken for a late one.
func (t *table) progress(last uint64) {
	if n := len(t.seqs); n > 0 && t.seqs[n-1] == last {
		return
	}
	var zeros [32]byte
	t.row(last, progressRow, 0)
	for t.next < len(t.layout) {
		if width := t.layout[t.next].width; width > 0 {
			t.bytes(zeros[:width])
		} else {
			t.text("")
		}
	}
}

func (t *table) len() int { return len(t.seqs) }

// after is how many of the rows have a seq up to that one.
func (t *table) after(seq uint64) int {
	n, _ := slices.BinarySearch(t.seqs, seq+1)
	return n
}

func (t *table) reset() {
	t.seqs = t.seqs[:0]
	for i := range t.layout {
		t.data[i] = t.data[i][:0]
		clear(t.texts[i])
		t.texts[i] = t.texts[i][:0]
	}
}

// names lists the columns for an INSERT.
func (t *table) names() (list string) {
	for _, l := range t.layout {
		list += l.name + ", "
	}
	return list + "writer"
}

// fill gives the rows from the given one on to the columns of an INSERT, which
// are those of names.
func (t *table) fill(columns []column.Interface, from int, writer uint64) error {
	n := t.len() - from
	if len(columns) != len(t.layout)+1 {
		return fmt.Errorf("%s has %d columns and not %d", t.name, len(columns), len(t.layout)+1)
	}
	var parts []io.Reader
	for i, l := range t.layout {
		if l.width > 0 {
			if len(t.data[i]) != l.width*t.len() {
				return fmt.Errorf("%s.%s holds %d bytes for %d rows of %d", t.name, l.name, len(t.data[i]), t.len(), l.width)
			}
			parts = append(parts, bytes.NewReader(t.data[i][from*l.width:]))
		}
	}
	writers := make([]byte, 0, 8*n)
	for range n {
		writers = binary.LittleEndian.AppendUint64(writers, writer)
	}
	in := proto.NewReader(io.MultiReader(append(parts, bytes.NewReader(writers))...))
	for i, c := range columns {
		var err error
		if i < len(t.layout) && t.layout[i].width == 0 {
			_, err = c.Append(t.texts[i][from:])
		} else {
			err = c.Decode(in, n)
		}
		if err != nil {
			return fmt.Errorf("fill %s.%s with %d rows: %w", t.name, c.Name(), n, err)
		}
	}
	return nil
}

// output is what a batch adds to each table.
type output struct {
	records, deposits, flows, rankings, requests, navs, sweeps table
}

func newOutput() *output {
	return &output{newTable("records"), newTable("deposits"), newTable("flows"), newTable("rankings"), newTable("requests"), newTable("navs"), newTable("sweeps")}
}

// roomy tells whether the memory is much more than the rows need.
func (o *output) roomy() bool {
	return cap(o.records.seqs) > 4096 && o.records.len() < cap(o.records.seqs)/8
}

// reset takes all rows out and keeps the memory.
func (o *output) reset() {
	for _, name := range readmodel.Tables {
		o.table(name).reset()
	}
}

func (o *output) table(name string) *table {
	switch name {
	case "records":
		return &o.records
	case "deposits":
		return &o.deposits
	case "flows":
		return &o.flows
	case "rankings":
		return &o.rankings
	case "requests":
		return &o.requests
	case "navs":
		return &o.navs
	case "sweeps":
		return &o.sweeps
	}
	panic("no table " + name) // readmodel.Tables and this function go together; a test holds them so
}

// progress ends the batch in every table.
func (o *output) progress(last uint64) {
	for _, name := range readmodel.Tables {
		o.table(name).progress(last)
	}
}

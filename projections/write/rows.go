package write

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/projections/derive"
	"github.com/navlog/navlog/schemas/readmodel"
)

// The rows of a batch are kept by column, each as ClickHouse's native format
// has it: the values one after the other, the lowest byte first. They are
// written there as they are decoded and go from there to the engine, without a
// value of their own in between.

// layouts names the columns of each table in the order in which rows are written,
// with the bytes of a value; 0 for text.
var layouts = map[string][]layout{
	readmodel.Spine: {{"seq", 8}, {"sign", 1}, {"retracts", 8}, {"writer", 8}, {"kind", 1}, {"event", 1}, {"boundary", 1}, {"quarantined", 1},
		{"passed", 1}, {"block", 8}, {"hash", 32}, {"ts", 4}, {"vault", 20}, {"user", 20}, {"tx", 32}, {"log_index", 4}, {"payload", 0}},
	readmodel.Deposits: {{"seq", 8}, {"sign", 1}, {"retracts", 8}, {"writer", 8}, {"vault", 20}, {"deposit_id", 8}, {"user", 20}, {"sender", 20},
		{"partner", 4}, {"assets", 32}, {"shares", 32}, {"block", 8}, {"ts", 4}, {"tx", 32}, {"log_index", 4}},
	readmodel.WithdrawalEvents: {{"seq", 8}, {"sign", 1}, {"retracts", 8}, {"writer", 8}, {"vault", 20}, {"request_index", 8}, {"kind", 1}, {"user", 20},
		{"receiver", 20}, {"partner", 4}, {"shares", 32}, {"assets", 32}, {"expires_ts", 8}, {"block", 8}, {"ts", 4}, {"tx", 32}, {"log_index", 4}},
	readmodel.Navs: {{"seq", 8}, {"sign", 1}, {"retracts", 8}, {"writer", 8}, {"vault", 20}, {"nav_per_share", 32}, {"total_assets", 32},
		{"total_supply", 32}, {"block", 8}, {"ts", 4}, {"tx", 32}, {"log_index", 4}},
	readmodel.Sweeps: {{"seq", 8}, {"sign", 1}, {"retracts", 8}, {"writer", 8}, {"vault", 20}, {"from_id", 8}, {"to_id", 8}, {"assets", 32},
		{"block", 8}, {"ts", 4}, {"tx", 32}, {"log_index", 4}},
	readmodel.Withdrawals: append([]layout{{"sign", 1}, {"list", 1}, {"user", 20}, {"key", 8}, {"requested_log", 4}, {"vault", 20}, {"request_index", 8},
		{"owner", 20}, {"estimate", 32}, {"expires_ts", 8}, {"requested_block", 8}, {"funded_block", 8}, {"closed_block", 8}, {"closed_by", 1}}, cursorColumns...),
	readmodel.Users: append([]layout{{"sign", 1}, {"list", 1}, {"vault", 20}, {"partner", 4}, {"key", 32}, {"user", 20},
		{"first_block", 8}, {"first_ts", 4}, {"deposited", 32}, {"withdrawn", 32}}, cursorColumns...),
	readmodel.PartnerTotals: append([]layout{{"sign", 1}, {"partner", 4}, {"vault", 20}, {"from_block", 8}, {"until_block", 8},
		{"deposits", 8}, {"volume", 32}}, cursorColumns...),
}

// cursorColumns end every derived table; they are 0 but in its cursor row.
var cursorColumns = []layout{{"seq", 8}, {"writer", 8}, {"fence_seq", 8}, {"fence_block", 8}, {"fence_before", 8}}

type layout struct {
	name  string
	width int
}

// rows is what a batch adds to one table. The values of a row are written one
// after the other, in the order of the layout.
type rows struct {
	table  string
	layout []layout
	data   [][]byte   // by column, nil for text
	texts  [][]string // by column, nil for others
	seqs   []uint64   // of rows of facts and the spine, in their order
	count  int
	next   int // column that the next value belongs to
	writer uint64
}

func newRows(table string, writer uint64) *rows {
	l := layouts[table]
	return &rows{table: table, layout: l, data: make([][]byte, len(l)), texts: make([][]string, len(l)), writer: writer}
}

func (r *rows) begin() {
	r.next = 0
	r.count++
}

func (r *rows) u8(v uint8) {
	r.data[r.next] = append(r.data[r.next], v)
	r.next++
}

func (r *rows) u32(v uint32) {
	r.data[r.next] = binary.LittleEndian.AppendUint32(r.data[r.next], v)
	r.next++
}

func (r *rows) u64(v uint64) {
	r.data[r.next] = binary.LittleEndian.AppendUint64(r.data[r.next], v)
	r.next++
}

func (r *rows) flag(v bool) {
	if v {
		r.u8(1)
	} else {
		r.u8(0)
	}
}

func (r *rows) bytes(v []byte) {
	r.data[r.next] = append(r.data[r.next], v...)
	r.next++
}

func (r *rows) amount(v *decode.Amount) {
	d := r.data[r.next]
	for _, word := range v {
		d = binary.LittleEndian.AppendUint64(d, word)
	}
	r.data[r.next] = d
	r.next++
}

func (r *rows) text(v string) {
	r.texts[r.next] = append(r.texts[r.next], v)
	r.next++
}

// zeros fills the rest of a row.
func (r *rows) zeros() {
	var zero [32]byte
	for r.next < len(r.layout) {
		r.bytes(zero[:r.layout[r.next].width])
	}
}

// fact begins a row of facts or of the spine with the values that all of them have.
func (r *rows) fact(f *decode.Fact) {
	r.begin()
	r.seqs = append(r.seqs, f.Seq)
	r.u64(f.Seq)
	r.u8(uint8(f.Sign))
	r.u64(f.Retracts)
	r.u64(r.writer)
}

// where ends a row of facts.
func (r *rows) where(l *decode.Log) {
	r.u64(l.Block)
	r.u32(l.Time)
	r.bytes(l.Tx[:])
	r.u32(l.Index)
}

// spine adds the record itself.
func (r *rows) spine(f *decode.Fact, passed bool) {
	r.fact(f)
	r.u8(uint8(f.Kind))
	r.u8(f.EventNumber())
	r.flag(f.Boundary)
	r.flag(f.Quarantined)
	r.flag(passed)
	r.u64(f.Log.Block)
	r.bytes(f.Hash[:])
	r.u32(f.Log.Time)
	r.bytes(f.Log.Vault[:])
	owner := f.Owner()
	r.bytes(owner[:])
	r.bytes(f.Log.Tx[:])
	r.u32(f.Log.Index)
	r.text(string(f.Raw))
}

func (r *rows) deposit(f *decode.Fact, e *decode.Effect) {
	r.fact(f)
	r.bytes(f.Log.Vault[:])
	r.u64(e.ID)
	r.bytes(e.Owner[:])
	r.bytes(e.Other[:])
	r.u32(e.Partner)
	r.amount(&e.Assets)
	r.amount(&e.Shares)
	r.where(&f.Log)
}

func (r *rows) withdrawalEvent(f *decode.Fact, e *decode.Effect) {
	receiver, partner, expires := e.Other, e.Partner, e.Expires
	if e.Kind != decode.Requested {
		receiver = common.Address{} // a claim's is not kept
	}
	r.fact(f)
	r.bytes(f.Log.Vault[:])
	r.u64(e.ID)
	r.u8(eventOfRequest(e.Kind))
	r.bytes(e.Owner[:])
	r.bytes(receiver[:])
	r.u32(partner)
	r.amount(&e.Shares)
	r.amount(&e.Assets)
	r.u64(expires)
	r.where(&f.Log)
}

func (r *rows) nav(f *decode.Fact, e *decode.Effect) {
	r.fact(f)
	r.bytes(f.Log.Vault[:])
	r.amount(&e.Nav)
	r.amount(&e.Assets)
	r.amount(&e.Shares)
	r.where(&f.Log)
}

func (r *rows) sweep(f *decode.Fact, e *decode.Effect) {
	r.fact(f)
	r.bytes(f.Log.Vault[:])
	r.u64(e.ID)
	r.u64(e.To)
	r.amount(&e.Assets)
	r.where(&f.Log)
}

// eventOfRequest is the number that tables give to what happened to a request, 0 for nothing.
func eventOfRequest(k decode.EffectKind) uint8 {
	if k == 0 {
		return 0
	}
	return 1 + uint8(k-decode.Requested)
}

// withdrawal, user and partnerTotal add the rows of something in a derived table.

func (r *rows) withdrawal(w *derive.Withdrawal, sign int8) {
	r.listed(w, sign, queueList, common.Address{}, w.ClosedBlock)
	r.listed(w, sign, userList, w.Owner, w.RequestedBlock)
}

// The lists of withdrawals, by the numbers that the table gives them. 0 is that of the cursor row.
const (
	queueList = 1 + iota
	userList
)

// listed adds a request to a list, which is of a user and in the order of a block.
func (r *rows) listed(w *derive.Withdrawal, sign int8, list uint8, user common.Address, key uint64) {
	r.begin()
	r.u8(uint8(sign))
	r.u8(list)
	r.bytes(user[:])
	r.u64(key)
	r.u32(w.RequestedLog)
	r.bytes(w.Vault[:])
	r.u64(w.Index)
	r.bytes(w.Owner[:])
	r.amount(&w.Estimate)
	r.u64(w.Expires)
	r.u64(w.RequestedBlock)
	r.u64(w.FundedBlock)
	r.u64(w.ClosedBlock)
	r.u8(eventOfRequest(w.ClosedBy))
	r.zeros()
}

func (r *rows) user(u *derive.User, sign int8) {
	r.begin()
	r.u8(uint8(sign))
	r.u8(uint8(u.List))
	r.bytes(u.Vault[:])
	r.u32(u.Partner)
	r.amount(&u.Key)
	r.bytes(u.User[:])
	r.u64(u.FirstBlock)
	r.u32(u.FirstTime)
	r.amount(&u.Deposited)
	r.amount(&u.Withdrawn)
	r.zeros()
}

func (r *rows) partnerTotal(p *derive.PartnerTotal, sign int8) {
	r.begin()
	r.u8(uint8(sign))
	r.u32(p.Partner)
	r.bytes(p.Vault[:])
	r.u64(p.FromBlock)
	r.u64(p.UntilBlock)
	r.u64(p.Deposits)
	r.amount(&p.Volume)
	r.zeros()
}

// cursor adds the cursor row of a derived table.
func (r *rows) cursor(c readmodel.Cursor, sign int8) {
	switch r.table { // where readmodel says that its cursor row stands
	case readmodel.Withdrawals:
		r.listed(&derive.Withdrawal{}, sign, 0, common.Address{}, 0)
	case readmodel.Users:
		r.user(&derive.User{}, sign)
	case readmodel.PartnerTotals:
		r.partnerTotal(&derive.PartnerTotal{UntilBlock: readmodel.Never}, sign)
	}
	for i, v := range []uint64{c.Seq, c.Writer, c.Fence.Seq, c.Fence.Block, c.Fence.Before} {
		d := r.data[len(r.layout)-len(cursorColumns)+i]
		binary.LittleEndian.PutUint64(d[len(d)-8:], v)
	}
}

// after is how many of the rows have a seq up to that one.
func (r *rows) after(seq uint64) int {
	n, _ := slices.BinarySearch(r.seqs, seq+1)
	return n
}

func (r *rows) reset() {
	r.seqs, r.count = r.seqs[:0], 0
	for i := range r.layout {
		r.data[i] = r.data[i][:0]
		clear(r.texts[i])
		r.texts[i] = r.texts[i][:0]
	}
}

// names lists the columns for an INSERT.
func (r *rows) names() string {
	var list []byte
	for i, l := range r.layout {
		if i > 0 {
			list = append(list, ", "...)
		}
		list = append(list, l.name...)
	}
	return string(list)
}

// fill gives the rows from the given one on to the columns of an INSERT, which
// are those of names.
func (r *rows) fill(columns []column.Interface, from int) error {
	n := r.count - from
	if len(columns) != len(r.layout) {
		return fmt.Errorf("%s has %d columns and not %d", r.table, len(columns), len(r.layout))
	}
	var parts []io.Reader
	for i, l := range r.layout {
		if l.width > 0 {
			if len(r.data[i]) != l.width*r.count {
				return fmt.Errorf("%s.%s holds %d bytes for %d rows of %d", r.table, l.name, len(r.data[i]), r.count, l.width)
			}
			parts = append(parts, bytes.NewReader(r.data[i][from*l.width:]))
		}
	}
	in := proto.NewReader(io.MultiReader(parts...))
	for i, c := range columns {
		var err error
		if r.layout[i].width == 0 {
			_, err = c.Append(r.texts[i][from:])
		} else {
			err = c.Decode(in, n)
		}
		if err != nil {
			return fmt.Errorf("fill %s.%s with %d rows: %w", r.table, c.Name(), n, err)
		}
	}
	return nil
}

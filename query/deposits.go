package query

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/webhook"
)

// maxUnswept is the most deposits that the queue shows of one vault.
const maxUnswept = 10_000

type depositJSON struct {
	ID            string  `json:"id"`
	VaultAddress  string  `json:"vaultAddress"`
	VaultName     string  `json:"vaultName"`
	UserAddress   string  `json:"userAddress"`
	SenderAddress string  `json:"senderAddress"`
	AssetAmount   string  `json:"assetAmount"`
	Shares        string  `json:"shares"`
	PartnerID     *uint32 `json:"partnerId,omitempty"`
	SweptAt       *string `json:"sweptAt"`
	TxHash        string  `json:"txHash"`
	BlockNumber   string  `json:"blockNumber"`
	LogIndex      uint32  `json:"logIndex"`
	Timestamp     string  `json:"timestamp"`
}

// depositGroupJSON is the unswept deposits of one vault.
type depositGroupJSON struct {
	VaultAddress string        `json:"vaultAddress"`
	VaultName    string        `json:"vaultName"`
	Deposits     []depositJSON `json:"deposits"`
	Count        int64         `json:"count"`
	Truncated    bool          `json:"truncated,omitempty"`
}

type depositRow struct {
	Vault     string   `ch:"vault"`
	DepositID uint64   `ch:"deposit_id"`
	User      string   `ch:"user"`
	Sender    string   `ch:"sender"`
	Partner   uint32   `ch:"partner"`
	Assets    *big.Int `ch:"assets"`
	Shares    *big.Int `ch:"shares"`
	Block     uint64   `ch:"block"`
	Time      uint32   `ch:"ts"`
	Tx        string   `ch:"tx"`
	LogIndex  uint32   `ch:"log_index"`
}

// depositEntry is one in a list.
type depositEntry struct {
	depositRow
	userEntry
}

func (d *depositEntry) position(b depositEntry) int { return d.depositRow.position(&b.depositRow) }

// position compares where in the chain they are.
func (r *depositRow) position(b *depositRow) int {
	return cmp.Or(cmp.Compare(r.Block, b.Block), cmp.Compare(r.LogIndex, b.LogIndex))
}

func (q *Query) listUserDeposits(x *exchange) (*answer, error) {
	user := x.pathAddress()
	page, span, vault := x.params.page(), x.params.span(), x.params.vault()
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	args := []param{named("user", user), vaultParam(vault), named("from", span.from), named("to", span.to)}
	var rows []depositEntry
	var count int64
	var swept *sweeps
	err = together(
		func() (err error) {
			rows, count, err = userPage[depositEntry](x, p, sqlUserDeposits, page, args)
			return
		},
		func() (err error) { swept, err = x.sweeps(); return },
	)
	if err != nil {
		return nil, err
	}
	out := make([]depositJSON, len(rows))
	for i, r := range rows {
		out[i] = r.json(p, swept)
	}
	return x.list(out, page, count), nil
}

// listUnsweptDeposits asks for a part of the vaults at once while it is sent, so that
// memory holds no more deposits than are shown of one vault at most.
func (q *Query) listUnsweptDeposits(x *exchange) (*answer, error) {
	filter := x.params.vault()
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	swept, queues, err := x.unsweptQueues(p, filter) // before the first byte is sent, an error can still be told
	if err != nil {
		return nil, err
	}
	return &answer{tag: stateTag(p, x.request.URL.EscapedPath()+"?"+encodeQuery(x.params.values)), stream: func(w io.Writer) error {
		out := bufio.NewWriterSize(w, streamChunk)
		out.WriteString(`{"ok":true,"data":[`)
		first := true
		for _, some := range batches(p.wanted(filter), queues) {
			deposits, err := x.oldestUnswept(p, some, queues)
			if err != nil {
				return err
			}
			for _, v := range some {
				if !first {
					out.WriteByte(',')
				}
				first = false
				if err := writeGroup(out, p, v, queues[v.address].Total, deposits[v.address], swept); err != nil {
					return err
				}
			}
		}
		out.WriteString("]}\n")
		return out.Flush()
	}}, nil
}

// batches are the vaults with a queue, in parts that are asked for at once: as many
// as have no more deposits than are shown of one.
func batches(vaults []vault, queues map[common.Address]unsweptRow) (out [][]vault) {
	room := int64(0)
	for _, v := range vaults {
		total := queues[v.address].Total
		if total <= 0 {
			continue
		}
		if len(out) == 0 || total > room {
			out, room = append(out, nil), maxUnswept
		}
		last := len(out) - 1
		out[last], room = append(out[last], v), room-total
	}
	return out
}

// writeGroup writes the unswept deposits of one vault, a depositGroupJSON, one
// deposit after the other.
func writeGroup(out *bufio.Writer, p *pin, v vault, total int64, rows []depositRow, swept *sweeps) error {
	group, err := encode(depositGroupJSON{VaultAddress: v.written, VaultName: v.name, Deposits: []depositJSON{}, Count: total, Truncated: total > int64(len(rows))})
	if err != nil {
		return err
	}
	before, after, _ := bytes.Cut(bytes.TrimSpace(group), []byte(`"deposits":[`))
	out.Write(before)
	out.WriteString(`"deposits":[`)
	for i, some := range slices.Collect(slices.Chunk(rows, depositsAtOnce)) {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := writeDeposits(out, p, some, swept); err != nil {
			return err
		}
	}
	_, err = out.Write(after)
	return err
}

// depositsAtOnce is how many deposits are encoded before they are written.
const depositsAtOnce = 1024

// writeDeposits writes some deposits with commas between them. Each processor encodes
// a part of them.
func writeDeposits(out *bufio.Writer, p *pin, rows []depositRow, swept *sweeps) error {
	parts := inParts(rows, runtime.GOMAXPROCS(0))
	encoded, encoding := make([][]byte, len(parts)), make([]func() error, len(parts))
	for i, part := range parts {
		encoding[i] = func() (err error) {
			list := make([]depositJSON, len(part))
			for k := range part {
				list[k] = part[k].json(p, swept)
			}
			encoded[i], err = encode(list)
			return err
		}
	}
	if err := together(encoding...); err != nil {
		return err
	}
	for i, list := range encoded {
		if i > 0 {
			out.WriteByte(',')
		}
		list = bytes.TrimSpace(list)
		if _, err := out.Write(list[1 : len(list)-1]); err != nil { // without the brackets
			return err
		}
	}
	return nil
}

// inParts divides a list into so many parts of about the same length, or into less
// where it is shorter.
func inParts[T any](list []T, parts int) [][]T {
	return slices.Collect(slices.Chunk(list, max(1, (len(list)+parts-1)/parts)))
}

// unsweptScan is how many logs more than the deposits of a group are looked at
// for them: a few were taken back.
const unsweptScan = 1000

// oldestUnswept reads the deposits that no sweep has reached of some vaults, of each
// the oldest maxUnswept. Where these are all, their rows are put into order here: to
// plan that takes the engine longer than to find them.
func (x *exchange) oldestUnswept(p *pin, vaults []vault, queues map[common.Address]unsweptRow) (map[common.Address][]depositRow, error) {
	out := make(map[common.Address][]depositRow, len(vaults))
	var ranges []string
	var unread []vault
	few := uint64(unsweptScan)
	for _, v := range vaults {
		queue := queues[v.address]
		if queue.deposits != nil {
			out[v.address] = queue.deposits
			continue
		}
		unread, ranges, few = append(unread, v), append(ranges, depositRange(v.address, queue.after, queue.end(p))), few+uint64(queue.Total)
	}
	if len(unread) == 0 {
		return out, nil
	}
	if few <= maxUnswept+unsweptScan {
		rows, all, err := x.fewDeposits(p, ranges, few)
		if err != nil {
			return nil, err
		}
		if all {
			maps.Copy(out, oldestFirst(rows))
			return out, nil
		}
	}
	for _, v := range unread {
		rows, err := x.oldestOfMany(p, v.address, queues[v.address])
		if err != nil {
			return nil, err
		}
		out[v.address] = rows
	}
	return out, nil
}

// oldestOfMany reads the oldest maxUnswept deposits of a vault that no sweep has reached.
func (x *exchange) oldestOfMany(p *pin, vault common.Address, queue unsweptRow) (rows []depositRow, err error) {
	count := min(queue.Total, maxUnswept)
	args := []param{named("vault", vault), named("swept", queue.after), named("newest", queue.end(p)), named("limit", uint64(count))}
	for scan := uint64(count + unsweptScan); ; scan *= 8 {
		rows, err = pinned[depositRow](x, p, sqlUnswept, append(args, named("scan", scan))...)
		if err != nil || int64(len(rows)) >= count || scan > math.MaxInt64/8 {
			return rows, err
		}
	}
}

// depositRange is a condition: the deposits of a vault after a number, up to another.
func depositRange(vault common.Address, after, to uint64) string {
	out := fmt.Sprintf("(vault = %s AND deposit_id > %d", hexLiteral(string(vault[:])), after)
	if to < math.MaxUint64 {
		out += fmt.Sprintf(" AND deposit_id <= %d", to)
	}
	return out + ")"
}

// fewDeposits reads all rows about deposits in some ranges, or gives false where these
// are not fewer than few.
func (x *exchange) fewDeposits(p *pin, ranges []string, few uint64, args ...param) (rows []depositEntry, all bool, err error) {
	rows, err = pinned[depositEntry](x, p, question("unswept_few", strings.Join(ranges, " OR ")), append(args, named("few", few))...)
	return rows, uint64(len(rows)) < few, err
}

// oldestFirst are the live ones of some entries by vault, in the order of the chain: as
// the engine found them, nearly.
func oldestFirst(entries []depositEntry) map[common.Address][]depositRow {
	out := make(map[common.Address][]depositRow)
	for _, e := range liveEntries(entries) {
		vault := toAddress(e.Vault)
		out[vault] = append(out[vault], e.depositRow)
	}
	for _, rows := range out {
		slices.SortFunc(rows, func(a, b depositRow) int { return a.position(&b) })
	}
	return out
}

// amountRow is how many there are and what they sum up to.
type amountRow struct {
	Total  int64    `ch:"total"`
	Amount *big.Int `ch:"amount"`
}

// unsweptRow is the deposits of a vault that no sweep has reached.
type unsweptRow struct {
	Vault string `ch:"vault"`
	amountRow
	Newest uint64 `ch:"newest"` // no deposit with a higher number is among them

	after    uint64       // the last deposit that was swept
	deposits []depositRow // all of them, where they were read to count them
}

// end is up to which number its deposits are looked for. At the newest block none has
// a higher one, and the engine need not look.
func (u unsweptRow) end(p *pin) uint64 {
	if p.asOf {
		return u.Newest
	}
	return math.MaxUint64
}

// nothingUnswept is a queue of which nothing is counted yet.
func nothingUnswept(after uint64) unsweptRow {
	return unsweptRow{amountRow: amountRow{Amount: new(big.Int)}, after: after}
}

// unswept counts the deposits that no sweep has reached, of at least this vault
// or of all, and gives the sweeps too.
func (x *exchange) unswept(p *pin, vault *common.Address) (swept *sweeps, totals map[common.Address]unsweptRow, err error) {
	if swept, err = x.sweeps(); err != nil {
		return nil, nil, err
	}
	totals, err = shared(x, p, func(h *head) *lazy[map[common.Address]unsweptRow] { return h.unswept }, func(was *earlier[map[common.Address]unsweptRow]) (map[common.Address]unsweptRow, error) {
		return x.countUnswept(p, p.wanted(p.asked(vault)), swept, was)
	})
	return swept, totals, err
}

const (
	// unsweptSpan is how many numbers after the last deposit that was swept are
	// looked at for the end of a past queue, where nothing better is known.
	unsweptSpan = 2048
	// unsweptMore is how many numbers more than expected are looked at, beside a
	// quarter of these.
	unsweptMore = 32
)

// reach is up to which number the end of a vault's past queue is looked for: a little
// beyond where it is if deposits came evenly between two sweeps, but not farther
// beyond the next one.
func (s *sweeps) reach(p *pin, vault common.Address, after uint64) uint64 {
	swept, next := s.around(p, vault)
	if next.to <= after {
		return numberAfter(after, unsweptSpan)
	}
	part := float64(p.block-swept.block) / float64(next.block-swept.block)
	expected := min(1.25*part*float64(next.to-after), unsweptSpan)
	return numberAfter(after, min(unsweptSpan, min(next.to-after, uint64(expected))+unsweptMore))
}

// numberAfter is so many numbers after one, or the highest there can be.
func numberAfter(number, span uint64) uint64 { return number + min(span, math.MaxUint64-number) }

// unsweptQueues are the deposits of a vault, or of all, that no sweep has reached:
// how many, and in the past mostly which, for they are read to count them.
func (x *exchange) unsweptQueues(p *pin, filter *common.Address) (*sweeps, map[common.Address]unsweptRow, error) {
	if !p.asOf {
		return x.unswept(p, filter)
	}
	swept, err := x.sweeps()
	if err != nil {
		return nil, nil, err
	}
	out, err := x.pastUnswept(p, p.wanted(filter), swept, true)
	return swept, out, err
}

// pastUnswept counts the deposits of past queues. Most of those after the last one
// that was swept are later ones, so it looks at the next few numbers first.
func (x *exchange) pastUnswept(p *pin, vaults []vault, swept *sweeps, whole bool) (map[common.Address]unsweptRow, error) {
	out := make(map[common.Address]unsweptRow, len(vaults))
	far := func(v vault) bool { _, near := out[v.address]; return !near }
	end := func(v vault, after uint64) uint64 { return swept.reach(p, v.address, after) }
	if err := x.addNearUnswept(p, vaults, swept, end, whole, out); err != nil {
		return nil, err
	}
	all := func(_ vault, after uint64) uint64 { return numberAfter(after, unsweptSpan) }
	further := filtered(vaults, func(v vault) bool {
		last, _ := swept.last(p, v.address)
		return far(v) && end(v, last) < all(v, last)
	})
	if err := x.addNearUnswept(p, further, swept, all, whole, out); err != nil {
		return nil, err
	}
	rest := filtered(vaults, far)
	for _, v := range rest {
		last, _ := swept.last(p, v.address)
		out[v.address] = nothingUnswept(last)
	}
	return out, x.addUnswept(p, rest, 0, out)
}

func filtered(vaults []vault, which func(vault) bool) []vault {
	return slices.DeleteFunc(slices.Clone(vaults), func(v vault) bool { return !which(v) })
}

// addNearUnswept adds the past queues that end before some numbers: a vault numbers its
// deposits in the order of the chain, so that after one of a later block none is in
// them. Of whole ones it keeps the deposits.
func (x *exchange) addNearUnswept(p *pin, vaults []vault, swept *sweeps, end func(v vault, after uint64) uint64, whole bool, out map[common.Address]unsweptRow) error {
	if len(vaults) == 0 {
		return nil
	}
	ranges, queues := make([]string, len(vaults)), make(map[common.Address]unsweptRow)
	for i, v := range vaults {
		last, _ := swept.last(p, v.address)
		ranges[i], queues[v.address] = depositRange(v.address, last, end(v, last)), nothingUnswept(last)
	}
	soon, err := x.soonAfter(p)
	if err != nil {
		return err
	}
	if !whole {
		return x.addNearTotals(soon, ranges, queues, out)
	}
	rows, all, err := x.fewDeposits(soon, ranges, maxUnswept, named("block", uint64(math.MaxUint64)))
	if err != nil || !all {
		return err
	}
	for vault, rows := range oldestFirst(rows) {
		queue := queues[vault]
		end := slices.IndexFunc(rows, func(r depositRow) bool { return r.Block > p.block })
		if end < 0 {
			continue
		}
		queue.Total, queue.deposits = int64(end), rows[:end:end]
		for _, r := range queue.deposits {
			queue.Amount.Add(queue.Amount, r.Assets)
		}
		out[vault] = queue
	}
	return nil
}

// soonAfter is the pin with the logs of a few thousand blocks after it.
func (x *exchange) soonAfter(p *pin) (*pin, error) {
	s, err := x.spans()
	if err != nil {
		return nil, err
	}
	soon := *p
	soon.logs = s.lastLog(p.block + s.span)
	return &soon, nil
}

// addNearTotals is addNearUnswept where nobody wants the deposits.
func (x *exchange) addNearTotals(p *pin, ranges []string, queues, out map[common.Address]unsweptRow) error {
	type nearRow struct {
		unsweptRow
		Later int64 `ch:"later"` // deposits of later blocks
	}
	rows, err := pinned[nearRow](x, p, question("unswept_near", strings.Join(ranges, " OR ")))
	for _, r := range rows {
		if vault := toAddress(r.Vault); r.Later > 0 {
			queue := queues[vault]
			queue.amountRow = r.amountRow
			out[vault] = queue
		}
	}
	return err
}

// countUnswept looks at all deposits after the last one that was swept, or where
// the same was the last before, at those that are new.
func (x *exchange) countUnswept(p *pin, vaults []vault, swept *sweeps, was *earlier[map[common.Address]unsweptRow]) (map[common.Address]unsweptRow, error) {
	if p.asOf {
		return x.pastUnswept(p, vaults, swept, false)
	}
	out := make(map[common.Address]unsweptRow, len(vaults))
	var known, unknown []vault
	for _, v := range vaults {
		last, _ := swept.last(p, v.address)
		if was != nil {
			if before, ok := was.value[v.address]; ok && before.after == last {
				out[v.address], known = before, append(known, v)
				continue
			}
		}
		out[v.address], unknown = nothingUnswept(last), append(unknown, v)
	}
	if len(known) > 0 {
		if err := x.addNewUnswept(p, known, was.seq, out); err != nil {
			return nil, err
		}
	}
	return out, x.addUnswept(p, unknown, 0, out)
}

// addNewUnswept counts the deposits after a seq.
func (x *exchange) addNewUnswept(p *pin, vaults []vault, seq uint64, out map[common.Address]unsweptRow) error {
	deposits, ok, err := x.newDeposits(p, seq)
	if err != nil {
		return err
	}
	if !ok {
		return x.addUnswept(p, vaults, seq, out)
	}
	var rows []unsweptRow
	for _, d := range deposits {
		address := toAddress(d.Vault)
		if d.ID > out[address].after && slices.ContainsFunc(vaults, func(v vault) bool { return v.address == address }) {
			rows = append(rows, unsweptRow{Vault: d.Vault, amountRow: amountRow{Total: int64(d.Sign), Amount: d.volume()}, Newest: d.ID})
		}
	}
	sumUnswept(out, rows)
	return nil
}

// addUnswept counts the deposits after the last that was swept of each vault, in rows
// after a seq.
func (x *exchange) addUnswept(p *pin, vaults []vault, since uint64, out map[common.Address]unsweptRow) error {
	if len(vaults) == 0 {
		return nil
	}
	ranges := make([]string, len(vaults))
	for i, v := range vaults {
		ranges[i] = depositRange(v.address, out[v.address].after, math.MaxUint64)
	}
	rows, err := pinned[unsweptRow](x, p, question("unswept_totals", strings.Join(ranges, " OR ")), named("since", since))
	sumUnswept(out, rows)
	return err
}

// sumUnswept adds what some rows say.
func sumUnswept(out map[common.Address]unsweptRow, rows []unsweptRow) {
	for _, r := range rows {
		sum := out[toAddress(r.Vault)]
		sum.Total, sum.Amount = sum.Total+r.Total, new(big.Int).Add(sum.Amount, r.Amount)
		sum.Newest = max(sum.Newest, r.Newest)
		out[toAddress(r.Vault)] = sum
	}
}

func (r *depositRow) json(p *pin, swept *sweeps) depositJSON {
	vault, user := toAddress(r.Vault), toAddress(r.User).Hex()
	sender := user // mostly, and its checksum takes as long as the rest of the row
	if r.Sender != r.User {
		sender = toAddress(r.Sender).Hex()
	}
	address, name := p.written(vault)
	return depositJSON{
		ID: factID(r.Tx, r.LogIndex), VaultAddress: address, VaultName: name, UserAddress: user, SenderAddress: sender,
		AssetAmount: r.Assets.String(), Shares: r.Shares.String(), PartnerID: partnerOrAbsent(r.Partner),
		SweptAt: timeOrNull(uint64(swept.timeOf(p, vault, r.DepositID))),
		TxHash:  toHash(r.Tx), BlockNumber: strconv.FormatUint(r.Block, 10), LogIndex: r.LogIndex, Timestamp: webhook.FormatTime(uint64(r.Time)),
	}
}

// partnerOrAbsent leaves out partner 0, which is none.
func partnerOrAbsent(id uint32) *uint32 {
	if id == 0 {
		return nil
	}
	return &id
}

// vaultParam is the optional filter by vault.
func vaultParam(filter *common.Address) param {
	if filter == nil {
		return named("vault", anyVault{})
	}
	return named("vault", *filter)
}

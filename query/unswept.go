package query

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// The deposits of a vault that no sweep has reached are those with a higher number
// than the last one that was swept. The table is in the order of the chain, in which
// they are nearly all after the last sweep, so that those of all vaults lie together:
//
//	            sweep of A        sweep of B        pin
//	 ───────────┼──────────┼──────┼─────────────────┤
//	      sweepLag ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒   read, those swept already left out
//
// A vault numbers its deposits one after the other, which proves that none is earlier:
// the first one that is found has the number after the last one that was swept.
// Where it has not, or where the last sweep was long ago, a vault's deposits are found
// by their numbers, in a projection.
//
// At the newest block they are known from the block before, with what came and
// without what was swept since.

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
	deposits []depositRow // all of them, where they are known
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

// unsweptQueues are the deposits of a vault, or of all, that no sweep has reached:
// how many, and mostly which.
func (x *exchange) unsweptQueues(p *pin, filter *common.Address) (*sweeps, map[common.Address]unsweptRow, error) {
	if p.asOf {
		swept, err := x.sweeps()
		if err != nil {
			return nil, nil, err
		}
		out, err := x.pastUnswept(p, p.wanted(filter), swept, true)
		return swept, out, err
	}
	swept, totals, err := x.unswept(p, filter)
	if err != nil || p.head == nil {
		return swept, totals, err
	}
	queues, err := ofHead(x, p.head.depositQueues, func() (map[common.Address]unsweptRow, error) {
		return x.newestQueues(p, totals, p.head.depositQueues.before(p.seq))
	})
	return swept, queues, err
}

// newestQueues are the queues at the newest block with their deposits, where these are
// not too many to be kept: what they were and what is new, or else what the engine
// finds.
func (x *exchange) newestQueues(p *pin, totals map[common.Address]unsweptRow, was *earlier[map[common.Address]unsweptRow]) (map[common.Address]unsweptRow, error) {
	parts := batches(p.vaults, totals)
	if len(parts) != 1 {
		return totals, nil
	}
	out := maps.Clone(totals)
	if was != nil {
		added, ok, err := x.newDeposits(p, was.seq)
		if err != nil {
			return nil, err
		}
		if ok {
			moveQueues(out, was.value, added)
		}
	}
	deposits, err := x.oldestUnswept(p, parts[0], out)
	for vault, rows := range deposits {
		queue := out[vault]
		if queue.deposits = rows; int64(len(rows)) == queue.Total {
			out[vault] = queue
		}
	}
	return out, err
}

// moveQueues fills in the deposits of queues: those that were in them and are not
// swept yet, and those that were added since. Where these are more than were counted,
// since some were taken back, they stay unknown.
func moveQueues(queues, was map[common.Address]unsweptRow, added []newDeposit) {
	for vault, queue := range queues {
		before, ok := was[vault]
		if !ok || int64(len(before.deposits)) != before.Total {
			continue
		}
		rows := filtered(before.deposits, func(r depositRow) bool { return r.DepositID > queue.after })
		for _, d := range added {
			if d.Sign > 0 && d.DepositID > queue.after && toAddress(d.Vault) == vault {
				rows = append(rows, d.depositRow)
			}
		}
		if int64(len(rows)) == queue.Total {
			inChainOrder(rows)
			queue.deposits = rows
			queues[vault] = queue
		}
	}
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
		last := swept.last(p, v.address)
		if was != nil {
			if before, ok := was.value[v.address]; ok && before.after == last.id {
				out[v.address], known = before, append(known, v)
				continue
			}
		}
		out[v.address], unknown = nothingUnswept(last.id), append(unknown, v)
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
		if d.DepositID > out[address].after && slices.ContainsFunc(vaults, func(v vault) bool { return v.address == address }) {
			rows = append(rows, unsweptRow{Vault: d.Vault, amountRow: amountRow{Total: int64(d.Sign), Amount: d.volume()}, Newest: d.DepositID})
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

// depositRange is a condition: the deposits of a vault after a number, up to another.
func depositRange(vault common.Address, after, to uint64) string {
	out := fmt.Sprintf("(vault = %s AND deposit_id > %d", hexLiteral(string(vault[:])), after)
	if to < math.MaxUint64 {
		out += fmt.Sprintf(" AND deposit_id <= %d", to)
	}
	return out + ")"
}

// unsweptSpan is how many numbers after the last deposit that was swept are looked at
// for the end of a past queue. Most of those after it are later ones.
const unsweptSpan = 2048

// pastUnswept counts the deposits of past queues, and where whole ones are wanted
// keeps those that it found with it: in one way after the other, until all are told.
func (x *exchange) pastUnswept(p *pin, vaults []vault, swept *sweeps, whole bool) (map[common.Address]unsweptRow, error) {
	out := make(map[common.Address]unsweptRow, len(vaults))
	for _, v := range vaults {
		out[v.address] = nothingUnswept(swept.last(p, v.address).id)
	}
	lately := x.latelyTotals
	if whole {
		lately = x.latelyQueues
	}
	for _, tell := range []func(*pin, []vault, map[common.Address]unsweptRow) (map[common.Address]unsweptRow, error){lately, x.nearTotals} {
		told, err := tell(p, vaults, out)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, told)
		vaults = filtered(vaults, func(v vault) bool { _, ok := told[v.address]; return !ok })
	}
	return out, x.addUnswept(p, vaults, 0, out)
}

// sweepLag is how many blocks before its own a sweep may have been made: what was
// deposited meanwhile it does not reach.
const sweepLag = 32

// lately are those of the vaults whose last sweep was not long before the pin, and the
// block from which on their deposits are looked for.
func (s *sweeps) lately(p *pin, vaults []vault, spans *spans) (some []vault, from uint64) {
	from = p.block + 1
	block := make(map[common.Address]uint64, len(vaults))
	for _, v := range vaults {
		block[v.address] = s.last(p, v.address).block
	}
	vaults = slices.SortedFunc(slices.Values(vaults), func(a, b vault) int { return cmp.Compare(block[b.address], block[a.address]) })
	for _, v := range vaults {
		start := block[v.address] - min(block[v.address], sweepLag)
		if spans.logs(start, p.block) > spans.lately {
			break
		}
		some, from = append(some, v), start
	}
	return some, from
}

// lately are those of the vaults that the sweeps say this of.
func (x *exchange) lately(p *pin, vaults []vault) (some []vault, from uint64, err error) {
	swept, err := x.sweeps()
	if err != nil {
		return nil, 0, err
	}
	spans, err := x.spans()
	if err != nil {
		return nil, 0, err
	}
	some, from = swept.lately(p, vaults, spans)
	return some, from, nil
}

// latelyUnswept are the unswept deposits of vaults that were all made since the last
// sweeps.
func (x *exchange) latelyUnswept(p *pin, vaults []vault, queues map[common.Address]unsweptRow) (map[common.Address][]depositRow, error) {
	some, from, err := x.lately(p, vaults)
	if err != nil || len(some) == 0 {
		return nil, err
	}
	rows, err := x.readDeposits(p, afterSweeps(some, queues), from, p.until(), maxUnswept)
	if err != nil || len(rows) == maxUnswept { // there may be more
		return nil, err
	}
	out := byVaultInOrder(rows)
	maps.DeleteFunc(out, func(vault common.Address, rows []depositRow) bool { return rows[0].DepositID != queues[vault].after+1 })
	return out, nil
}

// latelyQueues are the past queues of such vaults.
func (x *exchange) latelyQueues(p *pin, vaults []vault, queues map[common.Address]unsweptRow) (map[common.Address]unsweptRow, error) {
	deposits, err := x.latelyUnswept(p, vaults, queues)
	out := make(map[common.Address]unsweptRow, len(deposits))
	for vault, rows := range deposits {
		queue := nothingUnswept(queues[vault].after)
		queue.Total, queue.deposits = int64(len(rows)), rows
		for _, r := range rows {
			queue.Amount.Add(queue.Amount, r.Assets)
		}
		out[vault] = queue
	}
	return out, err
}

// latelyTotals is latelyQueues where nobody wants the deposits. It does not know where
// some were taken back, of which one may have had the first number before.
func (x *exchange) latelyTotals(p *pin, vaults []vault, queues map[common.Address]unsweptRow) (map[common.Address]unsweptRow, error) {
	some, from, err := x.lately(p, vaults)
	if err != nil || len(some) == 0 {
		return nil, err
	}
	type row struct {
		unsweptRow
		First uint64 `ch:"first"`
		Said  uint64 `ch:"said"`
	}
	rows, err := pinned[row](x, p, question("unswept_lately", afterSweeps(some, queues)), named("from", from))
	out := make(map[common.Address]unsweptRow, len(rows))
	for _, r := range rows {
		vault := toAddress(r.Vault)
		if queue := queues[vault]; r.First == queue.after+1 && r.Said == uint64(r.Total) {
			queue.amountRow = r.amountRow
			out[vault] = queue
		}
	}
	return out, err
}

// readDeposits reads the rows about deposits of some blocks that a condition holds of, or
// the first few of them.
func (x *exchange) readDeposits(p *pin, condition string, from, to, few uint64) (out []depositEntry, err error) {
	var r depositEntry
	places := []any{&r.Vault, &r.DepositID, &r.User, &r.Sender, &r.Partner, &r.Assets, &r.Shares, &r.Block, &r.Time, &r.Tx, &r.LogIndex, &r.Seq, &r.Sign, &r.Retracts}
	args := p.args(named("from", from), named("to", to), named("few", few))
	err = askEach(x.ctx, p.generation, needed(question("unswept", condition), args), places, func() { out = append(out, r) }, args...)
	if err != nil {
		return nil, readFailure(err)
	}
	return out, nil
}

// afterSweeps is a condition: the deposits of some vaults that their sweeps did not
// reach.
func afterSweeps(vaults []vault, queues map[common.Address]unsweptRow) string {
	if len(vaults) == 1 {
		return depositRange(vaults[0].address, queues[vaults[0].address].after, math.MaxUint64)
	}
	addresses, last := make([]string, len(vaults)), make([]string, len(vaults))
	for i, v := range vaults {
		addresses[i], last[i] = hexLiteral(string(v.address[:])), strconv.FormatUint(queues[v.address].after, 10)
	}
	return fmt.Sprintf("deposit_id > transform(vault, [%s], [%s], %d)", strings.Join(addresses, ","), strings.Join(last, ","), uint64(math.MaxUint64))
}

// nearTotals counts the past queues that end among the next numbers, after one of a
// later block.
func (x *exchange) nearTotals(p *pin, vaults []vault, queues map[common.Address]unsweptRow) (map[common.Address]unsweptRow, error) {
	if len(vaults) == 0 {
		return nil, nil
	}
	soon, err := x.soonAfter(p)
	if err != nil {
		return nil, err
	}
	ranges := make([]string, len(vaults))
	for i, v := range vaults {
		after := queues[v.address].after
		ranges[i] = depositRange(v.address, after, after+min(unsweptSpan, math.MaxUint64-after))
	}
	type row struct {
		unsweptRow
		Later int64 `ch:"later"` // deposits of later blocks
	}
	rows, err := pinned[row](x, soon, question("unswept_near", strings.Join(ranges, " OR ")))
	out := make(map[common.Address]unsweptRow, len(rows))
	for _, r := range rows {
		vault := toAddress(r.Vault)
		if queue := queues[vault]; r.Later > 0 {
			queue.amountRow, queue.Newest = r.amountRow, r.Newest
			out[vault] = queue
		}
	}
	return out, err
}

// soonAfter is the pin with the logs of a few thousand blocks after it.
func (x *exchange) soonAfter(p *pin) (*pin, error) {
	s, err := x.spans()
	if err != nil {
		return nil, err
	}
	soon := *p
	soon.horizon = s.lastLog(p.block + s.span)
	return &soon, nil
}

// oldestUnswept reads the deposits that no sweep has reached of some vaults, of each
// the oldest maxUnswept.
func (x *exchange) oldestUnswept(p *pin, vaults []vault, queues map[common.Address]unsweptRow) (map[common.Address][]depositRow, error) {
	out := make(map[common.Address][]depositRow, len(vaults))
	unread := filtered(vaults, func(v vault) bool {
		out[v.address] = queues[v.address].deposits
		return out[v.address] == nil
	})
	if len(unread) == 0 {
		return out, nil
	}
	if !p.asOf { // else they were looked for there when they were counted
		lately, err := x.latelyUnswept(p, unread, queues)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, lately)
	}
	unread = filtered(unread, func(v vault) bool { return out[v.address] == nil })
	if len(unread) == 0 {
		return out, nil
	}
	old, err := x.oldestByNumber(p, unread, queues)
	maps.Copy(out, old)
	return out, err
}

// unsweptScan is how many rows more than the deposits of a vault are looked at for
// them: a few were taken back.
const unsweptScan = 1000

// oldestByNumber reads the oldest maxUnswept deposits of each vault that no sweep has
// reached. Where many were taken back, it looks at more rows.
func (x *exchange) oldestByNumber(p *pin, vaults []vault, queues map[common.Address]unsweptRow) (map[common.Address][]depositRow, error) {
	shown := func(vault common.Address) int { return int(min(queues[vault].Total, maxUnswept)) }
	most := 0
	for _, v := range vaults {
		most = max(most, shown(v.address))
	}
	for scan := uint64(most + unsweptScan); ; scan *= 8 {
		out, err := x.firstNumbers(p, vaults, queues, scan)
		if err != nil {
			return nil, err
		}
		lacks := slices.ContainsFunc(vaults, func(v vault) bool { return len(out[v.address]) < shown(v.address) })
		if lacks && scan <= math.MaxInt64/8/uint64(len(vaults)) {
			continue
		}
		for vault, rows := range out {
			out[vault] = rows[:min(shown(vault), len(rows))]
		}
		return out, nil
	}
}

// firstNumbers reads the deposits that the first so many rows of each vault are about:
// in which blocks they are is told by their numbers.
func (x *exchange) firstNumbers(p *pin, vaults []vault, queues map[common.Address]unsweptRow, scan uint64) (map[common.Address][]depositRow, error) {
	type blocks struct {
		Vault string `ch:"vault"`
		Low   uint64 `ch:"low"`
		High  uint64 `ch:"high"`
	}
	numbers := func(vault common.Address) string {
		return depositRange(vault, queues[vault].after, queues[vault].end(p))
	}
	ranges := make([]string, len(vaults))
	for i, v := range vaults {
		ranges[i] = numbers(v.address)
	}
	in, err := pinned[blocks](x, p, question("unswept_blocks", strings.Join(ranges, " OR ")), named("scan", scan), named("all", scan*uint64(len(vaults))))
	if err != nil || len(in) == 0 {
		return nil, err
	}
	places, from, to := make([]string, len(in)), uint64(math.MaxUint64), uint64(0)
	for i, b := range in {
		places[i] = fmt.Sprintf("(block >= %d AND block <= %d AND %s)", b.Low, b.High, numbers(toAddress(b.Vault)))
		from, to = min(from, b.Low), max(to, b.High)
	}
	rows, err := x.readDeposits(p, "("+strings.Join(places, " OR ")+")", from, to, math.MaxInt64)
	return byVaultInOrder(rows), err
}

// byVaultInOrder are the live ones of some entries by vault, in the order of the chain:
// as the engine found them, nearly.
func byVaultInOrder(entries []depositEntry) map[common.Address][]depositRow {
	out := make(map[common.Address][]depositRow)
	for _, e := range liveEntries(entries) {
		vault := toAddress(e.Vault)
		out[vault] = append(out[vault], e.depositRow)
	}
	for _, rows := range out {
		inChainOrder(rows)
	}
	return out
}

func inChainOrder(rows []depositRow) {
	slices.SortFunc(rows, func(a, b depositRow) int { return a.position(&b) })
}

// filtered are those of a list that some condition holds of.
func filtered[T any](list []T, which func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(t T) bool { return !which(t) })
}

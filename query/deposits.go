package query

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"math/big"
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

func (d *depositEntry) position(b depositEntry) int {
	return cmp.Or(cmp.Compare(d.Block, b.Block), cmp.Compare(d.LogIndex, b.LogIndex))
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

// listUnsweptDeposits asks vault by vault while it is sent, so that memory
// holds the deposits of one vault at most.
func (q *Query) listUnsweptDeposits(x *exchange) (*answer, error) {
	filter := x.params.vault()
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	swept, totals, err := x.unswept(p, filter) // before the first byte is sent, an error can still be told
	if err != nil {
		return nil, err
	}
	return &answer{tag: stateTag(p, x.request.URL.EscapedPath()+"?"+encodeQuery(x.params.values)), stream: func(w io.Writer) error {
		out := bufio.NewWriterSize(w, streamChunk)
		out.WriteString(`{"ok":true,"data":[`)
		first := true
		for _, v := range p.wanted(filter) {
			unswept := totals[v.address]
			if unswept.Total <= 0 {
				continue
			}
			if !first {
				out.WriteByte(',')
			}
			first = false
			if err := x.writeGroup(out, p, v, unswept, swept); err != nil {
				return err
			}
		}
		out.WriteString("]}\n")
		return out.Flush()
	}}, nil
}

// writeGroup writes the unswept deposits of one vault, a depositGroupJSON, one
// deposit after the other.
func (x *exchange) writeGroup(out *bufio.Writer, p *pin, v vault, unswept unsweptRow, swept *sweeps) error {
	total := unswept.Total
	rows, err := x.oldestUnswept(p, v.address, unswept)
	if err != nil {
		return err
	}
	group, err := encode(depositGroupJSON{VaultAddress: v.address.Hex(), VaultName: v.name, Deposits: []depositJSON{}, Count: total, Truncated: total > int64(len(rows))})
	if err != nil {
		return err
	}
	before, after, _ := bytes.Cut(bytes.TrimSpace(group), []byte(`"deposits":[`))
	out.Write(before)
	out.WriteString(`"deposits":[`)
	for i := range rows {
		one, err := encode(rows[i].json(p, swept))
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		if _, err := out.Write(bytes.TrimSuffix(one, []byte("\n"))); err != nil {
			return err
		}
	}
	_, err = out.Write(after)
	return err
}

// unsweptScan is how many logs more than the deposits of a group are looked at
// for them: a few were taken back.
const unsweptScan = 1000

// oldestUnswept reads the deposits of a vault that no sweep has reached, the oldest
// maxUnswept of them. Where these are all, their rows are put into order here: to
// plan that takes the engine longer than to find them.
func (x *exchange) oldestUnswept(p *pin, vault common.Address, unswept unsweptRow) (rows []depositRow, err error) {
	count, newest := min(unswept.Total, maxUnswept), unswept.Newest
	if !p.asOf { // none has a higher number, and the engine need not look
		newest = math.MaxUint64
	}
	args := []param{named("vault", vault), named("swept", unswept.after), named("newest", newest)}
	scan := uint64(count + unsweptScan)
	if count == unswept.Total {
		all, err := pinned[depositEntry](x, p, sqlUnsweptFew, append(args, named("few", scan))...)
		if err != nil || uint64(len(all)) < scan {
			return oldestFirst(all), err
		}
	}
	for ; ; scan *= 8 {
		rows, err = pinned[depositRow](x, p, sqlUnswept, append(args, named("scan", scan), named("limit", uint64(count)))...)
		if err != nil || int64(len(rows)) >= count || scan > math.MaxInt64/8 {
			return rows, err
		}
	}
}

// oldestFirst are the live ones of some entries, in the order of the chain.
func oldestFirst(entries []depositEntry) []depositRow {
	entries = liveEntries(entries)
	slices.SortFunc(entries, func(a, b depositEntry) int { return a.position(b) })
	rows := make([]depositRow, len(entries))
	for i, e := range entries {
		rows[i] = e.depositRow
	}
	return rows
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
	Later  int64  `ch:"later"`  // how many of those that were looked at came after the block

	after uint64 // the last deposit that was swept
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

// unsweptSpan is how many numbers after the last deposit that was swept are
// looked at for the end of a past queue.
const unsweptSpan = 2048

// countUnswept looks at all deposits after the last one that was swept, or where
// the same was the last before, at those that are new. Of a past block most of
// these are later ones, so there it looks at the next few numbers first: where
// one of them belongs to a later block, so do all that follow.
func (x *exchange) countUnswept(p *pin, vaults []vault, swept *sweeps, was *earlier[map[common.Address]unsweptRow]) (map[common.Address]unsweptRow, error) {
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
		out[v.address], unknown = unsweptRow{amountRow: amountRow{Amount: new(big.Int)}, after: last}, append(unknown, v)
	}
	if len(known) > 0 {
		if err := x.addNewUnswept(p, known, was.seq, out); err != nil {
			return nil, err
		}
	}
	if p.asOf {
		if err := x.addUnswept(p, unknown, "unswept_totals_near", unsweptSpan, 0, out); err != nil {
			return nil, err
		}
		unknown = slices.DeleteFunc(unknown, func(v vault) bool { return out[v.address].Later > 0 })
		for _, v := range unknown {
			out[v.address] = unsweptRow{amountRow: amountRow{Amount: new(big.Int)}, after: out[v.address].after}
		}
	}
	return out, x.addUnswept(p, unknown, "unswept_totals", math.MaxUint64, 0, out)
}

// addNewUnswept counts the deposits after a seq.
func (x *exchange) addNewUnswept(p *pin, vaults []vault, seq uint64, out map[common.Address]unsweptRow) error {
	deposits, ok, err := x.newDeposits(p, seq)
	if err != nil {
		return err
	}
	if !ok {
		return x.addUnswept(p, vaults, "unswept_totals", math.MaxUint64, seq, out)
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

// addUnswept counts the deposits among so many numbers after the last that was
// swept of each vault, in rows after a seq.
func (x *exchange) addUnswept(p *pin, vaults []vault, file string, span, since uint64, out map[common.Address]unsweptRow) error {
	if len(vaults) == 0 {
		return nil
	}
	ranges := make([]string, len(vaults))
	for i, v := range vaults {
		last := out[v.address].after
		ranges[i] = fmt.Sprintf("(vault = %s AND deposit_id > %d", hexLiteral(string(v.address[:])), last)
		if span < math.MaxUint64-last {
			ranges[i] += fmt.Sprintf(" AND deposit_id <= %d", last+span)
		}
		ranges[i] += ")"
	}
	rows, err := pinned[unsweptRow](x, p, question(file, strings.Join(ranges, " OR ")), named("since", since))
	sumUnswept(out, rows)
	return err
}

// sumUnswept adds what some rows say.
func sumUnswept(out map[common.Address]unsweptRow, rows []unsweptRow) {
	for _, r := range rows {
		sum := out[toAddress(r.Vault)]
		sum.Total, sum.Amount = sum.Total+r.Total, new(big.Int).Add(sum.Amount, r.Amount)
		sum.Newest, sum.Later = max(sum.Newest, r.Newest), r.Later
		out[toAddress(r.Vault)] = sum
	}
}

func (r *depositRow) json(p *pin, swept *sweeps) depositJSON {
	vault := toAddress(r.Vault)
	return depositJSON{
		ID: factID(r.Tx, r.LogIndex), VaultAddress: vault.Hex(), VaultName: p.vaultName(vault),
		UserAddress: toAddress(r.User).Hex(), SenderAddress: toAddress(r.Sender).Hex(),
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

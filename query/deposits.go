package query

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
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

// depositKey names a row of deposits.
type depositKey struct {
	Vault     string `ch:"vault"`
	DepositID uint64 `ch:"deposit_id"`
	Seq       uint64 `ch:"name"`
}

func (k depositKey) literal() string {
	return fmt.Sprintf("(%s,%d,%d)", hexLiteral(k.Vault), k.DepositID, k.Seq)
}

func (q *Query) listUserDeposits(x *exchange) (*answer, error) {
	user := x.pathAddress()
	page, span, vault := x.params.page(), x.params.span(), x.params.vault()
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	args := []any{hexParam("user", user), vaultParam(vault), named("from", span.from), named("to", span.to)}
	type row struct {
		depositKey
		Total uint64 `ch:"total"`
	}
	wanted, err := pinned[row](x, p, sqlUserDeposits, append(args, page.args()...)...)
	if err != nil {
		return nil, err
	}
	var count int64
	keys := make([]depositKey, len(wanted))
	for i, w := range wanted {
		keys[i], count = w.depositKey, int64(w.Total)
	}
	if len(keys) == 0 && page.offset() > 0 { // beyond the last page nothing says how many there are
		if count, err = total(x, p, sqlUserDepsCount, args...); err != nil {
			return nil, err
		}
	}
	out, err := x.deposits(p, keys)
	if err != nil {
		return nil, err
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
			unswept := totals[v.address].Total
			if unswept <= 0 {
				continue
			}
			if !first {
				out.WriteByte(',')
			}
			first = false
			if err := x.writeGroup(out, p, v, unswept, swept[v.address].Last); err != nil {
				return err
			}
		}
		out.WriteString("]}\n")
		return out.Flush()
	}}, nil
}

// writeGroup writes the unswept deposits of one vault, a depositGroupJSON, one
// deposit after the other.
func (x *exchange) writeGroup(out *bufio.Writer, p *pin, v vault, total int64, swept uint64) error {
	rows, err := pinned[depositRow](x, p, sqlUnswept, hexParam("vault", v.address), named("swept", swept), named("limit", uint64(maxUnswept)))
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
	for i := range rows { // beyond every sweep, so none has swept them
		one, err := encode(rows[i].json(p, nil))
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

// amountRow is how many there are and what they sum up to.
type amountRow struct {
	Total  int64    `ch:"total"`
	Amount *big.Int `ch:"amount"`
}

// unswept counts the deposits that no sweep has reached, of at least this vault
// or of all, and says how far the sweeps got.
func (x *exchange) unswept(p *pin, vault *common.Address) (sweeps map[common.Address]sweepState, totals map[common.Address]amountRow, err error) {
	if sweeps, err = x.sweeps(p); err != nil {
		return nil, nil, err
	}
	totals, err = shared(x, p, func(h *head) *part[map[common.Address]amountRow] { return &h.unswept }, func() (map[common.Address]amountRow, error) {
		return x.countUnswept(p, p.wanted(p.asked(vault)), sweeps)
	})
	return sweeps, totals, err
}

func (x *exchange) countUnswept(p *pin, vaults []vault, sweeps map[common.Address]sweepState) (map[common.Address]amountRow, error) {
	out := make(map[common.Address]amountRow, len(vaults))
	ranges := make([]string, len(vaults))
	for i, v := range vaults {
		out[v.address] = amountRow{Amount: new(big.Int)}
		ranges[i] = fmt.Sprintf("(vault = %s AND deposit_id > %d)", hexLiteral(string(v.address[:])), sweeps[v.address].Last)
	}
	if len(vaults) == 0 {
		return out, nil
	}
	type row struct {
		Vault string `ch:"vault"`
		amountRow
	}
	rows, err := pinned[row](x, p, question("unswept_totals", strings.Join(ranges, " OR ")))
	for _, r := range rows {
		out[toAddress(r.Vault)] = r.amountRow
	}
	return out, err
}

// sweepState is how far the sweeps of a vault got.
type sweepState struct {
	Vault    string `ch:"vault"`
	Last     uint64 `ch:"last"`    // highest deposit id that was swept
	Time     uint32 `ch:"last_ts"` // of the last sweep
	Lost     uint64 `ch:"lost"`    // highest one of a sweep that was taken back
	LostTime uint32 `ch:"lost_ts"` // of the last that was
}

// sweeps is how far the sweeps of each vault got; a vault without one is not in
// it.
func (x *exchange) sweeps(p *pin) (map[common.Address]sweepState, error) {
	return shared(x, p, func(h *head) *part[map[common.Address]sweepState] { return &h.sweeps }, func() (map[common.Address]sweepState, error) {
		rows, err := pinned[sweepState](x, p, sqlSweeps)
		if err == nil && slices.ContainsFunc(rows, func(r sweepState) bool { return r.Lost >= r.Last || r.LostTime >= r.Time }) {
			rows, err = pinned[sweepState](x, p, sqlSweepsLive)
		}
		out := make(map[common.Address]sweepState, len(rows))
		for _, r := range rows {
			out[toAddress(r.Vault)] = r
		}
		return out, err
	})
}

// deposits reads some deposits of several vaults, with the time of their sweeps,
// and writes them, newest first.
func (x *exchange) deposits(p *pin, keys []depositKey) ([]depositJSON, error) {
	if len(keys) == 0 {
		return []depositJSON{}, nil
	}
	var rows []depositRow
	var sweeps []sweepRow
	err := together(
		func() (err error) { rows, err = pinned[depositRow](x, p, question("deposits", keyList(keys))); return },
		func() (err error) { sweeps, err = x.sweepsOf(p, keys); return },
	)
	if err != nil {
		return nil, err
	}
	lost := make(map[uint64]bool)
	for _, s := range sweeps {
		if s.Sign < 0 {
			lost[s.Retracts] = true
		}
	}
	out := make([]depositJSON, 0, len(rows))
	for _, r := range rows {
		var sweptAt *string
		for _, s := range sweeps { // oldest first: the earliest sweep counts
			if s.Sign > 0 && !lost[s.Seq] && s.Vault == r.Vault && s.From <= r.DepositID && r.DepositID <= s.To {
				sweptAt = timeOrNull(uint64(s.Time))
				break
			}
		}
		out = append(out, r.json(p, sweptAt))
	}
	return out, nil
}

type sweepRow struct {
	Seq      uint64 `ch:"seq"`
	Sign     int8   `ch:"sign"` // -1: the sweep at seq Retracts was taken back
	Retracts uint64 `ch:"retracts"`
	Vault    string `ch:"vault"`
	From     uint64 `ch:"from_id"`
	To       uint64 `ch:"to_id"`
	Time     uint32 `ch:"ts"`
}

// sweepsOf reads the sweeps that may hold these deposits. Which ids are of which
// vault is left to who looks through them: the engine takes longer to tell.
func (x *exchange) sweepsOf(p *pin, keys []depositKey) ([]sweepRow, error) {
	vaults, ids := make([]string, len(keys)), make([]uint64, len(keys))
	for i, k := range keys {
		vaults[i], ids[i] = hexLiteral(k.Vault), k.DepositID
	}
	slices.Sort(vaults)
	slices.Sort(ids)
	vaults, ids = slices.Compact(vaults), slices.Compact(ids)
	return pinned[sweepRow](x, p, question("sweeps", struct {
		Vaults      string
		First, Last uint64
		IDs         []uint64
	}{strings.Join(vaults, ","), ids[0], ids[len(ids)-1], ids}))
}

func (r *depositRow) json(p *pin, sweptAt *string) depositJSON {
	vault := toAddress(r.Vault)
	return depositJSON{
		ID: factID(r.Tx, r.LogIndex), VaultAddress: vault.Hex(), VaultName: p.vaultName(vault),
		UserAddress: toAddress(r.User).Hex(), SenderAddress: toAddress(r.Sender).Hex(),
		AssetAmount: r.Assets.String(), Shares: r.Shares.String(), PartnerID: partnerOrAbsent(r.Partner), SweptAt: sweptAt,
		TxHash: toHash(r.Tx), BlockNumber: strconv.FormatUint(r.Block, 10), LogIndex: r.LogIndex, Timestamp: webhook.FormatTime(uint64(r.Time)),
	}
}

// partnerOrAbsent leaves out partner 0, which is none.
func partnerOrAbsent(id uint32) *uint32 {
	if id == 0 {
		return nil
	}
	return &id
}

// vaultParam is the optional filter by vault; empty lets all through.
func vaultParam(filter *common.Address) any {
	if filter == nil {
		return named("vault", "")
	}
	return hexParam("vault", *filter)
}

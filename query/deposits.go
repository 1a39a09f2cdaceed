package query

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"math/big"
	"runtime"
	"slices"
	"strconv"

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

// listUnsweptDeposits asks for deposits that are not known yet while it is sent, a part
// of the vaults at once, so that memory holds no more of these than are shown of one
// vault at most.
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

func (r *depositRow) json(p *pin, swept *sweeps) depositJSON {
	vault, user := toAddress(r.Vault), toAddress(r.User).Hex()
	sender := user // mostly, and its checksum takes as long as the rest of the row
	if r.Sender != r.User {
		sender = toAddress(r.Sender).Hex()
	}
	address, name := p.written(vault)
	tx := toHash(r.Tx)
	return depositJSON{
		ID: factID(tx, r.LogIndex), VaultAddress: address, VaultName: name, UserAddress: user, SenderAddress: sender,
		AssetAmount: r.Assets.String(), Shares: r.Shares.String(), PartnerID: partnerOrAbsent(r.Partner),
		SweptAt: timeOrNull(uint64(swept.timeOf(p, vault, r.DepositID))),
		TxHash:  tx, BlockNumber: strconv.FormatUint(r.Block, 10), LogIndex: r.LogIndex, Timestamp: webhook.FormatTime(uint64(r.Time)),
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

package statement

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/webhook"
)

// Chain is a node of the chain, for instance *ethclient.Client.
type Chain interface {
	ChainID(ctx context.Context) (*big.Int, error)
	HeaderByNumber(ctx context.Context, number *big.Int) (*types.Header, error)
	FilterLogs(ctx context.Context, q ethereum.FilterQuery) ([]types.Log, error)
}

// Contradiction is a difference between a header and the chain.
type Contradiction struct{ Reason string }

func (c *Contradiction) Error() string { return c.Reason }

func contradict(format string, a ...any) error { return &Contradiction{fmt.Sprintf(format, a...)} }

// Findings are the results of Rebuild besides the bytes of a statement.
type Findings struct {
	Blocks  uint64    // with a time in the time range
	Pending bool      // the node reports that the statement's block is not final
	LeftOut []LeftOut // in the order of the chain
}

// LeftOut counts the partner's events in the time range that a contract emitted and that the statement does not
// include. Anyone may deploy a contract that emits such events, so the chain does not show whether it is a vault.
type LeftOut struct {
	Address    string `json:"address"`
	Events     int    `json:"events"`
	StartBlock string `json:"startBlock,omitempty"` // for a vault of the statement: the events are before this block
}

// Rebuild computes the signed part of the statement with this header from the chain, and writes it to out. Only the
// header determines the vaults, their start blocks and aliases; the findings list the partner's events that it
// excludes. texts are the mappings that the header names. progress may be nil; it gets the number of blocks done. The
// error is a *Contradiction if the header contradicts the chain, and an *UnknownMapping if a text is missing.
func Rebuild(ctx context.Context, out io.Writer, h Header, chain Chain, texts Texts,
	progress func(done, of uint64)) (*Findings, error) {
	r := rebuilding{ctx: ctx, chain: chain, header: h, progress: progress, times: map[uint64]uint64{}}
	for i := range h.Vaults {
		sources, err := h.Vaults[i].sources(texts, h.PartnerID)
		if err != nil {
			return nil, err
		}
		if r.mapped = append(r.mapped, sources); sources != nil {
			r.contracts = append(r.contracts, sources.Addresses()...)
		}
	}
	from, to, err := r.span()
	if err != nil {
		return nil, err
	}
	first, last, err := r.blocks(from, to)
	if err != nil {
		return nil, err
	}
	if first <= last {
		r.found.Blocks = last - first + 1
	}
	// A node without a finalized block cannot prove finality, but does not contradict it.
	final, err := chain.HeaderByNumber(ctx, big.NewInt(rpc.FinalizedBlockNumber.Int64()))
	r.found.Pending = err == nil && final.Number.Uint64() < r.anchor
	w := NewWriter(out, h)
	if err := r.events(w, first, last); err != nil {
		return nil, err
	}
	return &r.found, w.Finish(nil)
}

type rebuilding struct {
	ctx      context.Context
	chain    Chain
	header   Header
	progress func(done, of uint64)
	vaults   []common.Address
	starts   []uint64
	// mapped is how the logs of each vault are read, nil for one of the reference contracts, and contracts all of theirs.
	mapped    []*mapping.Sources
	contracts []common.Address
	anchor    uint64
	times     map[uint64]uint64 // of blocks, Unix seconds
	found     Findings
}

// span parses the header and verifies it against the chain.
func (r *rebuilding) span() (from, to uint64, err error) {
	h := r.header
	id, err := r.chain.ChainID(r.ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("request the chain id of the node: %w", err)
	}
	if !id.IsUint64() || id.Uint64() != h.ChainID {
		return 0, 0, contradict("it is of chain %d, but the node serves chain %s", h.ChainID, id)
	}
	begin, err := time.Parse(time.RFC3339Nano, h.From)
	if err != nil {
		return 0, 0, contradict("its from is %q, which is not a time", h.From)
	}
	end, err := time.Parse(time.RFC3339Nano, h.To)
	if err != nil || end.Before(begin) {
		return 0, 0, contradict("its to is %q, which is not a time after its from", h.To)
	}
	for _, v := range h.Vaults {
		start, err := strconv.ParseUint(v.StartBlock, 10, 64)
		address := common.HexToAddress(v.Address)
		if err != nil || address.Hex() != v.Address { // events name their vault in this form
			return 0, 0, contradict("its vault %q from block %q is not valid", v.Address, v.StartBlock)
		}
		if slices.Contains(r.vaults, address) {
			return 0, 0, contradict("it names vault %s twice", v.Address)
		}
		r.vaults, r.starts = append(r.vaults, address), append(r.starts, start)
	}
	if r.anchor, err = strconv.ParseUint(h.Block.Number, 10, 64); err != nil {
		return 0, 0, contradict("its block is %q, which is not a number", h.Block.Number)
	}
	block, err := r.block(r.anchor)
	if err != nil {
		return 0, 0, err
	}
	if block.Hash().Hex() != h.Block.Hash || webhook.FormatTime(block.Time) != h.Block.Timestamp {
		return 0, 0, contradict("block %d of the chain is %s of %s, but the statement was made at %q of %q",
			r.anchor, block.Hash().Hex(), webhook.FormatTime(block.Time), h.Block.Hash, h.Block.Timestamp)
	}
	if uint64(max(0, end.Unix())) >= block.Time { // further blocks may have the time of this one
		return 0, 0, contradict("its to, %s, is not before the time of block %d, at which it was made: events may be missing",
			h.To, r.anchor)
	}
	return ceil(begin), uint64(max(0, end.Unix())), nil
}

// ceil returns the first whole second that is not before a time.
func ceil(t time.Time) uint64 {
	seconds := t.Unix()
	if t.Nanosecond() > 0 {
		seconds++
	}
	return uint64(max(0, seconds))
}

func (r *rebuilding) block(number uint64) (*types.Header, error) {
	h, err := r.chain.HeaderByNumber(r.ctx, new(big.Int).SetUint64(number))
	if errors.Is(err, ethereum.NotFound) {
		return nil, contradict("the chain has no block %d yet", number)
	}
	if err != nil {
		return nil, fmt.Errorf("read block %d from the node: %w", number, err)
	}
	r.times[number] = h.Time
	return h, nil
}

func (r *rebuilding) time(number uint64) (uint64, error) {
	if t, known := r.times[number]; known {
		return t, nil
	}
	h, err := r.block(number)
	if err != nil {
		return 0, err
	}
	return h.Time, nil
}

// blocks returns the first and the last block whose time is in the range, by binary search,
// since times never decrease along a chain. If there is none, first is greater than last.
func (r *rebuilding) blocks(from, to uint64) (first, last uint64, err error) {
	after := func(bound uint64) (uint64, error) { // the first block whose time is at least bound
		var failed error
		n := sort.Search(int(r.anchor)+1, func(n int) bool {
			if failed != nil {
				return true
			}
			t, err := r.time(uint64(n))
			failed = err
			return t >= bound
		})
		return uint64(n), failed
	}
	if first, err = after(from); err != nil {
		return 0, 0, err
	}
	next, err := after(to + 1)
	if err != nil {
		return 0, 0, err
	}
	if next == 0 {
		return 1, 0, nil
	}
	return first, next - 1, nil
}

// events writes the events of a block range. It requests the logs of all contracts, but only the partner's, whose id
// both events index.
func (r *rebuilding) events(w *Writer, first, last uint64) error {
	if first > last {
		return nil
	}
	kinds := []common.Hash{contracts.KindDepositAccepted.Topic(), contracts.KindWithdrawalRequested.Topic()}
	partner := common.BigToHash(new(big.Int).SetUint64(uint64(r.header.PartnerID)))
	topics := [][]common.Hash{kinds, nil, nil, {partner}}
	read := func(from, to uint64) ([]types.Log, error) { return r.logs(from, to, topics) }
	return contracts.ReadInRanges(r.ctx, first, last, read, func(logs []types.Log, _, to uint64) error {
		if err := r.add(w, logs); err != nil {
			return err
		}
		if r.progress != nil {
			r.progress(to-first+1, last-first+1)
		}
		return nil
	})
}

// logs reads the partner's logs in the form of the reference contracts, and all of the vaults with another mapping.
func (r *rebuilding) logs(from, to uint64, topics [][]common.Hash) ([]types.Log, error) {
	q := ethereum.FilterQuery{FromBlock: new(big.Int).SetUint64(from), ToBlock: new(big.Int).SetUint64(to), Topics: topics}
	logs, err := r.chain.FilterLogs(r.ctx, q)
	if err != nil || len(r.contracts) == 0 {
		return logs, err
	}
	logs = slices.DeleteFunc(logs, func(l types.Log) bool { return slices.Contains(r.contracts, l.Address) })
	q.Topics, q.Addresses = nil, r.contracts
	more, err := r.chain.FilterLogs(r.ctx, q)
	return append(logs, more...), err
}

func (r *rebuilding) add(w *Writer, logs []types.Log) error {
	var events []placed
	var others []*event.Log // of vaults with another mapping than the reference
	for i := range logs {
		l := &logs[i]
		t, err := r.time(l.BlockNumber)
		if err != nil {
			return err
		}
		record := &event.Log{Address: l.Address[:], Data: l.Data, BlockNumber: l.BlockNumber, BlockHash: l.BlockHash[:],
			BlockTime: t, TxHash: l.TxHash[:], LogIndex: uint32(l.Index)}
		for _, topic := range l.Topics {
			record.Topics = append(record.Topics, topic[:])
		}
		if slices.Contains(r.contracts, l.Address) {
			others = append(others, record)
		} else if e, ok := r.fromReferral(record, nil); ok {
			events = append(events, placed{e, l.BlockNumber, uint32(l.Index), l.Address, slices.Index(r.vaults, l.Address)})
		}
	}
	events = append(events, r.mappedEvents(others)...)
	slices.SortStableFunc(events, placed.compare)
	var before *placed // the event that was added last
	for i := range events {
		e := &events[i]
		if e.vault < 0 || e.block < r.starts[e.vault] {
			r.leaveOut(e.contract, e.vault)
			continue
		}
		if before != nil && e.compare(*before) == 0 {
			if e.vault == before.vault {
				return fmt.Errorf("the node returned log %d of block %d twice: retry, or use another node", e.index, e.block)
			}
			return contradict("log %d of block %d belongs to two of its vaults, and would count twice", e.index, e.block)
		}
		before = e
		if err := w.Add(e.event); err != nil {
			return err
		}
	}
	return nil
}

// leaveOut counts an event that is not in the statement; vault is -1, or the index of a vault with a later start block.
func (r *rebuilding) leaveOut(address common.Address, vault int) {
	i := slices.IndexFunc(r.found.LeftOut, func(l LeftOut) bool { return l.Address == address.Hex() })
	if i < 0 {
		i = len(r.found.LeftOut)
		r.found.LeftOut = append(r.found.LeftOut, LeftOut{Address: address.Hex()})
		if vault >= 0 {
			r.found.LeftOut[i].StartBlock = strconv.FormatUint(r.starts[vault], 10)
		}
	}
	r.found.LeftOut[i].Events++
}

package histories_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/deploy/e2e"
	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

var router = common.HexToAddress("0x4444444444444444444444444444444444444444")

// chainAt is the chain as the log up to a seq believes it to be: the records that the fold has left, in chain order.
func (h *history) chainAt(seq uint64) (*e2e.Chain, error) {
	f := oracle.New()
	for _, r := range h.script.Records[:seq] {
		if err := f.Apply(r); err != nil {
			return nil, err
		}
	}
	c := &e2e.Chain{ID: h.chainID, Router: router, Times: []uint64{0}}
	for _, r := range f.Records() {
		if v := r.GetVault(); v != nil {
			c.Vaults = append(c.Vaults, v)
		}
		if b := r.GetBlock(); b != nil {
			for uint64(len(c.Times)) <= b.GetNumber() {
				c.Times = append(c.Times, 0)
			}
			c.Times[b.GetNumber()] = b.GetTime()
		}
		if r.GetLog() == nil {
			continue
		}
		l := logOf(r.GetLog())
		e, err := contracts.Decode(l.Topics, l.Data)
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", r.GetSeq(), err)
		}
		if !oracle.Quarantines(e) {
			c.Logs = append(c.Logs, l)
		}
	}
	slices.SortFunc(c.Logs, func(a, b types.Log) int {
		return cmp.Or(cmp.Compare(a.BlockNumber, b.BlockNumber), cmp.Compare(a.Index, b.Index))
	})
	return c, nil
}

func logOf(raw *event.Log) types.Log {
	l := types.Log{Address: common.Address(raw.GetAddress()), Data: raw.GetData(), BlockNumber: raw.GetBlockNumber(),
		TxHash: common.Hash(raw.GetTxHash()), Index: uint(raw.GetLogIndex())}
	for _, t := range raw.GetTopics() {
		l.Topics = append(l.Topics, common.Hash(t))
	}
	return l
}

// head of a chain, 0 before its first block.
func head(c *e2e.Chain) uint64 { return uint64(len(c.Times) - 1) }

// newest are the questions about the newest state at a seq, which is the end of a unit.
func (h *history) newest(seq uint64) ([]e2e.Question, error) {
	if list := h.known[seq]; list != nil {
		return list, nil
	}
	c, err := h.chainAt(seq)
	if err != nil {
		return nil, err
	}
	list, err := c.Questions(e2e.Moment{Block: head(c), Seq: seq}, h.partners)
	h.known[seq] = list
	return list, err
}

// past are the questions about a random moment: as of a block, as of a seq, or both.
func (h *history) past() ([]e2e.Question, error) {
	at := e2e.Moment{Seq: h.script.Seq(), AsOf: url.Values{}}
	kind := h.rng.IntN(3)
	if kind > 0 {
		asked := h.first + h.rng.Uint64N(h.script.Seq()-h.first+1)
		at.AsOf.Set("asOfSeq", fmt.Sprint(asked))
		for at.Seq = asked; !h.script.Records[at.Seq-1].GetBoundary(); at.Seq-- {
		}
	}
	c, err := h.chainAt(at.Seq)
	if err != nil || head(c) == 0 {
		return nil, err // a seq that a reorganisation has left without a block
	}
	at.Block = head(c)
	if kind < 2 {
		at.Block = h.script.First + h.rng.Uint64N(head(c)+1-h.script.First)
		at.AsOf.Set("asOfBlock", fmt.Sprint(at.Block))
	}
	return c.Questions(at, h.partners)
}

// sample is a random question for every endpoint, in random order, and so many more.
func sample(rng *rand.Rand, list []e2e.Question, more int) []e2e.Question {
	list = slices.Clone(list)
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	var chosen, rest []e2e.Question
	seen := map[string]bool{}
	for _, q := range list {
		if seen[q.Endpoint()] {
			rest = append(rest, q)
			continue
		}
		seen[q.Endpoint()] = true
		chosen = append(chosen, q)
	}
	return append(chosen, rest[:min(len(rest), more)]...)
}

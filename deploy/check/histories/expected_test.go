package histories_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

var router = common.HexToAddress("0x4444444444444444444444444444444444444444")

// A moment identifies the state that an answer is about: the log up to a seq, which ends a unit, and the chain up to a
// block.
type moment struct {
	seq, block uint64
	past       bool // asked with asOfBlock
	vaults     int  // number of known vaults, the first ones of the log
}

// A unit is a group of records that a reader must see completely or not at all.
type unit struct {
	first, last uint64
	head        uint64 // newest block after it, 0 if there is none
	oldest      uint64 // recorded block after it, 0 if there is none
	vaults      int    // vaults described up to it
	rewrites    bool   // it is a reorganisation
	ancestor    uint64 // if it is a reorganisation
}

func unitsOf(s *histories.Script) (out []unit) {
	vaults, recorded := 0, map[uint64]int{} // live records of each block
	for _, records := range histories.Units(s.Records) {
		u := unit{first: records[0].GetSeq(), last: records[len(records)-1].GetSeq()}
		for _, r := range records {
			if r.GetVault() != nil {
				vaults++
			}
			b := r.GetBlock()
			if b == nil {
				continue
			}
			if r.GetRetracts() == 0 {
				recorded[b.GetNumber()]++
			} else if recorded[b.GetNumber()]--; recorded[b.GetNumber()] == 0 { // all retractions of a unit come first
				delete(recorded, b.GetNumber())
				_, u.ancestor = ends(recorded)
				u.rewrites = true
			}
		}
		u.oldest, u.head = ends(recorded)
		u.vaults = vaults
		out = append(out, u)
	}
	return out
}

// ends returns the first and the last of the recorded blocks.
func ends(recorded map[uint64]int) (first, last uint64) {
	for n := range recorded {
		if first, last = min(first, n), max(last, n); first == 0 {
			first = n
		}
	}
	return first, last
}

// ending returns the unit that ends with a seq.
func (h *history) ending(seq uint64) (u unit, there bool) {
	i, there := slices.BinarySearchFunc(h.units, seq, func(u unit, seq uint64) int { return cmp.Compare(u.last, seq) })
	if !there {
		return unit{}, false
	}
	return h.units[i], true
}

// chainAt returns the chain according to the log up to a seq, for the first vaults only: the live records, in chain
// order. Blocks count whichever vaults they are for.
func (h *history) chainAt(seq uint64, vaults int) (*oracle.Chain, error) {
	c := &oracle.Chain{ID: h.chainID, Router: router}
	recorded := map[uint64]uint64{} // the time of each recorded block
	known := map[common.Address]bool{}
	for _, r := range live(h.script.Records[:seq]) {
		if v := r.GetVault(); v != nil && len(c.Vaults) < vaults {
			c.Vaults = append(c.Vaults, v)
			known[common.Address(v.GetAddress())] = true
		}
		if b := r.GetBlock(); b != nil {
			recorded[b.GetNumber()] = b.GetTime()
		}
		if r.GetLog() == nil || !known[common.Address(r.GetLog().GetAddress())] {
			continue
		}
		l := logOf(r.GetLog())
		e, err := devchain.Decode(l.Topics, l.Data)
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", r.GetSeq(), err)
		}
		if counts(e) {
			c.Logs = append(c.Logs, l)
		}
	}
	head := slices.Max(append(slices.Collect(maps.Keys(recorded)), 0))
	for n, now := uint64(0), uint64(0); n <= head; n++ {
		if t, ok := recorded[n]; ok { // the time of a block that is not recorded is unknown
			now = t
		}
		c.Times = append(c.Times, now)
	}
	slices.SortFunc(c.Logs, func(a, b types.Log) int {
		return cmp.Or(cmp.Compare(a.BlockNumber, b.BlockNumber), cmp.Compare(a.Index, b.Index))
	})
	return c, nil
}

// live returns the records that neither are retracted nor retract another one.
func live(records []*event.Record) (out []*event.Record) {
	gone := map[uint64]bool{}
	for _, r := range records {
		gone[r.GetRetracts()] = true
	}
	for _, r := range records {
		if r.GetRetracts() == 0 && !gone[r.GetSeq()] {
			out = append(out, r)
		}
	}
	return out
}

// counts reports whether a log counts in any figure. It does not if it has an amount that sums could not hold, or
// numbers a deposit or a request with more than 64 bits.
func counts(e contracts.Event) bool {
	of := reflect.ValueOf(e)
	for i := range of.NumField() {
		n, ok := of.Field(i).Interface().(*big.Int)
		if !ok {
			continue
		}
		switch of.Type().Field(i).Name {
		case "DepositID", "RequestIndex", "FromDepositID", "ToDepositID":
			if n.BitLen() > 64 {
				return false
			}
		case "Assets", "Shares", "AssetsEstimate", "NavPerShare", "TotalAssets", "TotalSupply":
			if n.Cmp(readmodel.MaxAmount) >= 0 {
				return false
			}
		}
	}
	return true
}

func logOf(raw *event.Log) types.Log {
	l := types.Log{Address: common.Address(raw.GetAddress()), Data: raw.GetData(), BlockNumber: raw.GetBlockNumber(),
		BlockTimestamp: raw.GetBlockTime(), TxHash: common.Hash(raw.GetTxHash()), Index: uint(raw.GetLogIndex())}
	for _, t := range raw.GetTopics() {
		l.Topics = append(l.Topics, common.Hash(t))
	}
	return l
}

// remembered is the number of moments whose questions are kept.
const remembered = 64

// expected returns the questions about a moment with their answers. h.mu must be held.
func (h *history) expected(m moment) ([]oracle.Question, error) {
	if list := h.known[m]; list != nil {
		return list, nil
	}
	c, err := h.chainAt(m.seq, m.vaults)
	if err != nil {
		return nil, err
	}
	at := oracle.Moment{Block: m.block, Seq: m.seq}
	if m.past {
		at.AsOf = url.Values{"asOfBlock": {fmt.Sprint(m.block)}}
	}
	list, err := c.Questions(at, h.partners)
	if err != nil {
		return nil, fmt.Errorf("seq %d, block %d: %w", m.seq, m.block, err)
	}
	for old := range h.known {
		if len(h.known) < remembered {
			break
		}
		delete(h.known, old)
	}
	h.known[m] = list
	return list, nil
}

// resting returns what the API must answer when it has read the log up to a seq: as of a block, or of the newest one
// for 0.
func (h *history) resting(seq, block uint64) ([]oracle.Question, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	u, _ := h.ending(seq)
	m := moment{seq: seq, block: u.head, vaults: u.vaults}
	if block > 0 {
		m.block, m.past = block, true
	}
	return h.expected(m)
}

// sample returns that many random questions, each about a different endpoint as far as possible.
func sample(rng *rand.Rand, list []oracle.Question, many int) []oracle.Question {
	list = slices.Clone(list)
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	var chosen, rest []oracle.Question
	seen := map[string]bool{}
	for _, q := range list {
		if seen[q.Endpoint()] {
			rest = append(rest, q)
			continue
		}
		seen[q.Endpoint()] = true
		chosen = append(chosen, q)
	}
	chosen = append(chosen, rest...)
	return chosen[:min(many, len(chosen))]
}

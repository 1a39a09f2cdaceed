package histories_test

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

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
	knowledge
}

// knowledge is what a generation has of the log, which no answer reports: it omits the vaults that were removed after
// that many vault records, when it was created. Its lists were built after as many of them as the second number says:
// it skips the vaults, and the old blocks of vaults, that came later. Lists are built only when the log has every vault
// completely, so all old blocks between two vault records come before them.
type knowledge struct{ created, built int }

// knowledgeAt is the knowledge of a generation that was made after that many vault records.
func knowledgeAt(records int) knowledge { return knowledge{records, records} }

// A unit is a group of records that a reader must see completely or not at all.
type unit struct {
	first, last uint64
	head        uint64 // newest block after it, 0 if there is none
	oldest      uint64 // recorded block after it, 0 if there is none
	vaults      int    // vault records up to it
	rewrites    bool   // it is a reorganisation
	ancestor    uint64 // if it is a reorganisation
}

// unitsOf also returns the seqs of the records of blocks below the newest one, in units that retract nothing.
func unitsOf(s *histories.Script) (out []unit, late map[uint64]bool) {
	vaults, recorded := 0, map[uint64]int{} // live records of each block
	late = map[uint64]bool{}
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
				_, newest := ends(recorded)
				late[r.GetSeq()] = !u.rewrites && b.GetNumber() < newest
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
	return out, late
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

// vaults returns the vaults of a generation, in the order of their first records, and the seq of the first vault record
// that its lists were built without.
func (h *history) vaults(of knowledge) (vaults []*event.Vault, later uint64) {
	removed := map[common.Address]bool{}
	n := 0
	for _, r := range h.script.Records {
		v := r.GetVault()
		if v == nil {
			continue
		}
		if n == of.built {
			later = r.GetSeq()
			break
		}
		a := common.Address(v.GetAddress())
		if n < of.created {
			removed[a] = v.GetRemoved()
		}
		if n++; !slices.ContainsFunc(vaults,
			func(known *event.Vault) bool { return common.Address(known.GetAddress()) == a }) {
			vaults = append(vaults, v)
		}
	}
	vaults = slices.DeleteFunc(vaults, func(v *event.Vault) bool { return removed[common.Address(v.GetAddress())] })
	return vaults, cmp.Or(later, math.MaxUint64)
}

// chainAt returns the chain according to the log up to a seq as a generation has it: the live records, in chain order.
func (h *history) chainAt(seq uint64, of knowledge) (*oracle.Chain, error) {
	c := &oracle.Chain{ID: h.chainID, Router: router}
	recorded := map[uint64]uint64{} // the time of each recorded block
	known, mapped := map[common.Address]bool{}, map[common.Address]bool{}
	// A reorganisation can end at an old block of a vault that the generation skips: it is the newest block all the
	// same.
	var later, head uint64
	c.Vaults, later = h.vaults(of)
	for _, v := range c.Vaults {
		a := common.Address(v.GetAddress())
		known[a], mapped[a] = true, len(v.GetMappings()) > 0
	}
	for _, r := range live(h.script.Records[:seq]) {
		if b := r.GetBlock(); b != nil {
			head = max(head, b.GetNumber())
			if r.GetSeq() < later || !h.late[r.GetSeq()] {
				recorded[b.GetNumber()] = b.GetTime()
			}
		}
		if s := r.GetSample(); s != nil && known[common.Address(s.GetVault())] && small(s.GetAssets()) {
			c.Samples = append(c.Samples, s)
		}
		if r.GetLog() == nil || !known[common.Address(r.GetLog().GetAddress())] {
			continue
		}
		l := logOf(r.GetLog())
		if mapped[l.Address] {
			if countsShares(l) {
				c.Logs = append(c.Logs, l)
			}
			continue
		}
		e, err := devchain.Decode(l.Topics, l.Data)
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", r.GetSeq(), err)
		}
		if counts(e) {
			c.Logs = append(c.Logs, l)
		}
	}
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

// countsShares is counts for a log of a vault of the presets erc4626 and erc7540. It is also false for a log of an
// event without effect. A request of no shares does not count.
func countsShares(l types.Log) bool {
	words := map[common.Hash]int{transferred: 1, deposited: 2, withdrawn: 2, oracle.RedeemRequested: 2}[l.Topics[0]]
	if words == 0 || len(l.Data) != 32*words {
		return false
	}
	for word := range slices.Chunk(l.Data, 32) {
		if !small(word) {
			return false
		}
	}
	return l.Topics[0] != oracle.RedeemRequested || new(big.Int).SetBytes(l.Data[32:]).Sign() > 0
}

var (
	deposited   = crypto.Keccak256Hash([]byte("Deposit(address,address,uint256,uint256)"))
	withdrawn   = crypto.Keccak256Hash([]byte("Withdraw(address,address,address,uint256,uint256)"))
	transferred = crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))
)

// small reports whether sums can hold an amount.
func small(word []byte) bool { return new(big.Int).SetBytes(word).Cmp(readmodel.MaxAmount) < 0 }

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
	c, err := h.chainAt(m.seq, m.knowledge)
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
func (h *history) resting(seq, block uint64) (moment, []oracle.Question, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	u, _ := h.ending(seq)
	m := moment{seq: seq, block: u.head, knowledge: knowledgeAt(u.vaults)}
	if block > 0 {
		m.block, m.past = block, true
	}
	list, err := h.expected(m)
	return m, list, err
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

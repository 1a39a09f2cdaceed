package oracle

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/schemas/event"
)

// A Chain is the state of the vaults as read from a chain by other code. Its logs may contradict each other, which
// those of the reference contracts cannot: a claim of an unknown request, a deposit id that occurs twice.
type Chain struct {
	ID     uint64
	Router common.Address
	// Vaults are described as the log describes them.
	Vaults []*event.Vault
	// Times of the blocks in Unix seconds, by number, from 0 to the newest. A block that is not recorded has that of the
	// last recorded one below it, or 0: so the API decides what has lapsed. Logs have their own times.
	Times []uint64
	// Logs in chain order, without quarantined ones. BlockTimestamp is set for those of blocks that are not recorded.
	Logs []types.Log
	// Samples are NAV samples in chain order, without quarantined ones.
	Samples []*event.Sample
}

// A Moment is a state of a chain and how to request it from the API.
type Moment struct {
	// Block of the state.
	Block uint64
	// Seq that answers must have in X-Indexed-Seq; 0: any.
	Seq uint64
	// AsOf holds asOfBlock as it is sent; empty for the newest state.
	AsOf url.Values
	// Brief requests lists in one page each, and fewer filters: enough if other moments of the same chain are asked for
	// everything.
	Brief bool
}

// A Partner sends requests with its own key, and receives webhooks.
type Partner struct {
	ID            uint32 `json:"id"`
	Name          string `json:"name"`
	APIKey        string `json:"apiKey"`
	SigningSecret string `json:"signingSecret"`
}

// Questions returns what History.Questions returns.
func (c *Chain) Questions(at Moment, partners []Partner) ([]Question, error) {
	h, err := c.history()
	if err != nil {
		return nil, err
	}
	return h.Questions(at, partners)
}

// At returns the state at a block.
func (c *Chain) At(block uint64) (*State, error) {
	h, err := c.history()
	if err != nil {
		return nil, err
	}
	return h.at(block)
}

func (c *Chain) history() (*History, error) {
	h := &History{chainID: c.ID, router: c.Router, Times: c.Times, contradictory: true}
	for _, v := range c.Vaults {
		described := vault{address: common.Address(v.GetAddress()), startBlock: v.GetStartBlock(), name: v.GetName(),
			symbol: v.GetSymbol(), decimals: uint8(v.GetDecimals())}
		described.asset.address = common.Address(v.GetAsset().GetAddress())
		described.asset.symbol, described.asset.decimals = v.GetAsset().GetSymbol(), uint8(v.GetAsset().GetDecimals())
		if m := v.GetMappings(); len(m) > 0 {
			described.preset = m[0].GetPreset()
		}
		if !slices.Contains([]string{"", erc4626, erc7540}, described.preset) {
			return nil, fmt.Errorf("the oracle has no rules for vaults of the preset %s", described.preset)
		}
		h.vaults = append(h.vaults, described)
	}
	if err := h.append(c.Logs); err != nil {
		return nil, fmt.Errorf("read the logs: %w", err)
	}
	for _, s := range c.Samples {
		h.Facts = append(h.Facts, Fact{Vault: common.Address(s.GetVault()), Block: s.GetBlockNumber(), Time: s.GetBlockTime(),
			Index: sampleIndex, Event: s})
	}
	slices.SortStableFunc(h.Facts,
		func(a, b Fact) int { return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Index, b.Index)) })
	return h, nil
}

// Questions returns everything that can be asked about a moment: every read endpoint of the API document with its
// pages, orders and filters, with the key of each partner where one is needed. The first one is the list of vaults.
func (h *History) Questions(at Moment, partners []Partner) ([]Question, error) {
	s, err := h.at(at.Block)
	if err != nil {
		return nil, err
	}
	q := &questions{Moment: at, state: s}
	return q.everything(partners), nil
}

// Refusals returns questions that must be rejected in any state; some have a partner's key, corrupted.
func (h *History) Refusals(p Partner) ([]Question, error) {
	s, err := h.at(h.Head())
	if err != nil {
		return nil, err
	}
	q := &questions{state: s}
	return q.refusals(p), nil
}

// Pasts returns the blocks of a chain whose states are worth asking for: the middle, the ends, where a reorganisation
// may have begun, and both sides of the moments when a request expires without a log.
func (h *History) Pasts() []uint64 {
	head := h.Head()
	last := h.vaults[len(h.vaults)-1].startBlock
	blocks := []uint64{head * 2 / 3, head - 1, h.Final, last, head / 3}
	for _, at := range h.expiries() {
		blocks = append(blocks, at-1, at)
	}
	var distinct []uint64
	for _, b := range blocks {
		if !slices.Contains(distinct, b) && b >= last {
			distinct = append(distinct, b)
		}
	}
	return distinct
}

// expiries returns the first two blocks in which a request expires without having been funded or cancelled, and without
// a log of the expiry in that block.
func (h *History) expiries() (blocks []uint64) {
	newest, err := h.at(h.Head())
	if err != nil {
		return nil
	}
	for _, r := range newest.requests {
		if r.ExpiresAt == 0 || r.cancelledAt != 0 || r.fundedAt != 0 {
			continue
		}
		for block := r.Block; block <= h.Head(); block++ {
			if h.Times[block] >= r.ExpiresAt {
				if h.Times[block] != r.expiredAt && !slices.Contains(blocks, block) {
					blocks = append(blocks, block)
				}
				break
			}
		}
	}
	return blocks[:min(2, len(blocks))]
}

// Endpoint returns the path of a question with {address} for each address.
func (q Question) Endpoint() string {
	parts := strings.Split(q.path, "/")
	for i, part := range parts {
		if len(part) == 2+2*common.AddressLength {
			parts[i] = "{address}"
		}
	}
	return strings.Join(parts, "/")
}

// Same reports whether two questions are the same request.
func (q Question) Same(as Question) bool {
	return q.path == as.path && q.key == as.key && q.query.Encode() == as.query.Encode()
}

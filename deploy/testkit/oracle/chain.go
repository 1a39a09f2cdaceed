package oracle

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/schemas/event"
)

// A Chain is what a chain says about the vaults, as somebody else has read it. Its logs may contradict each other, which
// those of the reference contracts cannot: a claim of an unknown request, a deposit id that comes twice.
type Chain struct {
	ID     uint64
	Router common.Address
	// Vaults are described as the log describes them.
	Vaults []*event.Vault
	// Times of the blocks in Unix seconds, by number, from 0 to the newest.
	Times []uint64
	// Logs in chain order, without those that are quarantined.
	Logs []types.Log
}

// A Moment is a state of a chain and how the API is asked for it.
type Moment struct {
	// Block that the state is of.
	Block uint64
	// Seq that the answers have to be of, in X-Indexed-Seq; 0: any.
	Seq uint64
	// AsOf is asOfBlock as it is sent; none for the newest state.
	AsOf url.Values
	// Brief asks for lists in one page each, and for fewer filters: enough where other moments of the same chain are asked
	// for all.
	Brief bool
}

// A Partner is one who asks with a key of its own, and whom webhooks come to.
type Partner struct {
	ID            uint32 `json:"id"`
	Name          string `json:"name"`
	APIKey        string `json:"apiKey"`
	SigningSecret string `json:"signingSecret"`
}

// Questions are those of History.Questions.
func (c *Chain) Questions(at Moment, partners []Partner) ([]Question, error) {
	h := &History{chainID: c.ID, router: c.Router, Times: c.Times, contradictory: true}
	for _, v := range c.Vaults {
		described := vault{address: common.Address(v.GetAddress()), startBlock: v.GetStartBlock(), name: v.GetName(), symbol: v.GetSymbol(), decimals: uint8(v.GetDecimals())}
		described.asset.address = common.Address(v.GetAsset().GetAddress())
		described.asset.symbol, described.asset.decimals = v.GetAsset().GetSymbol(), uint8(v.GetAsset().GetDecimals())
		h.vaults = append(h.vaults, described)
	}
	if err := h.append(c.Logs); err != nil {
		return nil, fmt.Errorf("read the logs: %w", err)
	}
	return h.Questions(at, partners)
}

// Questions are all there is to ask about a moment: every read endpoint of the API document with its pages, orders and
// filters, the partners' with the key of each. The first one is the list of vaults.
func (h *History) Questions(at Moment, partners []Partner) ([]Question, error) {
	s, err := h.at(at.Block)
	if err != nil {
		return nil, err
	}
	v := view{state: s, asOf: at.AsOf, block: decimal(at.Block), brief: at.Brief}
	if at.Seq != 0 {
		v.seq = decimal(at.Seq)
	}
	return everything(v, partners), nil
}

// Refusals are the questions that have to be refused, whatever the chain says; some are asked with the key of a partner, spoilt.
func (h *History) Refusals(p Partner) ([]Question, error) {
	s, err := h.at(h.Head())
	if err != nil {
		return nil, err
	}
	return refusals(view{state: s}, p), nil
}

// Pasts are the blocks of a chain whose states are worth asking for: the middle, the ends, where a reorganisation may
// have begun, and both sides of the moments in which a request expires without a log.
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

// expiries are the first two blocks that let a request expire which nobody had funded, cancelled or expired.
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

// An Answer is what came to a question.
type Answer struct {
	answer
	id string // of the request
}

// Get sends a question. The error is one of the connection.
func (c *Client) Get(ctx context.Context, q Question) (Answer, error) {
	got, id, err := c.get(ctx, q)
	return Answer{got, id}, err
}

// Seq of the log up to which the answer is about, 0 where it names none.
func (a Answer) Seq() uint64 { return number(a.seq) }

// Block up to which the answer is about, 0 where it names none.
func (a Answer) Block() uint64 { return number(a.block) }

// Generation of the read models that the answer was made of, empty where it names none.
func (a Answer) Generation() string { return a.generation }

// number of a header, 0 where it has none.
func number(header string) uint64 {
	n, err := strconv.ParseUint(header, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Unavailable says that the server asked for patience: it could not read in time.
func (a Answer) Unavailable() bool { return a.status == http.StatusServiceUnavailable }

// Patient says that the server also said for how long.
func (a Answer) Patient() bool { return number(a.retryAfter) > 0 }

// Missing says that there is no such thing.
func (a Answer) Missing() bool { return a.status == http.StatusNotFound }

// Status of the HTTP answer.
func (a Answer) Status() int { return a.status }

// Refused says that the question itself was found wrong.
func (a Answer) Refused() bool { return a.status == http.StatusBadRequest }

// Compare gives every difference between the answer that the question expects and the one that came, a line each.
func (q Question) Compare(got Answer) []string { return q.compare(got.answer, got.id) }

// Endpoint is the path of a question with {address} for each address.
func (q Question) Endpoint() string {
	parts := strings.Split(q.path, "/")
	for i, part := range parts {
		if len(part) == 2+2*common.AddressLength {
			parts[i] = "{address}"
		}
	}
	return strings.Join(parts, "/")
}

// Same says whether two questions are sent as the same request.
func (q Question) Same(as Question) bool {
	return q.path == as.path && q.key == as.key && q.query.Encode() == as.query.Encode()
}

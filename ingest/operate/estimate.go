package operate

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/navlog/navlog/ingest/backup"
	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/registry"
)

// Estimate is the estimated cost of a backfill into a new log, from samples of the chain. Density varies along a chain,
// so logs, bytes and time are rough; the calls of a sparse history are not, since they follow from the blocks.
type Estimate struct {
	ChainID  uint64 `json:"chainId"`
	Endpoint string `json:"endpoint"`
	// FromBlock is the lowest start block, ToBlock the final block, HeadBlock the newest one. From CompareFrom, headers
	// are read and compared.
	FromBlock   uint64 `json:"fromBlock"`
	ToBlock     uint64 `json:"toBlock"`
	HeadBlock   uint64 `json:"headBlock"`
	CompareFrom uint64 `json:"compareFrom"`
	Samples     int    `json:"samples"` // ranges that were read
	// RangeBlocks is the longest range that will be read.
	RangeBlocks uint64 `json:"rangeBlocks"`
	// DatesLogs reports whether the logs have their time; nil if no sample had a log, and then the estimate assumes
	// that they do not.
	DatesLogs *bool   `json:"datesLogs,omitempty"`
	Logs      uint64  `json:"logs"`
	Seconds   float64 `json:"seconds"`
	// Calls of the backfill, up to the head, and their total.
	Calls []registry.MethodCalls `json:"calls"`
	Total registry.MethodCalls   `json:"total"`
	// FollowingPerDay is the cost of following the head for a day afterwards.
	FollowingPerDay []registry.MethodCalls `json:"followingPerDay"`
	FollowingTotal  registry.MethodCalls   `json:"followingTotal"`
	// Unpriced are the methods that are called but not named in chain.prices, if it names any.
	Unpriced []string `json:"unpriced,omitempty"`
	// Sampling is the cost of the estimate itself.
	Sampling []registry.MethodCalls `json:"sampling"`
}

// History is what a backfill into a new log reads, and how.
type History struct {
	ChainID      uint64
	Nodes        *rpc.Pool
	Reader       *rpc.Reader // of all vaults
	FromBlock    uint64      // the lowest start block
	Vaults       int
	PerBlock     float64 // NAV samples
	Window       uint64
	Proof        proof.Level
	Finality     rpc.Finality
	Poll         time.Duration // between two calls for the head
	InFlight     int           // ranges
	PerSecond    float64       // calls that the first endpoint allows; 0 for any number
	HeadInterval time.Duration
}

// Estimate samples this number of ranges of the chain, 1 or more, and returns the cost of a backfill. It must be the
// only use of the nodes. progress may be nil.
func (h History) Estimate(ctx context.Context, samples int, progress backup.Progress) (*Estimate, error) {
	n, err := h.Nodes.First(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	tip, err := n.Latest(ctx)
	if err != nil {
		return nil, err
	}
	latency := time.Since(began)
	final, err := finalBlock(ctx, h.Finality, n, tip)
	if err != nil {
		return nil, err
	}
	e := &Estimate{ChainID: h.ChainID, Endpoint: n.Name, FromBlock: h.FromBlock, ToBlock: final, HeadBlock: tip.Number}
	first, err := n.ByNumber(ctx, min(e.FromBlock, tip.Number))
	if err != nil {
		return nil, err
	}
	recordFrom := tip.Number + 1 - min(tip.Number+1, h.Window)
	e.CompareFrom = max(e.FromBlock, min(h.Proof.HeadersFrom(recordFrom), final+1))
	m := &estimator{History: h, e: e, latency: latency.Seconds(), bill: rpc.Bill{Prices: n.Prices()}}
	if e.FromBlock <= final {
		taken, err := h.Reader.Survey(ctx, n, e.FromBlock, e.ToBlock, samples,
			func(done, of uint64) { progress.Report("chain: samples", done, of) })
		if err != nil {
			return nil, err
		}
		m.strata, e.Samples, e.DatesLogs = taken.Strata, taken.Ranges, taken.DatesLogs
	}
	e.Sampling = h.Nodes.Calls()
	m.headerBytes = bytesOf(e.Sampling, "eth_getBlockByNumber")
	m.backfill(recordFrom)
	m.following(first, tip)
	return e, nil
}

func bytesOf(calls []registry.MethodCalls, method string) float64 {
	for _, m := range calls {
		if m.Method == method && m.Calls > 0 {
			return float64(m.Bytes) / float64(m.Calls)
		}
	}
	return 0
}

type estimator struct {
	History
	e           *Estimate
	strata      []rpc.Stratum
	latency     float64 // duration of a small call, in seconds
	headerBytes float64
	bill        rpc.Bill // at the prices of the sampled endpoint
}

func (m *estimator) add(method string, calls, bytes float64) {
	if n := int(math.Ceil(calls)); n > 0 {
		m.bill.Add(method, n)
		m.bill.Received(method, int(bytes))
	}
}

func (m *estimator) headers(method string, count float64) { m.add(method, count, count*m.headerBytes) }

func (m *estimator) backfill(recordFrom uint64) {
	e, vaults, endpoints := m.e, float64(m.Vaults), float64(m.Nodes.Size())
	var ranges, bytes, logs, dated, seconds float64
	for i := range m.strata {
		s := &m.strata[i]
		blocks := float64(s.To - s.From + 1)
		part := blocks / float64(s.Blocks)
		width := s.Width
		some := math.Ceil(blocks / width)
		e.RangeBlocks = max(e.RangeBlocks, min(uint64(width), e.ToBlock-e.FromBlock+1))
		ranges, bytes, logs = ranges+some, bytes+part*float64(s.Bytes), logs+part*float64(s.Logs)
		seconds += some * s.Took.Seconds()
		if below := min(s.To+1, max(s.From, e.CompareFrom)) - s.From; below > 0 {
			// blocks whose logs get their time from a header
			dated += part * float64(s.WithLogs) * float64(below) / blocks
		}
	}
	e.Logs = uint64(logs)
	compared := float64(max(e.ToBlock+1, e.CompareFrom) - e.CompareFrom)
	recorded := float64(e.ToBlock + 1 - min(e.ToBlock+1, max(recordFrom, e.FromBlock)))
	headers := max(compared, recorded)
	unfinal := float64(e.HeadBlock - max(min(e.ToBlock, e.HeadBlock), min(e.FromBlock, e.HeadBlock+1)-1))
	far := float64(0)
	if e.CompareFrom > e.FromBlock {
		far = 1
	}
	commits := far + max(ranges/rpc.MaxParts, bytes/rpc.CommitBytes)
	if e.DatesLogs != nil && *e.DatesLogs {
		dated = 0
	}
	seconds = seconds/float64(m.InFlight) + m.latency*(commits+2*unfinal+(headers+dated)/rpc.MaxBatchHeaders)
	samples := m.PerBlock * float64(max(e.HeadBlock, e.FromBlock)-e.FromBlock)
	calls := ranges + headers + dated + commits + 2*unfinal + 2*samples
	if limit := m.PerSecond; limit > 0 {
		seconds = max(seconds, calls/limit)
	}
	e.Seconds = math.Ceil(seconds)
	looks := 3 + math.Floor(seconds/m.HeadInterval.Seconds())
	vouches := far // one header and the logs of its block
	if m.Proof == proof.None {
		vouches = 0
	}
	learning := 2 * far // short ranges at the beginning
	m.add("eth_getLogs", ranges+learning+vouches+unfinal, bytes)
	m.headers("eth_getBlockByNumber", headers+commits+vouches+unfinal+4*looks+2*endpoints+samples)
	m.headers("eth_getBlockByHash", dated)
	m.add("eth_chainId", endpoints, 0)
	m.add("eth_getCode", vaults, 0)
	m.add("eth_call", (6*vaults+samples)*float64(m.Nodes.Agreement), 0)
	e.Calls = m.bill.Calls()
	e.Total = registry.Spent(e.Calls)
	for _, c := range e.Calls {
		if _, priced := m.bill.Prices[c.Method]; !priced && len(m.bill.Prices) > 0 {
			e.Unpriced = append(e.Unpriced, c.Method)
		}
	}
}

// following adds up the calls of a day at the head: the head and the final block at each poll, or only the head if
// finality is a depth, and the logs of each block, since its bloom may match a vault by chance.
func (m *estimator) following(first, tip *rpc.Header) {
	const day = 24 * 60 * 60
	m.bill = rpc.Bill{Prices: m.bill.Prices}
	looks := day / m.Poll.Seconds()
	perLook := 2.0
	if m.Finality.Depth > 0 {
		perLook = 1
	}
	m.headers("eth_getBlockByNumber", perLook*looks)
	if blocks := tip.Number - min(tip.Number, first.Number); blocks > 0 && tip.Time > first.Time {
		perDay := day * float64(blocks) / float64(tip.Time-first.Time)
		m.add("eth_getLogs", perDay, 0)
		m.headers("eth_getBlockByNumber", max(0, perDay-looks)) // those between two polls
		m.add("eth_call", perDay*m.PerBlock*float64(m.Nodes.Agreement), 0)
	}
	m.e.FollowingPerDay = m.bill.Calls()
	m.e.FollowingTotal = registry.Spent(m.e.FollowingPerDay)
}

// finalBlock returns the final block at an endpoint whose head is tip.
func finalBlock(ctx context.Context, f rpc.Finality, n *rpc.Node, tip *rpc.Header) (uint64, error) {
	if f.Depth > 0 {
		return f.Below(tip.Number), nil
	}
	h, err := f.At(ctx, n, tip)
	switch {
	case errors.Is(err, rpc.ErrNamesHead):
		return 0, rpc.Refuse("%v, so every block would be read by itself: set chain.finality to a depth, or to instant on "+
			"a chain whose blocks are final at once", err)
	case err != nil && rpc.NamesNoFinal(err):
		return 0, rpc.Refuse("%s names no finalized block, so every block would be read by itself: set chain.finality to "+
			"a depth", n.Name)
	case err != nil:
		return 0, err
	}
	return min(h.Number, tip.Number), nil
}

package workload

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// Version must be raised when the generator changes: the same options then give a different log.
const Version = 1

const (
	ChainID       = 31337
	Vaults        = 6
	Partners      = 20
	BigPartner    = 1 // has a sixth of all deposits
	GenesisTime   = 1_700_000_000
	SecondsABlock = 12
	maxUnswept    = 500 // unswept deposits of one vault
	Deepest       = 8   // maximum number of blocks in a reorganisation

	logsABlock   = 10
	finalAfter   = 64 // in blocks
	neverClosing = 200
)

// How often the newest blocks are reorganised, in blocks: during the history, and after it.
const (
	reorgEvery     = 400
	reorgEveryLive = 20
)

// Options describe the chain.
type Options struct {
	Events int // logs of its history, without those that a reorganisation retracts
	Users  int // number of users at the end of the history
	// LiveLogs is the number of logs in each block after the history, none of which is retracted. With 0 blocks
	// continue as in the history, but with reorganisations so frequent that a benchmark of a few minutes sees some.
	LiveLogs int
}

// Chain generates the log of a chain, unit by unit.
type Chain struct {
	Seq   uint64 // of the last record
	Block uint64 // newest block
	Made  int    // logs generated
	Users int    // users so far
	Logs  uint64 // records of logs, including retracted ones and their retractions

	options Options
	rng     *rand.Rand
	zipf    *rand.Zipf
	arrive  float64 // probability that a user is new
	router  float64 // probability that a deposit is the router's
	open    int     // target numbers per vault of requests that are unfunded and open, and of funded ones
	funded  int
	vaults  [Vaults]ledger
	recent  []block // the newest blocks, oldest first
	reorged uint64  // newest block after the last reorganisation
	turns   uint64  // counts branches, so that their blocks get different hashes
	from    uint64  // records up to this seq are not emitted
	emit    func(*event.Record) error
}

// ledger is the state on which one vault's next events depend.
type ledger struct {
	deposits, swept, requests, navs, sweeps uint64
	limit                                   uint64 // number of deposits that triggers a sweep
	open, funded                            []request
}

type request struct {
	index  uint64
	owner  common.Address
	amount *big.Int
}

// pendingEvent is an event that is not yet a log of a block.
type pendingEvent struct {
	number int // of the event: its transaction stays the same in another block
	vault  int
	event  contracts.Event
}

// block is what reorganise needs to know about a block.
type block struct {
	number uint64
	first  uint64 // seq of its first record
	hash   common.Hash
	parent common.Hash
	events []pendingEvent
}

// New returns a chain before its first record. It emits only records after the seq from.
func New(o Options, from uint64, emit func(*event.Record) error) *Chain {
	rng := rand.New(rand.NewPCG(1, 1))
	const depositsAndRequests = 0.63 // share of all events, without the router's
	c := &Chain{options: o, rng: rng, zipf: rand.NewZipf(rng, 1.1, 20, uint64(o.Users-1)), from: from, emit: emit,
		arrive: min(1, 1.25*float64(o.Users)/(depositsAndRequests*float64(o.Events))), router: 1.0 / 6}
	queue := min(30_000, o.Events/100) / Vaults
	c.open, c.funded = queue*7/10, queue*3/10
	for i := range c.vaults {
		c.vaults[i].limit = c.nextLimit()
	}
	return c
}

func (c *Chain) nextLimit() uint64 { return 100 + c.rng.Uint64N(maxUnswept-120) }

// VaultAddress, UserAddress and Router are the addresses of the chain's vaults, users and router contract.
func VaultAddress(i int) common.Address { return numbered(0xaa, uint64(i)) }
func UserAddress(i int) common.Address  { return numbered(0xbb, uint64(i)) }

// Router is a contract that deposits for others.
var Router = numbered(0xee, 0)

// numbered spreads numbers over the address space, so that consecutive numbers are not neighbours in a table.
func numbered(kind byte, n uint64) (a common.Address) {
	x := (n + 1) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	binary.BigEndian.PutUint64(a[:8], x*0xbf58476d1ce4e5b9)
	a[8] = kind
	binary.BigEndian.PutUint64(a[12:], n)
	return a
}

// hash is a fast, non-cryptographic mix: millions of hashes are needed.
func hash(a, b, c uint64) (h common.Hash) {
	x := a*0x9e3779b97f4a7c15 ^ b*0xc2b2ae3d27d4eb4f ^ c*0x165667b19e3779f9
	for i := range 4 {
		x ^= x >> 31
		x *= 0xbf58476d1ce4e5b9
		x ^= x >> 27
		x *= 0x94d049bb133111eb
		binary.BigEndian.PutUint64(h[8*i:], x^x>>31)
	}
	return h
}

// logID returns the log's id.
func logID() []byte { h := hash(7, 7, 7); return h[:16] }

func timeOf(block uint64) uint64 { return GenesisTime + block*SecondsABlock }

// Start writes the vault records.
func (c *Chain) Start() error {
	for i := range Vaults {
		a := VaultAddress(i)
		r := &event.Record{Boundary: i == Vaults-1, Fact: &event.Record_Vault{Vault: &event.Vault{
			Address: a[:], StartBlock: 1, Name: fmt.Sprintf("Vault %d", i+1), Symbol: fmt.Sprintf("v%d", i+1), Decimals: 6,
			Asset: &event.Token{Address: numbered(0xcc, uint64(i)).Bytes(), Symbol: "USDX", Decimals: 6},
		}}}
		if i == 0 {
			r.Origin = &event.Origin{LogId: logID(), GenesisHash: make([]byte, 32)}
		}
		if err := c.add(func() (*event.Record, error) { return r, nil }); err != nil {
			return err
		}
	}
	return nil
}

// add appends the next record unless the log already has it.
func (c *Chain) add(record func() (*event.Record, error)) error {
	c.Seq++
	if c.Seq <= c.from {
		return nil
	}
	r, err := record()
	if err != nil {
		return err
	}
	r.Seq, r.ChainId = c.Seq, ChainID
	return c.emit(r)
}

// Cursor returns the cursor that ingest would commit with the records so far.
func (c *Chain) Cursor() *event.Cursor {
	out := &event.Cursor{LogId: logID(), GenesisHash: make([]byte, 32), ChainId: ChainID, InstanceId: logID(), Seq: c.Seq,
		FinalBlock: c.Block - min(c.Block, finalAfter)}
	out.ReferralBlock = out.FinalBlock
	if len(c.recent) > 0 {
		out.Head = c.recent[len(c.recent)-1].fact()
	}
	for i := range Vaults {
		out.Vaults = append(out.Vaults, &event.Coverage{Address: VaultAddress(i).Bytes(), StartBlock: 1, CoveredTo: c.Block})
	}
	return out
}

// Next writes the next unit: a block, or a reorganisation if one is due.
func (c *Chain) Next() error {
	every := uint64(reorgEvery)
	if c.Made >= c.options.Events {
		every = reorgEveryLive
		if c.options.LiveLogs > 0 {
			return c.mine(c.options.LiveLogs)
		}
	}
	if c.Block >= c.reorged+every {
		return c.reorganise(1 + c.rng.IntN(Deepest))
	}
	return c.mine(logsABlock)
}

// mine writes a block with that many new logs.
func (c *Chain) mine(logs int) error {
	all := make([]pendingEvent, 0, logs)
	for range logs {
		vault := c.rng.IntN(Vaults)
		all = append(all, pendingEvent{c.Made, vault, c.event(&c.vaults[vault])})
		c.Made++
	}
	return c.enter(all, true)
}

// reorganise writes a unit that retracts the newest depth blocks and repeats their events, in the same order, in new
// blocks, one more than before, so that some events move to an earlier or later block.
func (c *Chain) reorganise(depth int) error {
	depth = min(depth, len(c.recent))
	gone := c.recent[len(c.recent)-depth:]
	var all []pendingEvent
	for _, b := range slices.Backward(gone) {
		seq := b.first + uint64(len(b.events)) // seq of the block's own record
		if err := c.add(func() (*event.Record, error) {
			return &event.Record{Retracts: seq, Fact: &event.Record_Block{Block: b.fact()}}, nil
		}); err != nil {
			return err
		}
		for i := range slices.Backward(b.events) {
			c.Logs++
			if err := c.add(func() (*event.Record, error) {
				l, err := b.log(i)
				return &event.Record{Retracts: b.first + uint64(i), Fact: &event.Record_Log{Log: l}}, err
			}); err != nil {
				return err
			}
		}
	}
	for _, b := range gone {
		all = append(all, b.events...)
	}
	c.recent = c.recent[:len(c.recent)-depth]
	c.Block -= uint64(depth)
	c.turns++
	for left := depth + 1; left > 0; left-- {
		here := len(all)
		if left > 1 {
			here = min(len(all), c.rng.IntN(2*len(all)/left+1))
		}
		if err := c.enter(all[:here], left == 1); err != nil {
			return err
		}
		all = all[here:]
	}
	c.reorged = c.Block
	return nil
}

// enter writes a block.
func (c *Chain) enter(all []pendingEvent, boundary bool) error {
	c.Block++
	b := block{number: c.Block, first: c.Seq + 1, hash: hash(c.Block, c.turns, 1), events: slices.Clone(all)}
	if len(c.recent) > 0 {
		b.parent = c.recent[len(c.recent)-1].hash
	}
	c.Logs += uint64(len(b.events))
	for i := range b.events {
		if err := c.add(func() (*event.Record, error) {
			l, err := b.log(i)
			return &event.Record{Fact: &event.Record_Log{Log: l}}, err
		}); err != nil {
			return err
		}
	}
	if len(c.recent) == Deepest {
		c.recent = append(c.recent[:0], c.recent[1:]...)
	}
	c.recent = append(c.recent, b)
	return c.add(func() (*event.Record, error) {
		return &event.Record{Boundary: boundary, Fact: &event.Record_Block{Block: b.fact()}}, nil
	})
}

func (b *block) fact() *event.Block {
	return &event.Block{Number: b.number, Hash: b.hash.Bytes(), ParentHash: b.parent.Bytes(), Time: timeOf(b.number)}
}

// log returns the block's i-th log.
func (b *block) log(i int) (*event.Log, error) {
	topics, data, err := contracts.Encode(b.events[i].event)
	if err != nil {
		return nil, err
	}
	raw := make([][]byte, len(topics))
	for i := range topics {
		raw[i] = topics[i][:]
	}
	a, tx := VaultAddress(b.events[i].vault), hash(uint64(b.events[i].number), 0, 2)
	return &event.Log{Address: a[:], Topics: raw, Data: data, BlockNumber: b.number, BlockHash: b.hash.Bytes(),
		BlockTime: timeOf(b.number), TxHash: tx[:], TxIndex: uint32(i), LogIndex: uint32(i)}, nil
}

// event generates the next event of a vault. While enough requests are open, they are funded and closed slightly faster
// than new ones arrive. When there is no request to act on, the event is a deposit.
func (c *Chain) event(v *ledger) contracts.Event {
	if v.deposits-v.swept >= v.limit {
		from := v.swept + 1
		v.swept = v.deposits - c.rng.Uint64N(20)
		v.sweeps++
		v.limit = c.nextLimit()
		return contracts.DepositsSwept{SweepID: n(v.sweeps), Custodian: numbered(0xdd, 0), FromDepositID: n(from),
			ToDepositID: n(v.swept), Assets: n(1)}
	}
	switch kind := c.rng.IntN(1000); {
	case kind < 130:
		return c.request(v)
	case kind < 270 && len(v.open) > c.open:
		r := take(c.rng, &v.open)
		v.funded = append(v.funded, r)
		return contracts.WithdrawalFunded{RequestIndex: n(r.index), Owner: r.owner, SettlementID: n(1), Shares: r.amount,
			Assets: r.amount}
	case kind < 410 && len(v.funded) > c.funded:
		r := take(c.rng, &v.funded)
		return contracts.WithdrawalClaimed{RequestIndex: n(r.index), Owner: r.owner, Receiver: r.owner, Shares: r.amount,
			Assets: r.amount}
	case kind < 416 && len(v.open) > c.open:
		r := take(c.rng, &v.open)
		return contracts.WithdrawalCancelled{RequestIndex: n(r.index), Owner: r.owner, Shares: r.amount}
	case kind < 420 && len(v.open) > c.open:
		r := take(c.rng, &v.open)
		return contracts.WithdrawalExpired{RequestIndex: n(r.index), Owner: r.owner, Shares: r.amount}
	case kind >= 420 && kind < 430:
		v.navs++
		price := new(big.Int).Add(big.NewInt(1e18), big.NewInt(int64(v.navs)*1e11))
		return contracts.NavUpdated{NavID: n(v.navs), Updater: numbered(0xdd, 1), NavPerShare: price, TotalAssets: c.amount(),
			TotalSupply: c.amount()}
	}
	v.deposits++
	owner := Router
	if c.rng.Float64() >= c.router {
		owner = c.user()
	}
	amount := c.amount()
	return contracts.DepositAccepted{DepositID: n(v.deposits), Owner: owner, PartnerID: c.partner(), Sender: owner,
		Assets: amount, Shares: amount}
}

// request generates a request that will be funded and claimed, cancelled, or expire, or that never closes. Some are
// made by the router.
func (c *Chain) request(v *ledger) contracts.Event {
	owner := Router
	if c.rng.IntN(50) > 0 {
		owner = c.user()
	}
	r := request{index: v.requests, owner: owner, amount: c.amount()}
	v.requests++
	e := contracts.WithdrawalRequested{RequestIndex: n(r.index), Owner: r.owner, PartnerID: c.partner(), Receiver: r.owner,
		Shares: r.amount, AssetsEstimate: r.amount}
	if c.rng.IntN(neverClosing) == 0 {
		return e
	}
	v.open = append(v.open, r)
	if c.rng.IntN(5) == 0 {
		e.ExpiresAt = timeOf(c.Block + c.rng.Uint64N(200_000))
	}
	return e
}

// scatter is an odd multiplier that permutes the user numbers, at least nearly.
const scatter = 2654435761

// user returns a new user or one of the existing ones, mostly one of a few. How active a user is does not depend on
// when it arrived.
func (c *Chain) user() common.Address {
	if c.Users < c.options.Users && (c.Users == 0 || c.rng.Float64() < c.arrive) {
		c.Users++
		return UserAddress(c.Users - 1)
	}
	rank := c.zipf.Uint64()
	who := int(rank * scatter % uint64(c.options.Users))
	if who >= c.Users { // not created yet
		who = c.rng.IntN(c.Users)
	}
	return UserAddress(who)
}

// partner returns no partner, the big one, or one of the others.
func (c *Chain) partner() uint32 {
	switch k := c.rng.IntN(60); {
	case k < 36:
		return 0
	case k < 46:
		return BigPartner
	default:
		return BigPartner + 1 + uint32(c.rng.IntN(Partners-1))
	}
}

// amount returns between 1 and 10 million units with 6 decimals; small amounts are more frequent.
func (c *Chain) amount() *big.Int {
	return big.NewInt(int64(1e6 * math.Pow(10, 7*c.rng.Float64())))
}

func take(rng *rand.Rand, from *[]request) request {
	i, last := rng.IntN(len(*from)), len(*from)-1
	r := (*from)[i]
	(*from)[i] = (*from)[last]
	*from = (*from)[:last]
	return r
}

func n(v uint64) *big.Int { return new(big.Int).SetUint64(v) }

package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

const (
	chainID        = 31337
	vaultCount     = 6
	partnerCount   = 20
	eventsPerBlock = 10
	secondsABlock  = 12
	genesisTime    = 1_700_000_000
	maxUnswept     = 500       // of one vault
	deliveryCount  = 1_000_000 // of partner 1
)

// chain makes up the log of a chain from a seed: vaults with deposits, sweeps,
// NAVs and withdrawal requests in every state. A few users do much, most of
// them little; one partner is large, many are small.
type chain struct {
	rng    *rand.Rand
	users  int // how many there will be
	known  int // how many there are
	spread float64
	vaults [vaultCount]ledger
	seq    uint64
	block  uint64
	parent [32]byte
	emit   func(*event.Record) error
}

// ledger is what one vault's next events depend on.
type ledger struct {
	deposits, swept, requests, navs, sweeps uint64
	limit                                   uint64 // sweep at so many deposits
	open, funded                            []request
}

type request struct {
	index  uint64
	owner  common.Address
	amount *big.Int
}

func newChain(seed uint64, events, users int, emit func(*event.Record) error) *chain {
	c := &chain{rng: rand.New(rand.NewPCG(seed, 1)), users: users, spread: 1.25 * float64(users) / (0.6 * float64(events)), emit: emit}
	for i := range c.vaults {
		c.vaults[i].limit = c.nextLimit()
	}
	return c
}

func (c *chain) nextLimit() uint64 { return 100 + c.rng.Uint64N(maxUnswept-120) }

func vaultAddress(i int) common.Address { return numbered(0xaa, uint64(i)) }

func userAddress(i int) common.Address { return numbered(0xbb, uint64(i)) }

// numbered spreads numbers over the addresses, so that neighbours are not
// neighbours in a table.
func numbered(kind byte, n uint64) (a common.Address) {
	x := (n + 1) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	binary.BigEndian.PutUint64(a[:8], x*0xbf58476d1ce4e5b9)
	a[8] = kind
	binary.BigEndian.PutUint64(a[12:], n)
	return a
}

// start writes the origin and the vaults.
func (c *chain) start(logID []byte) error {
	for i := range vaultCount {
		a := vaultAddress(i)
		r := &event.Record{Fact: &event.Record_Vault{Vault: &event.Vault{
			Address: a[:], StartBlock: 1, Name: fmt.Sprintf("Vault %d", i+1), Symbol: fmt.Sprintf("v%d", i+1), Decimals: 6,
			Asset: &event.Token{Address: numbered(0xcc, uint64(i)).Bytes(), Symbol: "USDX", Decimals: 6},
		}}, Boundary: i == vaultCount-1}
		if i == 0 {
			r.Origin = &event.Origin{LogId: logID, GenesisHash: make([]byte, 32)}
		}
		if err := c.add(r); err != nil {
			return err
		}
	}
	return nil
}

func (c *chain) add(r *event.Record) error {
	c.seq++
	r.Seq, r.ChainId = c.seq, chainID
	return c.emit(r)
}

func (c *chain) hash() []byte {
	var h [32]byte
	for i := range 4 {
		binary.BigEndian.PutUint64(h[8*i:], c.rng.Uint64())
	}
	return h[:]
}

// next writes one block and its logs.
func (c *chain) next() error {
	c.block++
	hash, time := c.hash(), uint64(genesisTime)+c.block*secondsABlock
	for i := range eventsPerBlock {
		vault := c.rng.IntN(vaultCount)
		topics, data, err := contracts.Encode(c.event(&c.vaults[vault]))
		if err != nil {
			return err
		}
		raw := make([][]byte, len(topics))
		for i := range topics {
			raw[i] = topics[i][:]
		}
		a := vaultAddress(vault)
		err = c.add(&event.Record{Fact: &event.Record_Log{Log: &event.Log{Address: a[:], Topics: raw, Data: data, BlockNumber: c.block,
			BlockHash: hash, BlockTime: time, TxHash: c.hash(), TxIndex: uint32(i), LogIndex: uint32(i)}}})
		if err != nil {
			return err
		}
	}
	r := &event.Record{Boundary: true, Fact: &event.Record_Block{Block: &event.Block{Number: c.block, Hash: hash, ParentHash: append([]byte{}, c.parent[:]...), Time: time}}}
	copy(c.parent[:], hash)
	return c.add(r)
}

// event makes the next event of a vault.
func (c *chain) event(v *ledger) contracts.Event {
	if v.deposits-v.swept >= v.limit {
		from := v.swept + 1
		v.swept = v.deposits - c.rng.Uint64N(20)
		v.sweeps++
		v.limit = c.nextLimit()
		return contracts.DepositsSwept{SweepID: n(v.sweeps), Custodian: numbered(0xdd, 0), FromDepositID: n(from), ToDepositID: n(v.swept), Assets: n(1)}
	}
	switch kind := c.rng.IntN(1000); {
	case kind < 130:
		return c.request(v)
	case kind < 250 && len(v.open) > 500:
		r := take(c.rng, &v.open)
		v.funded = append(v.funded, r)
		return contracts.WithdrawalFunded{RequestIndex: n(r.index), Owner: r.owner, SettlementID: n(1), Shares: r.amount, Assets: r.amount}
	case kind < 365 && len(v.funded) > 100:
		r := take(c.rng, &v.funded)
		return contracts.WithdrawalClaimed{RequestIndex: n(r.index), Owner: r.owner, Receiver: r.owner, Shares: r.amount, Assets: r.amount}
	case kind < 375 && len(v.open) > 500:
		r := take(c.rng, &v.open)
		return contracts.WithdrawalCancelled{RequestIndex: n(r.index), Owner: r.owner, Shares: r.amount}
	case kind < 385:
		v.navs++
		price := new(big.Int).Add(big.NewInt(1e18), big.NewInt(int64(v.navs)*1e11))
		return contracts.NavUpdated{NavID: n(v.navs), Updater: numbered(0xdd, 1), NavPerShare: price, TotalAssets: c.amount(), TotalSupply: c.amount()}
	}
	v.deposits++
	owner := c.user()
	amount := c.amount()
	return contracts.DepositAccepted{DepositID: n(v.deposits), Owner: owner, PartnerID: c.partner(), Sender: owner, Assets: amount, Shares: amount}
}

func (c *chain) request(v *ledger) contracts.Event {
	r := request{index: v.requests, owner: c.user(), amount: c.amount()}
	v.requests++
	v.open = append(v.open, r)
	e := contracts.WithdrawalRequested{RequestIndex: n(r.index), Owner: r.owner, PartnerID: c.partner(), Receiver: r.owner, Shares: r.amount, AssetsEstimate: r.amount}
	if c.rng.IntN(5) == 0 {
		e.ExpiresAt = genesisTime + (c.block+c.rng.Uint64N(200_000))*secondsABlock
	}
	return e
}

// user is a new one, or one of those that are there, the early ones more
// often.
func (c *chain) user() common.Address {
	if c.known < c.users && (c.known == 0 || c.rng.Float64() < c.spread) {
		c.known++
		return userAddress(c.known - 1)
	}
	return userAddress(int(float64(c.known) * math.Pow(c.rng.Float64(), 2)))
}

// partner is none, the large one, or one of the others.
func (c *chain) partner() uint32 {
	switch k := c.rng.IntN(100); {
	case k < 60:
		return 0
	case k < 80:
		return 1
	default:
		return 2 + uint32(c.rng.IntN(partnerCount-1))
	}
}

// amount is between 1 and 10 million units of 6 decimals, small ones more
// often.
func (c *chain) amount() *big.Int {
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

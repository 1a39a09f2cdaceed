package projections

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// script writes the history of a chain as ingest would: blocks, backfills and
// reorganisations, in whole units.
type script struct {
	records []*event.Record
	blocks  []block // not final yet, oldest first
	number  uint64
	time    uint64
	salt    uint64 // makes the hashes of another branch others
}

// block is one block with its logs; kept says which records hold it now.
type block struct {
	number, time uint64
	hash         common.Hash
	logs         []*event.Log
	kept         []*event.Record
}

type said struct {
	vault common.Address
	event contracts.Event
}

func newScript() *script { return &script{time: 1_700_000_000} }

func (s *script) seq() uint64 { return uint64(len(s.records)) }

func (s *script) put(r *event.Record) *event.Record {
	r.Seq, r.ChainId = s.seq()+1, chainID
	if r.Seq == 1 {
		r.Origin = &event.Origin{LogId: []byte("0123456789abcdef"), GenesisHash: make([]byte, 32)}
	}
	s.records = append(s.records, r)
	return r
}

// boundary ends a unit.
func (s *script) boundary() { s.records[len(s.records)-1].Boundary = true }

func hashOf(parts ...uint64) common.Hash {
	var b []byte
	for _, p := range parts {
		b = binary.BigEndian.AppendUint64(b, p)
	}
	return crypto.Keccak256Hash(b)
}

// make builds the next block without appending it.
func (s *script) make(after uint64, logs ...said) block {
	s.salt++
	s.number++
	s.time += after
	b := block{number: s.number, time: s.time, hash: hashOf(s.number, s.salt)}
	for i, l := range logs {
		b.logs = append(b.logs, logOf(b.number, b.time, b.hash, uint32(i), l))
	}
	return b
}

func logOf(number, time uint64, hash common.Hash, index uint32, l said) *event.Log {
	topics, data, err := contracts.Encode(l.event)
	if err != nil {
		panic(err)
	}
	raw := &event.Log{Address: l.vault.Bytes(), Data: data, BlockNumber: number, BlockHash: hash.Bytes(), BlockTime: time,
		TxHash: hashOf(number, uint64(index), binary.BigEndian.Uint64(hash[:8])).Bytes(), TxIndex: index, LogIndex: index}
	for _, t := range topics {
		raw.Topics = append(raw.Topics, t.Bytes())
	}
	return raw
}

func (s *script) enter(b block) {
	b.kept = nil
	for _, l := range b.logs {
		b.kept = append(b.kept, s.put(&event.Record{Fact: &event.Record_Log{Log: l}}))
	}
	b.kept = append(b.kept, s.put(&event.Record{Fact: &event.Record_Block{Block: &event.Block{
		Number: b.number, Hash: b.hash.Bytes(), ParentHash: make([]byte, 32), Time: b.time}}}))
	s.blocks = append(s.blocks, b)
	s.number, s.time = b.number, b.time
}

// mine appends a block, 12 seconds after the last one.
func (s *script) mine(logs ...said) {
	s.enter(s.make(12, logs...))
	s.boundary()
}

// raw appends a block with a log that no Solidity compiler wrote.
func (s *script) raw(l *event.Log) {
	b := s.make(12)
	l.BlockNumber, l.BlockTime, l.BlockHash = b.number, b.time, b.hash.Bytes()
	b.logs = append(b.logs, l)
	s.enter(b)
	s.boundary()
}

// retract takes the newest blocks back, newest record first, and gives them.
func (s *script) retract(depth int) []block {
	cut := len(s.blocks) - depth
	gone := append([]block(nil), s.blocks[cut:]...)
	for i := len(gone) - 1; i >= 0; i-- {
		for j := len(gone[i].kept) - 1; j >= 0; j-- {
			s.put(&event.Record{Retracts: gone[i].kept[j].GetSeq(), Fact: gone[i].kept[j].Fact})
		}
	}
	s.blocks = s.blocks[:cut]
	if depth > 0 {
		s.number, s.time = gone[0].number-1, gone[0].time-1
	}
	return gone
}

// backfill appends old logs of a vault in one unit that ends with the block they reach.
func (s *script) backfill(from, time uint64, logs ...said) {
	for i, l := range logs {
		n := from + uint64(i)
		s.put(&event.Record{Fact: &event.Record_Log{Log: logOf(n, time+uint64(i), hashOf(n), 1000, l)}})
	}
	s.put(&event.Record{Fact: &event.Record_Block{Block: &event.Block{Number: from + uint64(len(logs)), Hash: make([]byte, 32), ParentHash: make([]byte, 32), Time: time + uint64(len(logs))}}})
	s.boundary()
}

func (s *script) vault(a common.Address) {
	s.put(&event.Record{Fact: &event.Record_Vault{Vault: &event.Vault{Address: a.Bytes(), StartBlock: 1, Name: "Vault " + a.Hex()[38:], Symbol: "V", Decimals: 18,
		Asset: &event.Token{Address: a.Bytes(), Symbol: "A", Decimals: 6}}}})
	s.boundary()
}

func (s *script) decision(kind string) {
	s.put(&event.Record{Fact: &event.Record_Decision{Decision: &event.Decision{Kind: kind, Reason: "test", Time: 1}}})
	s.boundary()
}

func vaultAt(i int) common.Address { return common.BigToAddress(big.NewInt(int64(0xa0000 + i))) }
func userAt(i int) common.Address  { return common.BigToAddress(big.NewInt(int64(0xb0000 + i))) }

func whole(n int64) *big.Int { return big.NewInt(n) }

// power is 2^n + plus.
func power(n uint, plus int64) *big.Int {
	return new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), n), big.NewInt(plus))
}

// anything is a random log. A few users, requests and partners, so that things
// meet; many of them cannot be, and now and then one is too large.
func anything(rng *rand.Rand, vaults, users int) said {
	amount := func() *big.Int {
		switch rng.IntN(12) {
		case 0:
			return whole(0)
		case 1:
			return power(191, -1)
		case 2:
			if rng.IntN(4) == 0 {
				return power([]uint{191, 255, 256}[rng.IntN(3)], -int64(rng.IntN(2)))
			}
		}
		return whole(rng.Int64N(1_000_000))
	}
	for {
		v, err := clean(said{vaultAt(rng.IntN(vaults)), anyEvent(rng, userAt(rng.IntN(users)), userAt(rng.IntN(users)), amount)})
		if err == nil {
			return v
		}
	}
}

// clean refuses what cannot be written as 256 bits.
func clean(l said) (said, error) {
	_, _, err := contracts.Encode(l.event)
	return l, err
}

func anyEvent(rng *rand.Rand, owner, other common.Address, amount func() *big.Int) contracts.Event {
	index, partner := whole(rng.Int64N(6)), uint32(rng.IntN(4))
	switch rng.IntN(10) {
	case 0, 1, 2:
		return contracts.DepositAccepted{DepositID: whole(1 + rng.Int64N(50)), Owner: owner, PartnerID: partner, Sender: other, Assets: amount(), Shares: amount()}
	case 3, 4:
		return contracts.WithdrawalRequested{RequestIndex: index, Owner: owner, PartnerID: partner, Receiver: other, Shares: amount(), AssetsEstimate: amount(), ExpiresAt: uint64(rng.IntN(3)) * 1_700_000_100}
	case 5:
		return contracts.WithdrawalFunded{RequestIndex: index, Owner: owner, SettlementID: whole(1), Shares: amount(), Assets: amount()}
	case 6:
		return contracts.WithdrawalClaimed{RequestIndex: index, Owner: owner, Receiver: other, Shares: amount(), Assets: amount()}
	case 7:
		if rng.IntN(2) == 0 {
			return contracts.WithdrawalCancelled{RequestIndex: index, Owner: owner, Shares: amount()}
		}
		return contracts.WithdrawalExpired{RequestIndex: index, Owner: owner, Shares: amount()}
	case 8:
		return contracts.NavUpdated{NavID: whole(1), Updater: other, NavPerShare: amount(), TotalAssets: amount(), TotalSupply: amount()}
	default:
		if rng.IntN(2) == 0 {
			return contracts.WithdrawalsSettled{SettlementID: whole(1), Funder: other, RequestCount: whole(1), Shares: amount(), Assets: amount(), NavPerShare: amount()}
		}
		return contracts.DepositsSwept{SweepID: whole(1), Custodian: other, FromDepositID: whole(rng.Int64N(5)), ToDepositID: whole(rng.Int64N(9)), Assets: amount()}
	}
}

// randomHistory is steps random units: blocks, reorganisations to new branches
// and back to old ones, a backfill of one more vault.
func randomHistory(rng *rand.Rand, steps int) *script {
	s := newScript()
	vaults := 2
	s.vault(vaultAt(0))
	var old []block // a branch that was left
	some := func() (out []said) {
		for range rng.IntN(5) {
			out = append(out, anything(rng, vaults, 5))
		}
		return out
	}
	for range steps {
		switch k := rng.IntN(20); {
		case k < 12:
			s.mine(some()...)
		case k < 17 && len(s.blocks) > 0:
			depth := 1 + rng.IntN(len(s.blocks))
			gone := s.retract(depth)
			if len(old) > 0 && old[0].number == gone[0].number && rng.IntN(3) > 0 {
				for _, b := range old { // A -> B -> A
					s.enter(b)
				}
			} else {
				for range rng.IntN(depth + 2) {
					s.enter(s.make(uint64(1+rng.IntN(20)), some()...))
				}
			}
			s.boundary()
			old = gone
		case k < 18 && vaults < 4 && len(s.blocks) > 0 && s.blocks[0].number > 7: // all of it is final
			vaults++
			s.vault(vaultAt(vaults - 1))
			var logs []said
			for range 1 + rng.IntN(6) {
				l := anything(rng, 1, 5)
				l.vault = vaultAt(vaults - 1)
				logs = append(logs, l)
			}
			s.backfill(1, 1_600_000_000, logs...)
		case k < 19:
			s.decision(fmt.Sprintf("test-%d", k))
		}
		if over := len(s.blocks) - 6; over > 0 { // final now
			s.blocks, old = s.blocks[over:], nil
		}
	}
	return s
}

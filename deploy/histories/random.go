package histories

import (
	"fmt"
	"math/big"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
)

// VaultAt and UserAt are the addresses of the i-th vault and user.
func VaultAt(i int) common.Address { return common.BigToAddress(big.NewInt(int64(0xa0000 + i))) }
func UserAt(i int) common.Address  { return common.BigToAddress(big.NewInt(int64(0xb0000 + i))) }

// Whole is a number of the chain.
func Whole(n int64) *big.Int { return big.NewInt(n) }

// Power is 2^n + plus.
func Power(n uint, plus int64) *big.Int {
	return new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), n), big.NewInt(plus))
}

// Anything is a random log. A few users, requests and partners, so that things
// meet; many of them cannot be, and now and then one is too large.
func Anything(rng *rand.Rand, vaults, users int) Said {
	amount := func() *big.Int {
		switch rng.IntN(12) {
		case 0:
			return Whole(0)
		case 1:
			return Power(191, -1)
		case 2:
			if rng.IntN(4) == 0 {
				return Power([]uint{191, 255, 256}[rng.IntN(3)], -int64(rng.IntN(2)))
			}
		}
		return Whole(rng.Int64N(1_000_000))
	}
	for {
		v, err := clean(Said{VaultAt(rng.IntN(vaults)), anyEvent(rng, UserAt(rng.IntN(users)), UserAt(rng.IntN(users)), amount)})
		if err == nil {
			return v
		}
	}
}

// clean refuses what cannot be written as 256 bits.
func clean(l Said) (Said, error) {
	_, _, err := contracts.Encode(l.Event)
	return l, err
}

func anyEvent(rng *rand.Rand, owner, other common.Address, amount func() *big.Int) contracts.Event {
	index, partner := Whole(rng.Int64N(6)), uint32(rng.IntN(4))
	switch rng.IntN(10) {
	case 0, 1, 2:
		return contracts.DepositAccepted{DepositID: Whole(1 + rng.Int64N(12)), Owner: owner, PartnerID: partner, Sender: other, Assets: amount(), Shares: amount()}
	case 3, 4:
		return contracts.WithdrawalRequested{RequestIndex: index, Owner: owner, PartnerID: partner, Receiver: other, Shares: amount(), AssetsEstimate: amount(), ExpiresAt: uint64(rng.IntN(3)) * 1_700_000_100}
	case 5:
		return contracts.WithdrawalFunded{RequestIndex: index, Owner: owner, SettlementID: Whole(1), Shares: amount(), Assets: amount()}
	case 6:
		return contracts.WithdrawalClaimed{RequestIndex: index, Owner: owner, Receiver: other, Shares: amount(), Assets: amount()}
	case 7:
		if rng.IntN(2) == 0 {
			return contracts.WithdrawalCancelled{RequestIndex: index, Owner: owner, Shares: amount()}
		}
		return contracts.WithdrawalExpired{RequestIndex: index, Owner: owner, Shares: amount()}
	case 8:
		return contracts.NavUpdated{NavID: Whole(1), Updater: other, NavPerShare: amount(), TotalAssets: amount(), TotalSupply: amount()}
	default:
		if rng.IntN(4) == 0 {
			return contracts.WithdrawalsSettled{SettlementID: Whole(1), Funder: other, RequestCount: Whole(1), Shares: amount(), Assets: amount(), NavPerShare: amount()}
		}
		return contracts.DepositsSwept{SweepID: Whole(1), Custodian: other, FromDepositID: Whole(rng.Int64N(5)), ToDepositID: Whole(rng.Int64N(9)), Assets: amount()}
	}
}

// Random is steps random units: blocks, reorganisations to new branches and back
// to old ones, and backfills of more vaults. Two of three begin shortly before the end
// of a span of blocks of which the read models keep totals, so that questions
// about the past use them.
func Random(rng *rand.Rand, chainID uint64, steps int) *Script {
	s := New(chainID)
	if end := []uint64{0, 4096, 65536}[rng.IntN(3)]; end > 0 {
		s.Start(end - rng.Uint64N(uint64(steps)))
	}
	vaults := 2
	s.Vault(VaultAt(0))
	s.Vault(VaultAt(1))
	var old []Block // a branch that was left
	some := func() (out []Said) {
		for range rng.IntN(5) {
			out = append(out, Anything(rng, vaults, 5))
		}
		return out
	}
	for range steps {
		switch k := rng.IntN(20); {
		case k < 12:
			s.Mine(some()...)
		case k < 17 && len(s.Blocks) > 0:
			depth := 1 + rng.IntN(len(s.Blocks))
			gone := s.Retract(depth)
			if len(old) > 0 && old[0].Number == gone[0].Number && rng.IntN(3) > 0 {
				for _, b := range old { // A -> B -> A
					s.Enter(b)
				}
			} else {
				for range rng.IntN(depth + 2) {
					s.Enter(s.Make(uint64(1+rng.IntN(20)), some()...))
				}
			}
			s.Boundary()
			old = gone
		case k < 18 && vaults < 4 && len(s.Blocks) > 0 && s.Blocks[0].Number > s.First+6: // all of it is final
			vaults++
			s.Vault(VaultAt(vaults - 1))
			var logs []Said
			for range 1 + rng.IntN(6) {
				l := Anything(rng, 1, 5)
				l.Vault = VaultAt(vaults - 1)
				logs = append(logs, l)
			}
			s.Backfill(s.First, logs...)
		case k < 19:
			s.Decision(fmt.Sprintf("test-%d", k))
		}
		if over := len(s.Blocks) - 6; over > 0 { // final now
			s.Blocks, old = s.Blocks[over:], nil
		}
	}
	return s
}

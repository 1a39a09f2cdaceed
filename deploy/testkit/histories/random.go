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

// Whole converts a number to the type used for amounts.
func Whole(n int64) *big.Int { return big.NewInt(n) }

// Power is 2^n + plus.
func Power(n uint, plus int64) *big.Int {
	return new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), n), big.NewInt(plus))
}

// Anything returns a random log. There are only a few users, requests and partners, so that logs refer to each other;
// many logs are impossible, and some numbers are too large.
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

// clean rejects what cannot be written as 256 bits.
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

// most is the maximum number of vaults in a random history.
const most = 4

// Random makes a history of that many random units, and a few more if a vault is late: blocks, reorganisations to new
// branches and back to old ones, and vaults that join late, whose past is appended while the others continue. In the
// end the log covers every vault completely.
func Random(rng *rand.Rand, chainID uint64, steps int) *Script {
	s := New(chainID)
	if rng.IntN(3) == 0 { // the chain existed before the vaults, and a bucket of totals ends at block 4095
		s.Start(4070 + rng.Uint64N(30))
	}
	r := &randomly{Script: s, rng: rng, vaults: 2}
	s.Vault(VaultAt(0))
	s.Vault(VaultAt(1))
	for range steps {
		r.step()
	}
	if r.late {
		r.join()
	}
	return s
}

// randomly generates a history.
type randomly struct {
	*Script
	rng    *rand.Rand
	vaults int     // vaults that emit logs at the head
	late   bool    // the next vault is described, but not at the head yet
	old    []Block // an abandoned branch
}

// some returns the logs of a block.
func (r *randomly) some() (out []Said) {
	for range r.rng.IntN(5) {
		out = append(out, Anything(r.rng, r.vaults, 5))
	}
	return out
}

// ofLate returns logs of the late vault.
func (r *randomly) ofLate(n int) (out []Said) {
	for range n {
		l := Anything(r.rng, 1, 5)
		l.Vault = VaultAt(r.vaults)
		out = append(out, l)
	}
	return out
}

func (r *randomly) step() {
	switch k := r.rng.IntN(20); {
	case k < 12:
		r.Mine(r.some()...)
	case k < 17 && len(r.Blocks) > 0:
		r.reorganise()
	case k < 19 && r.late:
		r.join()
	case k < 18 && r.vaults < most && len(r.Blocks) > 0 && r.Blocks[0].Number > r.First+7: // the backfilled blocks are final
		r.Vault(VaultAt(r.vaults))
		r.Backfill(r.First, r.ofLate(1+r.rng.IntN(6))...)
		r.late = true
	case k < 19:
		r.Decision(fmt.Sprintf("test-%d", k))
	}
	if over := len(r.Blocks) - 6; over > 0 { // final now
		r.Blocks, r.old = r.Blocks[over:], nil
	}
}

// reorganise retracts blocks and continues with another branch, which may have been abandoned before and may be
// shorter.
func (r *randomly) reorganise() {
	depth := 1 + r.rng.IntN(len(r.Blocks))
	gone := r.Retract(depth)
	if len(r.old) > 0 && r.old[0].Number == gone[0].Number && r.rng.IntN(3) > 0 {
		for _, b := range r.old { // A -> B -> A
			r.Enter(b)
		}
	} else {
		for range r.rng.IntN(depth + 2) {
			r.Enter(r.Make(uint64(1+r.rng.IntN(20)), r.some()...))
		}
	}
	r.Boundary()
	r.old = gone
}

// join brings the late vault to the head. If no block is left that could still be retracted, it appends one first.
func (r *randomly) join() {
	if len(r.Blocks) == 0 {
		r.Mine()
	}
	r.Join(VaultAt(r.vaults), r.ofLate(r.rng.IntN(1+min(4, len(r.Blocks))))...)
	r.vaults, r.late = r.vaults+1, false
}

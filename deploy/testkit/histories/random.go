package histories

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
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
func Anything(rng *rand.Rand, vaults, users int) Emitted {
	for {
		vault, e := VaultAt(rng.IntN(vaults)), anyEvent(rng, anyone(rng, users), anyone(rng, users))
		if _, _, err := contracts.Encode(e); err == nil { // it can be written as 256 bits
			return Emitted{vault, e}
		}
	}
}

// anyone returns a user, or rarely the zero address, which a contract may name like any other.
func anyone(rng *rand.Rand, users int) common.Address {
	if rng.IntN(16) == 0 {
		return common.Address{}
	}
	return UserAt(rng.IntN(users))
}

func anyAmount(rng *rand.Rand) *big.Int {
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

// anyNumber returns the number of a deposit, a request or another thing: below a number, or rarely one at the limits of
// what a row holds.
func anyNumber(rng *rand.Rand, below int64) *big.Int {
	if rng.IntN(24) == 0 {
		return Power([]uint{63, 64, 64, 256}[rng.IntN(4)], -int64(rng.IntN(2)))
	}
	return Whole(rng.Int64N(below))
}

// anyExpiry returns when a request expires: never, at the time that a block probably has, long ago, or in a year that
// no format has.
func anyExpiry(rng *rand.Rand) uint64 {
	switch rng.IntN(8) {
	case 0, 1:
		return 0
	case 2:
		return []uint64{1, began, math.MaxUint32 + 1, 253_402_300_800, math.MaxInt64 + 1, math.MaxUint64}[rng.IntN(6)]
	default:
		return began + 12*uint64(rng.IntN(30))
	}
}

func anyEvent(rng *rand.Rand, owner, other common.Address) contracts.Event {
	amount := func() *big.Int { return anyAmount(rng) }
	number := func(below int64) *big.Int { return anyNumber(rng, below) }
	index, partner := number(6), uint32(rng.IntN(4))
	switch rng.IntN(10) {
	case 0, 1, 2:
		return contracts.DepositAccepted{DepositID: number(13), Owner: owner, PartnerID: partner, Sender: other,
			Assets: amount(), Shares: amount()}
	case 3, 4:
		return contracts.WithdrawalRequested{RequestIndex: index, Owner: owner, PartnerID: partner, Receiver: other,
			Shares: amount(), AssetsEstimate: amount(), ExpiresAt: anyExpiry(rng)}
	case 5:
		return contracts.WithdrawalFunded{RequestIndex: index, Owner: owner, SettlementID: number(2), Shares: amount(),
			Assets: amount()}
	case 6:
		return contracts.WithdrawalClaimed{RequestIndex: index, Owner: owner, Receiver: other, Shares: amount(),
			Assets: amount()}
	case 7:
		if rng.IntN(2) == 0 {
			return contracts.WithdrawalCancelled{RequestIndex: index, Owner: owner, Shares: amount()}
		}
		return contracts.WithdrawalExpired{RequestIndex: index, Owner: owner, Shares: amount()}
	case 8:
		return contracts.NavUpdated{NavID: number(2), Updater: other, NavPerShare: amount(), TotalAssets: amount(),
			TotalSupply: amount()}
	default:
		if rng.IntN(4) == 0 {
			return contracts.WithdrawalsSettled{SettlementID: number(2), Funder: other, RequestCount: number(2),
				Shares: amount(), Assets: amount(), NavPerShare: amount()}
		}
		return contracts.DepositsSwept{SweepID: number(2), Custodian: other, FromDepositID: number(5), ToDepositID: number(9),
			Assets: amount()}
	}
}

// most is the maximum number of vaults in a random history.
const most = 4

// Random makes a history of that many random units, and a few more if a vault is late or the operator accepts a
// reorganisation: old blocks, of which only some are recorded, new ones, reorganisations to new branches and back to
// old ones, vaults that join late, whose past, which may begin before any block so far, is appended while the others
// continue, and vaults that are removed and restored. In the end the log covers every vault that it has completely.
// A vault has the reference contracts, or those of one of some presets: names, or two with a comma between them, of
// which the second follows after some blocks.
func Random(rng *rand.Rand, chainID uint64, steps int, presets ...string) *Script {
	s := New(chainID)
	s.startAt(20)
	if rng.IntN(3) == 0 { // a bucket of totals ends at block 4095
		s.startAt(4070 + rng.Uint64N(30))
	}
	r := &generator{Script: s, rng: rng, presets: presets}
	r.describe()
	r.describe()
	for range steps {
		r.step()
	}
	for v := r.lateVault(); v != nil; v = r.lateVault() {
		r.join(v)
	}
	return s
}

// generator generates a history.
type generator struct {
	*Script
	rng     *rand.Rand
	presets []string
	old     []Block // an abandoned branch
}

// describe appends the description of another vault.
func (r *generator) describe() {
	a := VaultAt(len(r.covered))
	if len(r.presets) > 0 && r.rng.IntN(2) == 0 {
		r.mapTo(a, strings.Split(r.presets[r.rng.IntN(len(r.presets))], ",")...)
	}
	r.Vault(a)
}

// anything returns a log of a vault, with those that belong to it; emitted is used if the vault has the reference
// contracts.
func (r *generator) anything(emitted Emitted) []Emitted {
	if p := r.mapped[emitted.Vault]; p != nil {
		return p.anything(r.rng, emitted.Vault, users)
	}
	return []Emitted{emitted}
}

// users is the number of users of a random history.
const users = 5

// block makes the next block, some seconds after the last one, with random logs. Some of them share a transaction.
func (r *generator) block(after uint64) Block {
	var logs []Emitted
	for range r.rng.IntN(5) {
		logs = append(logs, r.anything(Anything(r.rng, len(r.covered), users))...)
	}
	b := r.read(r.Make(after, logs...))
	made := make([]uint32, len(b.logs)) // the transaction of each log
	for i, l := range b.logs {
		made[i] = l.GetTxIndex()
	}
	for i := 1; i < len(b.logs); i++ {
		if r.rng.IntN(3) == 0 || made[i] == made[i-1] {
			b.logs[i].TxHash, b.logs[i].TxIndex = b.logs[i-1].TxHash, b.logs[i-1].TxIndex
		}
	}
	return b
}

// read returns a block as ingest reads it at the head: with the logs of the vaults that have begun and are neither
// removed nor late.
func (r *generator) read(b Block) Block {
	var logs []*event.Log
	for _, l := range b.logs {
		of := mapping.VaultOf(l)
		if v := r.coverage(of); !r.absent[of] && v.GetStartBlock() <= b.Number {
			logs = append(logs, l)
		}
	}
	b.logs = logs
	return b
}

// lateVault returns a vault that the head does not have yet, or nil.
func (r *generator) lateVault() *event.Coverage {
	i := slices.IndexFunc(r.covered,
		func(v *event.Coverage) bool { return r.absent[common.Address(v.GetAddress())] && !v.GetRemoved() })
	if i < 0 {
		return nil
	}
	return r.covered[i]
}

// logsOf returns random logs of one vault.
func (r *generator) logsOf(v *event.Coverage, n int) (out []Emitted) {
	for range n {
		l := Anything(r.rng, 1, users)
		l.Vault = common.Address(v.GetAddress())
		out = append(out, r.anything(l)[0])
	}
	return out
}

// settled is the least number of final blocks for a vault that is added.
const settled = 7

func (r *generator) step() {
	late := r.lateVault()
	switch k := r.rng.IntN(43); {
	case k < 2:
		r.catchUp()
	case k < 3 && len(r.recorded()) > 0:
		r.accept()
	case k < 24:
		r.Enter(r.block(12))
		r.Boundary()
	case k < 34 && len(r.Blocks) > 0:
		r.reorganise()
	case k < 38 && late != nil:
		if r.rng.IntN(2) > 0 || !r.backfill(late) {
			r.join(late)
		}
	case k < 36 && len(r.covered) < most && len(r.headers)-len(r.Blocks) > settled: // the backfilled blocks are final
		r.add()
	case k < 38:
		r.Decision(fmt.Sprintf("test-%d", k))
	case k > 40:
		r.removeOrRestore()
	}
	if over := len(r.Blocks) - 6; over > 0 { // final now
		r.Blocks, r.old = r.Blocks[over:], nil
	}
}

// catchUp appends old blocks, as after a time in which ingest did not run.
func (r *generator) catchUp() {
	of := make([]Block, 1+r.rng.IntN(6))
	for i := range of {
		of[i] = r.block(r.seconds())
	}
	r.Range(of...)
	r.old = nil
}

// accept retracts even final blocks, at once or in two units, and sometimes everything.
func (r *generator) accept() {
	ancestors := append([]uint64{r.First - 1}, r.recorded()...)
	to := r.rng.IntN(len(ancestors))
	r.AcceptReorg(ancestors[to+r.rng.IntN(len(ancestors)-to)], ancestors[to])
	r.old = nil
}

// seconds is the time between two blocks: at least none, as in a chain with several blocks a second.
func (r *generator) seconds() uint64 { return uint64(r.rng.IntN(20)) }

// reorganise retracts blocks and continues with another branch, which may have been abandoned before and may be
// shorter.
func (r *generator) reorganise() {
	depth := 1 + r.rng.IntN(len(r.Blocks))
	gone := r.Retract(depth)
	if len(r.old) > 0 && r.old[0].Number == gone[0].Number && r.rng.IntN(3) > 0 {
		for _, b := range r.old { // A -> B -> A
			r.Enter(r.read(b))
		}
	} else {
		for range r.rng.IntN(depth + 2) {
			r.Enter(r.block(r.seconds()))
		}
	}
	r.Boundary()
	r.old = gone
}

// add adds a vault whose past is appended later, and sometimes begins before any block so far.
func (r *generator) add() {
	if r.rng.IntN(3) == 0 {
		r.below(1 + r.rng.Uint64N(4))
	}
	r.describe()
	r.backfill(r.covered[len(r.covered)-1])
}

// backfill appends a part of a late vault's past, and reports whether there are final blocks that the log does not have
// of it.
func (r *generator) backfill(v *event.Coverage) bool {
	past := r.known(v.GetCoveredTo() + 1)
	if len(r.Blocks) > 0 {
		i, _ := slices.BinarySearch(past, r.Blocks[0].Number)
		past = past[:i]
	}
	if len(past) < 2 {
		return false
	}
	logs := 1 + r.rng.IntN(min(len(past)-1, settled-1))
	r.Backfill(past[r.rng.IntN(len(past)-logs)], r.logsOf(v, logs)...)
	return true
}

// join brings a late vault to the head. If no block is left that could still be retracted, it appends one first.
func (r *generator) join(v *event.Coverage) {
	if len(r.Blocks) == 0 {
		r.Mine()
	}
	missing := r.Number - max(r.Blocks[0].Number-1, v.GetCoveredTo())
	r.appendJoin(common.Address(v.GetAddress()), r.logsOf(v, r.rng.IntN(1+min(4, int(missing))))...)
}

// removeOrRestore removes any vault but the last one, or restores a removed one, which continues after the last block
// that the log has of it.
func (r *generator) removeOrRestore() {
	v := r.covered[r.rng.IntN(len(r.covered))]
	switch a := common.Address(v.GetAddress()); {
	case v.GetRemoved():
		r.Vault(a)
	case slices.ContainsFunc(r.covered, func(other *event.Coverage) bool { return other != v && !other.GetRemoved() }):
		r.Removed(a)
	}
}

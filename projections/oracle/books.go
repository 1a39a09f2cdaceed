package oracle

import (
	"fmt"
	"math"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
)

// Newest is the block number that means: everything there is.
const Newest = math.MaxUint64

// Books is what the live facts up to a block add up to. Amounts are in native
// units, times in Unix seconds, 0 for never.
type Books struct {
	// Block is the newest indexed block and Time its time.
	Block, Time uint64
	// Deposits, Navs and Sweeps in the order of seq.
	Deposits, Navs, Sweeps []Log
	Requests               map[RequestKey]*Request
	Flows                  map[VaultUser]*Flow
	Users                  map[common.Address]*User
	Partners               map[uint32]*Partner
	// Quarantined is the seqs of logs that are in no total, Impossible says in
	// a sentence each what the chain says and cannot be.
	Quarantined []uint64
	Impossible  []string
}

// RequestKey names a withdrawal request.
type RequestKey struct {
	Vault common.Address
	Index uint64
}

// Request is everything the chain says about a withdrawal request. Asked is
// nil when the request itself is missing.
type Request struct {
	Asked                                               *Log
	Requested, Funded, Claimed, Cancelled, Expired      int
	FundedTime, ClaimedTime, CancelledTime, ExpiredTime uint64
	FundedAssets, ClaimedAssets                         *big.Int
}

// VaultUser names a user of a vault.
type VaultUser struct{ Vault, User common.Address }

// Flow is what a user did in a vault.
type Flow struct {
	Deposits, Requests              int
	Deposited, Estimated, Withdrawn *big.Int
	First, FirstBlock               uint64 // of deposits and requests
	// Blocks is the sum of the blocks of deposits and requests, which wraps, and
	// BlockAmounts that of each amount times its block: no chain has
	// blocks enough for it to reach 2^255.
	Blocks       uint64
	BlockAmounts *big.Int
}

// User is what a user did in all vaults.
type User struct {
	Deposited, Withdrawn *big.Int
	First                uint64
}

// Partner is what a partner brought.
type Partner struct {
	Deposits int
	Volume   *big.Int
	Users    map[common.Address]bool
}

// Books adds up the live facts of blocks up to and including block.
func (f *Fold) Books(block uint64) *Books {
	b := &Books{
		Requests: map[RequestKey]*Request{}, Flows: map[VaultUser]*Flow{},
		Users: map[common.Address]*User{}, Partners: map[uint32]*Partner{},
	}
	swept := map[common.Address]uint64{}
	for _, r := range f.Records() {
		if k := r.GetBlock(); k != nil && k.GetNumber() <= block && k.GetNumber() >= b.Block {
			b.Block, b.Time = k.GetNumber(), k.GetTime()
		}
		if r.GetLog() == nil || r.GetLog().GetBlockNumber() > block {
			continue
		}
		l, ok, bad := read(r)
		if bad {
			b.Quarantined = append(b.Quarantined, r.GetSeq())
		}
		if ok {
			b.add(l, swept)
		}
	}
	b.addUsers()
	return b
}

func (b *Books) add(l Log, swept map[common.Address]uint64) {
	switch e := l.Event.(type) {
	case contracts.DepositAccepted:
		b.Deposits = append(b.Deposits, l)
		flow := b.flow(l.Vault, e.Owner)
		flow.seen(l)
		flow.Deposits++
		flow.Deposited.Add(flow.Deposited, e.Assets)
		flow.weigh(l, e.Assets)
		b.AddPartner(e)
	case contracts.WithdrawalRequested:
		flow := b.flow(l.Vault, e.Owner)
		flow.seen(l)
		flow.Requests++
		flow.Estimated.Add(flow.Estimated, e.AssetsEstimate)
		flow.weigh(l, e.AssetsEstimate)
		b.addRequest(l, e.RequestIndex)
	case contracts.WithdrawalClaimed:
		flow := b.flow(l.Vault, e.Owner)
		flow.Withdrawn.Add(flow.Withdrawn, e.Assets)
		flow.weigh(l, e.Assets)
		b.addRequest(l, e.RequestIndex)
	case contracts.WithdrawalFunded:
		b.addRequest(l, e.RequestIndex)
	case contracts.WithdrawalCancelled:
		b.addRequest(l, e.RequestIndex)
	case contracts.WithdrawalExpired:
		b.addRequest(l, e.RequestIndex)
	case contracts.NavUpdated:
		b.Navs = append(b.Navs, l)
	case contracts.DepositsSwept:
		b.Sweeps = append(b.Sweeps, l)
		from, to := e.FromDepositID.Uint64(), e.ToDepositID.Uint64()
		if from != swept[l.Vault]+1 || to < from {
			b.wonder(l, fmt.Sprintf("sweeps deposits %d to %d after deposit %d", from, to, swept[l.Vault]))
		}
		swept[l.Vault] = to
	}
}

func (b *Books) flow(vault, user common.Address) *Flow {
	k := VaultUser{vault, user}
	if b.Flows[k] == nil {
		b.Flows[k] = &Flow{Deposited: new(big.Int), Estimated: new(big.Int), Withdrawn: new(big.Int), BlockAmounts: new(big.Int)}
	}
	return b.Flows[k]
}

// seen notes when a user first deposited or requested: the logs of one vault
// come in the order of its chain.
func (f *Flow) seen(l Log) {
	if f.Deposits+f.Requests == 0 {
		f.First, f.FirstBlock = l.Time, l.Block
	}
	f.Blocks += l.Block
}

// weigh adds an amount times its block.
func (f *Flow) weigh(l Log, amount *big.Int) {
	block := new(big.Int).SetUint64(l.Block)
	f.BlockAmounts.Add(f.BlockAmounts, block.Mul(block, amount))
}

// addUsers adds the vaults of each user up. Somebody whom only a claim names
// is no user.
func (b *Books) addUsers() {
	for k, f := range b.Flows {
		if f.Deposits+f.Requests == 0 {
			continue
		}
		if b.Users[k.User] == nil {
			b.Users[k.User] = &User{Deposited: new(big.Int), Withdrawn: new(big.Int), First: math.MaxUint64}
		}
		b.Users[k.User].First = min(b.Users[k.User].First, f.First)
	}
	for k, f := range b.Flows {
		if u := b.Users[k.User]; u != nil {
			u.Deposited.Add(u.Deposited, f.Deposited)
			u.Withdrawn.Add(u.Withdrawn, f.Withdrawn)
		}
	}
}

// AddPartner counts a deposit for its partner, and one without partner for none.
func (b *Books) AddPartner(e contracts.DepositAccepted) {
	if e.PartnerID == 0 {
		return
	}
	p := b.Partners[e.PartnerID]
	if p == nil {
		p = &Partner{Volume: new(big.Int), Users: map[common.Address]bool{}}
		b.Partners[e.PartnerID] = p
	}
	p.Deposits++
	p.Volume.Add(p.Volume, e.Assets)
	p.Users[e.Owner] = true
}

func (b *Books) addRequest(l Log, index *big.Int) {
	k := RequestKey{l.Vault, index.Uint64()}
	q := b.Requests[k]
	if q == nil {
		q = &Request{FundedAssets: new(big.Int), ClaimedAssets: new(big.Int)}
		b.Requests[k] = q
	}
	over := q.Claimed+q.Cancelled > 0
	switch e := l.Event.(type) {
	case contracts.WithdrawalRequested:
		if q.Requested > 0 {
			b.wonder(l, fmt.Sprintf("request %d is requested again", k.Index))
		} else {
			q.Asked = &l
		}
		q.Requested++
	case contracts.WithdrawalFunded:
		if q.Requested == 0 || q.Funded > 0 || over {
			b.wonder(l, fmt.Sprintf("request %d is funded, and is unknown, funded or over", k.Index))
		}
		if q.Funded == 0 {
			q.FundedTime, q.FundedAssets = l.Time, e.Assets
		}
		q.Funded++
	case contracts.WithdrawalClaimed:
		if q.Requested == 0 || q.Funded == 0 || over {
			b.wonder(l, fmt.Sprintf("request %d is claimed, and is unknown, not funded or over", k.Index))
		}
		if q.Claimed == 0 {
			q.ClaimedTime = l.Time
		}
		q.ClaimedAssets.Add(q.ClaimedAssets, e.Assets)
		q.Claimed++
	case contracts.WithdrawalCancelled:
		if q.Requested == 0 || q.Funded+q.Expired > 0 || over {
			b.wonder(l, fmt.Sprintf("request %d is cancelled, and is unknown, funded or over", k.Index))
		}
		if q.Cancelled == 0 {
			q.CancelledTime = l.Time
		}
		q.Cancelled++
	case contracts.WithdrawalExpired:
		if q.Requested == 0 || q.Funded+q.Expired > 0 || over {
			b.wonder(l, fmt.Sprintf("request %d expires, and is unknown, funded or over", k.Index))
		}
		if q.Expired == 0 {
			q.ExpiredTime = l.Time
		}
		q.Expired++
	}
}

func (b *Books) wonder(l Log, what string) {
	b.Impossible = append(b.Impossible, fmt.Sprintf("seq %d, block %d, log %d: vault %s: %s", l.Seq, l.Block, l.Index, l.Vault, what))
}

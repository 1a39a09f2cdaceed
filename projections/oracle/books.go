package oracle

import (
	"fmt"
	"math"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/mapping"
)

const (
	// Newest is the block number that stands for the newest block.
	Newest = math.MaxUint64
	// Never is the block of something that did not happen.
	Never = math.MaxUint64
)

// Books are the sums of the live logs up to a block. Amounts are in native units, times in Unix seconds, 0 for never.
type Books struct {
	// Block is the newest indexed block and Time its time.
	Block, Time uint64
	Withdrawals map[RequestKey]*Withdrawal
	Users       map[common.Address]*User
	// Members are the users of each scope.
	Members map[Scope]map[common.Address]Since
	// Totals are the totals of each partner in each vault, in block order.
	Totals map[PartnerVault][]Total
	// Quarantined has the seqs of logs that are in no total. Impossible describes each log that contradicts the
	// state, in a sentence.
	Quarantined []uint64
	Impossible  []string
}

// RequestKey identifies a withdrawal request.
type RequestKey struct {
	Vault common.Address
	Index uint64
}

// Withdrawal has the log of a request and the logs that changed it, nil for what did not happen. The first request
// log of an index is the request, the first claim, cancellation or expiry after it is its end, and the first funding
// between the two is its funding. All other logs of the index change nothing.
type Withdrawal struct{ Requested, Funded, Ended *Log }

// User has a user's totals in all vaults. An address that has only claimed is included too, but is not a user: a user
// has deposited or requested a withdrawal.
type User struct {
	Deposited, Withdrawn *big.Int
	First                Since
}

// Since is when something first became true: the block, Never if it did not, and its time.
type Since struct{ Block, Time uint64 }

// Scope is a vault or a partner whose users are counted; the other field is zero.
type Scope struct {
	Vault   common.Address
	Partner uint32
}

// PartnerVault identifies a partner in a vault.
type PartnerVault struct {
	Partner uint32
	Vault   common.Address
}

// Total is what was deposited up to a block; it is valid from that block on and before the block Until.
type Total struct {
	Block, Until uint64
	Deposits     uint64
	Volume       *big.Int
}

// Books adds up the live logs of blocks up to and including block, without the logs of some vaults.
func (f *Fold) Books(block uint64, without ...common.Address) *Books {
	b := &Books{
		Withdrawals: map[RequestKey]*Withdrawal{}, Users: map[common.Address]*User{},
		Members: map[Scope]map[common.Address]Since{}, Totals: map[PartnerVault][]Total{},
	}
	for _, r := range f.Records() {
		if k := r.GetBlock(); k != nil && k.GetNumber() <= block && k.GetNumber() >= b.Block {
			b.Block, b.Time = k.GetNumber(), k.GetTime()
		}
	}
	logs, quarantined := f.logs(block, without)
	b.Quarantined = quarantined
	swept := map[common.Address]uint64{}
	for _, l := range logs {
		b.add(l, swept)
	}
	return b
}

// add applies the next log, in chain order. Books cover only vaults whose requests have numbers: requests with other
// identifiers, and requests that were never in the queue, are in the lists (Fold.Lists).
func (b *Books) add(l Log, swept map[common.Address]uint64) {
	switch l.Kind {
	case mapping.Deposit:
		b.seen(l, l.Owner, l.Partner)
		u := b.user(l.Owner)
		u.Deposited.Add(u.Deposited, l.Assets.ToBig())
		if l.Partner != 0 {
			b.addTotal(l)
		}
	case mapping.Requested:
		b.seen(l, l.Owner, 0)
		b.request(l)
	case mapping.Claimed:
		u := b.user(l.Owner)
		u.Withdrawn.Add(u.Withdrawn, l.Assets.ToBig())
		b.request(l)
	case mapping.Instant:
		b.seen(l, l.Owner, 0)
		u := b.user(l.Owner)
		u.Withdrawn.Add(u.Withdrawn, l.Assets.ToBig())
	case mapping.Funded, mapping.Cancelled, mapping.Expired:
		b.request(l)
	case mapping.Sweep:
		if l.Present(mapping.ID) && (l.ID != swept[l.Vault]+1 || l.To < l.ID) {
			b.wonder(l, fmt.Sprintf("sweeps deposits %d to %d after deposit %d", l.ID, l.To, swept[l.Vault]))
		}
		swept[l.Vault] = l.To
	}
}

func (b *Books) user(a common.Address) *User {
	if b.Users[a] == nil {
		b.Users[a] = &User{Deposited: new(big.Int), Withdrawn: new(big.Int), First: Since{Block: Never}}
	}
	return b.Users[a]
}

// seen records that a user deposited or requested a withdrawal, through a partner unless it is 0.
func (b *Books) seen(l Log, a common.Address, partner uint32) {
	since := Since{l.Block, l.Time}
	if u := b.user(a); u.First.Block == Never {
		u.First = since
	}
	scopes := []Scope{{Vault: l.Vault}}
	if partner != 0 {
		scopes = append(scopes, Scope{Partner: partner})
	}
	for _, s := range scopes {
		if b.Members[s] == nil {
			b.Members[s] = map[common.Address]Since{}
		}
		if _, known := b.Members[s][a]; !known {
			b.Members[s][a] = since
		}
	}
}

// addTotal adds a deposit to the total of the log's block, which starts from the previous total.
func (b *Books) addTotal(l Log) {
	k := PartnerVault{l.Partner, l.Vault}
	all := b.Totals[k]
	now := Total{Block: l.Block, Until: Never, Deposits: 1, Volume: l.Assets.ToBig()}
	if n := len(all); n > 0 {
		last := &all[n-1]
		now.Deposits += last.Deposits
		now.Volume.Add(now.Volume, last.Volume)
		if last.Block == l.Block {
			all = all[:n-1]
		} else {
			last.Until = l.Block
		}
	}
	b.Totals[k] = append(all, now)
}

func (b *Books) request(l Log) {
	if !l.Present(mapping.ID) {
		return
	}
	k := RequestKey{l.Vault, l.ID}
	w, asks := b.Withdrawals[k], l.Kind == mapping.Requested
	switch {
	case asks && w != nil:
		b.wonder(l, fmt.Sprintf("request %d is requested again", k.Index))
		return
	case asks:
		b.Withdrawals[k] = &Withdrawal{Requested: &l}
		return
	case w == nil:
		w = &Withdrawal{} // its effects do not matter
	}
	switch l.Kind {
	case mapping.Funded:
		if w.Requested == nil || w.Funded != nil || w.Ended != nil {
			b.wonder(l, fmt.Sprintf("request %d is funded, and is unknown, funded or over", k.Index))
		}
		if w.Funded == nil && w.Ended == nil {
			w.Funded = &l
		}
		return
	case mapping.Claimed:
		if w.Requested == nil || w.Funded == nil || w.Ended != nil {
			b.wonder(l, fmt.Sprintf("request %d is claimed, and is unknown, not funded or over", k.Index))
		}
	case mapping.Cancelled:
		if w.Requested == nil || w.Funded != nil || w.Ended != nil {
			b.wonder(l, fmt.Sprintf("request %d is cancelled, and is unknown, funded or over", k.Index))
		}
	case mapping.Expired:
		if w.Requested == nil || w.Funded != nil || w.Ended != nil {
			b.wonder(l, fmt.Sprintf("request %d expires, and is unknown, funded or over", k.Index))
		}
	}
	if w.Ended == nil {
		w.Ended = &l
	}
}

func (b *Books) wonder(l Log, what string) {
	b.Impossible = append(b.Impossible, fmt.Sprintf("seq %d, block %d, log %d: vault %s: %s", l.Seq, l.Block, l.Index, l.Vault, what))
}

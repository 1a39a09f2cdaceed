package oracle

import (
	"fmt"
	"math"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/mapping"
)

const (
	// Newest is the block number that means: everything there is.
	Newest = math.MaxUint64
	// Never is the block of what did not happen.
	Never = math.MaxUint64
)

// Books is what the live logs up to a block add up to. Amounts are in native
// units, times in Unix seconds, 0 for never.
type Books struct {
	// Block is the newest indexed block and Time its time.
	Block, Time uint64
	Withdrawals map[RequestKey]*Withdrawal
	Users       map[common.Address]*User
	// Members are the users of each scope.
	Members map[Scope]map[common.Address]Since
	// Totals are those of each partner in each vault, in the order of their blocks.
	Totals map[PartnerVault][]Total
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

// Withdrawal is the log that asked for it and those that changed it, nil for what
// did not happen: the first log that asks for an index is the request, the first
// claim, cancellation or expiry after it is its end, and the first funding between
// the two is its funding. All other logs of the index change nothing.
type Withdrawal struct{ Requested, Funded, Ended *Log }

// EndedBy is what the read models call the log that ended it, empty for none.
func (w *Withdrawal) EndedBy() string {
	if w.Ended == nil {
		return ""
	}
	return w.Ended.Kind.String()
}

// BlockOf a log, and Never where there is none.
func BlockOf(l *Log) uint64 {
	if l == nil {
		return Never
	}
	return l.Block
}

// User is what somebody did in all vaults. Who only claimed is here too, and no
// user: a user has asked for a withdrawal or deposited.
type User struct {
	Deposited, Withdrawn *big.Int
	First                Since
}

// Since is when something first was so: the block, Never where it was not, and
// its time.
type Since struct{ Block, Time uint64 }

// Scope is a vault or a partner, whose users are counted; the other one is zero.
type Scope struct {
	Vault   common.Address
	Partner uint32
}

// PartnerVault names a partner in a vault.
type PartnerVault struct {
	Partner uint32
	Vault   common.Address
}

// Total is what was deposited up to a block, which is true from that block on and
// before the block Until.
type Total struct {
	Block, Until uint64
	Deposits     uint64
	Volume       *big.Int
}

// Books adds up the live logs of blocks up to and including block, without those
// of some vaults.
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

// add takes the next log in the order of the chain. Books are about vaults whose requests have numbers: what names them in
// another way, and what was never in the queue, is in the lists (Fold.Lists).
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

// seen notes that somebody deposited or asked for a withdrawal: for a partner
// where that is not 0.
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

// addTotal makes the total of the log's block, from the one before or from what
// the block's logs before came to.
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
		w = &Withdrawal{} // what a log does to it is of no consequence
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

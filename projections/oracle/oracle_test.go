package oracle_test

import (
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

var (
	vaultA, vaultB = common.HexToAddress("0xa1"), common.HexToAddress("0xa2")
	alice, bob     = common.HexToAddress("0xb1"), common.HexToAddress("0xb2")
	n              = big.NewInt
)

// book is a log written by hand; every number expected below was added up by hand.
type book struct {
	t    *testing.T
	fold *oracle.Fold
	seq  uint64
	said map[uint64]*event.Record
}

func newBook(t *testing.T) *book {
	return &book{t, oracle.New(), 0, map[uint64]*event.Record{}}
}

func (b *book) put(r *event.Record) uint64 {
	b.t.Helper()
	b.seq++
	r.Seq = b.seq
	b.said[r.Seq] = r
	if err := b.fold.Apply(r); err != nil {
		b.t.Fatal(err)
	}
	return r.Seq
}

func (b *book) log(block, time uint64, vault common.Address, e contracts.Event) uint64 {
	b.t.Helper()
	topics, data, err := contracts.Encode(e)
	if err != nil {
		b.t.Fatal(err)
	}
	l := &event.Log{Address: vault.Bytes(), Data: data, BlockNumber: block, BlockTime: time, TxHash: make([]byte, 32)}
	for _, topic := range topics {
		l.Topics = append(l.Topics, topic.Bytes())
	}
	return b.put(&event.Record{Fact: &event.Record_Log{Log: l}})
}

func (b *book) block(number, time uint64) uint64 {
	b.t.Helper()
	return b.put(&event.Record{Fact: &event.Record_Block{Block: &event.Block{Number: number, Time: time}}})
}

func (b *book) retract(seq uint64) {
	b.t.Helper()
	b.put(&event.Record{Retracts: seq, Fact: b.said[seq].Fact})
}

func deposit(id int64, owner common.Address, partner uint32, assets *big.Int) contracts.Event {
	return contracts.DepositAccepted{DepositID: n(id), Owner: owner, PartnerID: partner, Assets: assets, Shares: n(1)}
}

func request(index int64, owner common.Address, estimate int64) contracts.Event {
	return contracts.WithdrawalRequested{RequestIndex: n(index), Owner: owner, Shares: n(1), AssetsEstimate: n(estimate)}
}

func claim(index int64, owner common.Address, assets int64) contracts.Event {
	return contracts.WithdrawalClaimed{RequestIndex: n(index), Owner: owner, Shares: n(1), Assets: n(assets)}
}

func fund(index int64, assets int64) contracts.Event {
	return contracts.WithdrawalFunded{RequestIndex: n(index), SettlementID: n(1), Shares: n(1), Assets: n(assets)}
}

func TestBooks(t *testing.T) {
	b := newBook(t)
	b.log(10, 1000, vaultA, deposit(1, alice, 7, n(100)))
	b.log(10, 1000, vaultA, deposit(2, bob, 7, n(50)))
	b.block(10, 1000)
	b.log(12, 1020, vaultA, request(0, alice, 40))
	b.log(12, 1020, vaultA, fund(0, 41))
	b.block(12, 1020)
	b.log(14, 1040, vaultA, claim(0, alice, 41))
	b.log(14, 1040, vaultA, deposit(3, alice, 0, n(5)))
	b.block(14, 1040)
	b.log(9, 990, vaultB, deposit(1, alice, 7, n(1))) // backfilled later
	stranger := b.log(15, 1050, vaultB, claim(5, common.HexToAddress("0xb3"), 9))
	b.block(15, 1050)

	books := b.fold.Books(oracle.Newest)
	if books.Block != 15 || books.Time != 1050 || len(books.Deposits) != 4 {
		t.Errorf("block %d at %d, %d deposits", books.Block, books.Time, len(books.Deposits))
	}
	if got := *books.Users[alice]; got.Deposited.Int64() != 106 || got.Withdrawn.Int64() != 41 || got.First != 990 {
		t.Errorf("alice is %+v", got)
	}
	if len(books.Users) != 2 {
		t.Errorf("%d users, a claim alone makes nobody a user", len(books.Users))
	}
	if got := *books.Partners[7]; got.Deposits != 3 || got.Volume.Int64() != 151 || len(got.Users) != 2 {
		t.Errorf("partner 7 is %+v", got)
	}
	if got := *books.Flows[oracle.VaultUser{Vault: vaultA, User: alice}]; got.Deposits != 2 || got.Deposited.Int64() != 105 || got.Requests != 1 || got.Estimated.Int64() != 40 || got.Withdrawn.Int64() != 41 || got.First != 1000 {
		t.Errorf("alice in vault A is %+v", got)
	}
	if q := books.Requests[oracle.RequestKey{Vault: vaultA, Index: 0}]; q.Requested != 1 || q.Funded != 1 || q.FundedTime != 1020 || q.FundedAssets.Int64() != 41 || q.Claimed != 1 || q.ClaimedTime != 1040 || q.ClaimedAssets.Int64() != 41 || q.Asked.Block != 12 {
		t.Errorf("request 0 is %+v", q)
	}
	if len(books.Impossible) != 1 || !strings.Contains(books.Impossible[0], "request 5 is claimed") {
		t.Errorf("impossible: %q", books.Impossible)
	}

	past := b.fold.Books(12)
	if got := *past.Users[alice]; past.Block != 12 || past.Time != 1020 || got.Deposited.Int64() != 101 || got.Withdrawn.Sign() != 0 {
		t.Errorf("as of block %d alice is %+v", past.Block, got)
	}
	if q := past.Requests[oracle.RequestKey{Vault: vaultA, Index: 0}]; q.Claimed != 0 || q.Funded != 1 {
		t.Errorf("as of block 12 request 0 is %+v", q)
	}
	b.retract(stranger + 1)
	b.retract(stranger)
	if after := b.fold.Books(oracle.Newest); len(after.Impossible) != 0 || after.Block != 14 || !reflect.DeepEqual(after.Users, books.Users) {
		t.Errorf("after the retraction: %+v", after)
	}
}

func TestQuarantined(t *testing.T) {
	b := newBook(t)
	largest := new(big.Int).Sub(new(big.Int).Lsh(n(1), 191), n(1))
	b.log(1, 1, vaultA, deposit(1, alice, 0, largest))
	b.log(1, 1, vaultA, deposit(2, alice, 0, new(big.Int).Add(largest, n(1))))
	books := b.fold.Books(oracle.Newest)
	if len(books.Quarantined) != 1 || books.Quarantined[0] != 2 || books.Users[alice].Deposited.Cmp(largest) != 0 {
		t.Errorf("quarantined %v, alice %+v", books.Quarantined, books.Users[alice])
	}
}

func TestImpossibleSweeps(t *testing.T) {
	b := newBook(t)
	sweep := func(vault common.Address, from, to int64) {
		b.log(1, 1, vault, contracts.DepositsSwept{SweepID: n(1), FromDepositID: n(from), ToDepositID: n(to), Assets: n(1)})
	}
	sweep(vaultA, 1, 3)
	sweep(vaultB, 1, 1)
	sweep(vaultA, 4, 4)
	sweep(vaultA, 6, 7)
	if got := b.fold.Books(oracle.Newest).Impossible; len(got) != 1 || !strings.Contains(got[0], "sweeps deposits 6 to 7 after deposit 4") {
		t.Errorf("impossible: %q", got)
	}
}

func TestApplyRefuses(t *testing.T) {
	b := newBook(t)
	first := b.log(1, 1, vaultA, deposit(1, alice, 0, n(1)))
	other := &event.Record{Fact: &event.Record_Block{Block: &event.Block{Number: 1}}}
	for name, r := range map[string]*event.Record{
		"does not follow": {Seq: 5, Fact: other.Fact},
		"is not live":     {Seq: 2, Retracts: 9, Fact: other.Fact},
		"another thing":   {Seq: 2, Retracts: first, Fact: other.Fact},
	} {
		f := oracle.New()
		if err := f.Apply(b.said[first]); err != nil {
			t.Fatal(err)
		}
		if err := f.Apply(r); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

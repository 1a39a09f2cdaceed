package oracle_test

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

var (
	vaultA, vaultB = common.HexToAddress("0xa1"), common.HexToAddress("0xa2")
	alice, bob     = common.HexToAddress("0xb1"), common.HexToAddress("0xb2")
	n              = big.NewInt
)

// book is a log written by hand; all expected numbers below were added up by hand.
type book struct {
	t       *testing.T
	fold    *oracle.Fold
	seq     uint64
	records map[uint64]*event.Record
	// index of the next log; it only grows.
	index uint32
}

func newBook(t *testing.T) *book {
	return &book{t: t, fold: oracle.New(nil), records: map[uint64]*event.Record{}}
}

func (b *book) add(r *event.Record) uint64 {
	b.t.Helper()
	b.seq++
	r.Seq = b.seq
	b.records[r.Seq] = r
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
	l := &event.Log{Address: vault.Bytes(), Data: data, BlockNumber: block, BlockTime: time, TxHash: make([]byte, 32),
		LogIndex: b.index}
	b.index++
	for _, topic := range topics {
		l.Topics = append(l.Topics, topic.Bytes())
	}
	return b.add(&event.Record{Fact: &event.Record_Log{Log: l}})
}

func (b *book) block(number, time uint64) uint64 {
	b.t.Helper()
	return b.add(&event.Record{Fact: &event.Record_Block{Block: &event.Block{Number: number, Time: time}}})
}

func (b *book) retract(seq uint64) {
	b.t.Helper()
	b.add(&event.Record{Retracts: seq, Fact: b.records[seq].Fact})
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

// rows returns the rows of a list, each as the values that describe returns.
func (b *book) rows(list readmodel.List, describe func(readmodel.ListRow) []any) (out []string) {
	b.t.Helper()
	for _, r := range b.fold.Lists() {
		if r.List == list {
			out = append(out, strings.TrimSpace(fmt.Sprintln(describe(r)...)))
		}
	}
	slices.Sort(out)
	return out
}

func TestLists(t *testing.T) {
	b := newBook(t)
	b.log(10, 1000, vaultA, deposit(1, alice, 7, n(100)))
	b.log(10, 1000, vaultA, deposit(2, bob, 7, n(50)))
	b.block(10, 1000)
	b.log(12, 1020, vaultA, request(0, alice, 40))
	b.log(12, 1020, vaultA, fund(0, 41))
	b.block(12, 1020)
	b.log(14, 1040, vaultA, claim(0, alice, 41))
	b.log(14, 1040, vaultA, deposit(3, alice, 0, n(5)))
	b.log(14, 1040, vaultA, deposit(4, alice, 7, n(2)))
	b.block(14, 1040)
	b.log(9, 990, vaultB, deposit(1, alice, 7, n(1))) // backfilled later
	stranger := b.log(15, 1050, vaultB, claim(5, common.HexToAddress("0xb3"), 9))
	b.block(15, 1050)

	names := map[common.Address]string{{}: "all", vaultA: "A", vaultB: "B", alice: "alice", bob: "bob",
		readmodel.PartnerOwner(7): "7"}
	of := func(r readmodel.ListRow) string { return names[r.Owner] + "/" + names[r.Scope] }
	amounts := func(r readmodel.ListRow) []any { return []any{of(r), names[r.User], r.Key.Dec()} }
	members := func(r readmodel.ListRow) []any { return []any{of(r), names[r.User], r.Block, r.TS} }
	check := func(what string, got []string, want ...string) {
		t.Helper()
		slices.Sort(want)
		same(t, what, got, want)
	}
	check("deposited", b.rows(readmodel.Deposited, amounts), "all/all alice 108", "all/all bob 50",
		"A/all alice 107", "A/all bob 50", "B/all alice 1")
	check("withdrawn", b.rows(readmodel.Withdrawn, amounts), "all/all alice 41", "all/all bob 0",
		"A/all alice 41", "A/all bob 0", "B/all alice 0")
	everyone := []string{"all/all alice 9 990", "all/all bob 10 1000", "A/all alice 10 1000", "A/all bob 10 1000",
		"B/all alice 9 990", "7/all alice 9 990", "7/all bob 10 1000", "7/A alice 10 1000", "7/A bob 10 1000",
		"7/B alice 9 990"}
	check("members", b.rows(readmodel.Members, members), everyone...)
	partner := func(r readmodel.ListRow) []any {
		if names[r.Owner] != "7" || r.Deposits == 0 {
			return nil
		}
		return []any{of(r), r.Block, r.Key.Dec(), r.Deposits, r.Deposited.Dec()}
	}
	totals := slices.DeleteFunc(b.rows(readmodel.Totals, partner), func(line string) bool { return line == "" })
	check("totals of partner 7", totals, "7/A 10 14 2 150", "7/A 14 18446744073709551615 3 152",
		"7/B 9 18446744073709551615 1 1")
	same(t, "request 0", b.blocks(), [3]uint64{12, 12, 14})
	if _, impossible := b.fold.Contradictions(); len(impossible) != 1 || !strings.Contains(impossible[0], "request 5 is claimed") {
		t.Errorf("impossible: %q", impossible)
	}

	b.fold.Skip(oracle.Skipped{Vaults: []common.Address{vaultA}})
	check("deposited without vault A", b.rows(readmodel.Deposited, amounts), "all/all alice 1", "B/all alice 1")
	b.fold.Skip(oracle.Skipped{})
	b.retract(stranger + 1)
	b.retract(stranger)
	if _, impossible := b.fold.Contradictions(); len(impossible) != 0 {
		t.Errorf("impossible after the retraction: %q", impossible)
	}
	check("members after the retraction", b.rows(readmodel.Members, members), everyone...)
	if c := b.fold.Cursor(0)[0]; c.Block != 14 || c.TS != 1040 {
		t.Errorf("after the retraction the cursor is at block %d of %d", c.Block, c.TS)
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// blocks returns the blocks in which request 0 of vault A was requested, funded and closed.
func (b *book) blocks() (out [3]uint64) {
	for _, r := range b.fold.Lists() {
		if r.List == readmodel.Requests && r.Owner == vaultA && r.ID == 0 && r.User == alice {
			out = [3]uint64{r.Block, r.FundedBlock, r.ClosedBlock}
		}
	}
	return out
}

// TestWithdrawals: the first request of an index wins, the first end is final, and nothing before the request or
// after the end changes anything.
func TestWithdrawals(t *testing.T) {
	const never = readmodel.Never
	cancel := contracts.WithdrawalCancelled{RequestIndex: n(0), Owner: alice, Shares: n(1)}
	expire := contracts.WithdrawalExpired{RequestIndex: n(0), Owner: alice, Shares: n(1)}
	for name, c := range map[string]struct {
		events     []contracts.Event // one in each block, from block 1 on
		want       [3]uint64
		impossible int
	}{
		"requested twice": {[]contracts.Event{request(0, alice, 1), request(0, bob, 2), fund(0, 3)},
			[3]uint64{1, 3, never}, 1},
		"claimed twice": {[]contracts.Event{request(0, alice, 1), fund(0, 3), claim(0, alice, 3),
			claim(0, alice, 3)}, [3]uint64{1, 2, 3}, 1},
		"funded twice": {[]contracts.Event{request(0, alice, 1), fund(0, 3), fund(0, 4)}, [3]uint64{1, 2, never},
			1},
		"funded after its expiry": {[]contracts.Event{request(0, alice, 1), expire, fund(0, 3)}, [3]uint64{1, never, 2}, 1},
		"claimed after its expiry": {[]contracts.Event{request(0, alice, 1), expire, claim(0, alice, 3)},
			[3]uint64{1, never, 2}, 1},
		"cancelled when funded":     {[]contracts.Event{request(0, alice, 1), fund(0, 3), cancel}, [3]uint64{1, 2, 3}, 1},
		"funded before its request": {[]contracts.Event{fund(0, 3), request(0, alice, 1)}, [3]uint64{2, never, never}, 1},
		"over before its request": {[]contracts.Event{cancel, claim(0, alice, 1), request(0, alice, 1), fund(0, 2)},
			[3]uint64{3, 4, never}, 2},
		"claimed without funding": {[]contracts.Event{request(0, alice, 1), claim(0, alice, 1)}, [3]uint64{1, never, 2}, 1},
	} {
		b := newBook(t)
		for i, e := range c.events {
			b.log(uint64(i)+1, 1, vaultA, e)
		}
		same(t, name, b.blocks(), c.want)
		if _, impossible := b.fold.Contradictions(); len(impossible) != c.impossible {
			t.Errorf("%s: impossible are %q", name, impossible)
		}
	}
}

// TestFundedByNoNumber: if no log names each funded request by its number, a claimed request may have been funded, and
// only its second claim is impossible.
func TestFundedByNoNumber(t *testing.T) {
	const asked = "DepositAccepted(uint256 indexed id, address indexed owner, uint32 indexed partner, address sender, " +
		"uint256 assets, uint256 shares)"
	const paid = "WithdrawalClaimed(uint256 indexed id, address indexed owner, address indexed receiver, uint256 " +
		"shares, uint256 assets)"
	const funded = "WithdrawalCancelled(uint256 indexed id, address indexed owner, uint256 shares)"
	for rule, impossible := range map[string]int{
		"": 1, "\n  - on: " + funded + "\n    emit: funded\n    set: {up_to_key: $id}\n": 1,
		"\n  - on: " + funded + "\n    emit: funded\n    set: {key: $id, assets: $shares}\n": 2,
	} {
		text, err := mapping.Canonical("file", []byte("preset: x\nsources: {vault: required}\nevents:\n"+
			"  - on: "+asked+"\n    emit: requested\n    set: {key: $id, owner: $owner, shares: $shares}\n"+
			"  - on: "+paid+"\n    emit: claimed\n    set: {key: $id, owner: $owner, assets: $assets}"+rule))
		if err != nil {
			t.Fatal(err)
		}
		v := &event.Vault{Address: vaultA[:]}
		err = mapping.Record(v, []mapping.Source{{Role: "vault", Address: vaultA}},
			[]mapping.Text{{To: math.MaxUint64, Preset: "x", Text: text}})
		if err != nil {
			t.Fatal(err)
		}
		b := newBook(t)
		b.add(&event.Record{Fact: &event.Record_Vault{Vault: v}})
		b.log(1, 1, vaultA, deposit(0, alice, 0, n(5)))
		b.log(2, 1, vaultA, claim(0, alice, 5))
		b.log(3, 1, vaultA, claim(0, alice, 5))
		if _, got := b.fold.Contradictions(); len(got) != impossible {
			t.Errorf("with the rule %q, impossible are %q", rule, got)
		}
	}
}

// TestOrderOfTheChain: within a block the index of a log decides, not its position in our log.
func TestOrderOfTheChain(t *testing.T) {
	b := newBook(t)
	b.index = 9
	b.log(1, 1, vaultA, fund(0, 3))
	b.index = 4
	b.log(1, 1, vaultA, request(0, alice, 1))
	same(t, "request 0", b.blocks(), [3]uint64{1, 1, readmodel.Never})
}

func TestQuarantined(t *testing.T) {
	b := newBook(t)
	largest := new(big.Int).Sub(new(big.Int).Lsh(n(1), 191), n(1))
	b.log(1, 1, vaultA, deposit(1, alice, 0, largest))
	b.log(1, 1, vaultA, deposit(2, alice, 0, new(big.Int).Add(largest, n(1))))
	quarantined, _ := b.fold.Contradictions()
	same(t, "quarantined", quarantined, []uint64{2})
	deposits := b.rows(readmodel.UserEvents, func(r readmodel.ListRow) []any { return []any{r.ID, r.Assets.Dec()} })
	same(t, "deposits", deposits, []string{"1 " + largest.String()})
}

// TestWithoutData: a log whose data no record contains counts in no number.
func TestWithoutData(t *testing.T) {
	f := oracle.New(nil)
	known, unknown := contracts.KindDepositAccepted.Topic(), common.HexToHash("0x77")
	for i, topic := range []common.Hash{known, unknown, unknown} {
		l := &event.Log{Address: vaultA[:], Topics: [][]byte{topic[:]}, TxHash: make([]byte, 32)}
		if i < 2 {
			l.SetData(make([]byte, event.MaxData+1))
		}
		r := &event.Record{Seq: uint64(i + 1), Boundary: true, Fact: &event.Record_Log{Log: l}}
		if err := f.Apply(r); err != nil {
			t.Fatal(err)
		}
		if reading := oracle.Read(f.Vaults(), []*event.Record{r})[r.Seq]; len(reading.Effects) > 0 ||
			reading.Quarantined != (topic == known) {
			t.Errorf("record %d is read as %+v", r.Seq, reading)
		}
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
	if _, got := b.fold.Contradictions(); len(got) != 1 || !strings.Contains(got[0], "sweeps deposits 6 to 7 after deposit 4") {
		t.Errorf("impossible: %q", got)
	}
}

// After a retraction without a new branch, the newest block is the last one that remains: there are gaps between the
// records of old blocks, and a block in one of them is no late one.
func TestBlocksAfterARetraction(t *testing.T) {
	b := newBook(t)
	unit := func(number uint64) uint64 {
		return b.add(&event.Record{Boundary: true,
			Fact: &event.Record_Block{Block: &event.Block{Number: number, Time: number}}})
	}
	unit(1000)
	gone := []uint64{b.log(1004, 1004, vaultA, deposit(1, alice, 0, n(1))), unit(1005)}
	late := unit(500)
	b.retract(gone[0])
	b.add(&event.Record{Boundary: true, Retracts: gone[1], Fact: b.records[gone[1]].Fact})
	again := unit(1002)
	b.fold.Skip(oracle.Skipped{From: late})
	if !b.fold.Skips(b.records[late]) || b.fold.Skips(b.records[again]) {
		t.Error("block 500 came late, and block 1002 did not")
	}
}

func TestApplyRefuses(t *testing.T) {
	b := newBook(t)
	first := b.log(1, 1, vaultA, deposit(1, alice, 0, n(1)))
	other := &event.Record{Fact: &event.Record_Block{Block: &event.Block{Number: 1}}}
	for name, r := range map[string]*event.Record{
		"does not follow": {Seq: 5, Fact: other.Fact},
		"is not live":     {Seq: 2, Retracts: 9, Fact: other.Fact},
		"other content":   {Seq: 2, Retracts: first, Fact: other.Fact},
	} {
		f := oracle.New(nil)
		if err := f.Apply(b.records[first]); err != nil {
			t.Fatal(err)
		}
		if err := f.Apply(r); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

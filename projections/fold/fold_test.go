package fold

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

const never = readmodel.Never

var (
	vault = common.HexToAddress("0xa1")
	alice = common.HexToAddress("0xb1")
	bob   = common.HexToAddress("0xb2")
)

// effect returns a log with one effect, in the block with its number.
func effect(kind mapping.Kind, block, id, assets uint64) decode.Fact {
	const has = mapping.ID | mapping.Owner | mapping.Assets | mapping.Shares | mapping.Nav
	e := mapping.Effect{Kind: kind, Has: has, ID: id, Owner: alice, Partner: 7}
	e.Assets.SetUint64(assets)
	if kind == mapping.Sweep {
		e.ID, e.To, e.Owner, e.Partner = 1, id, common.Address{}, 0
	}
	return decode.Fact{Sign: 1, Log: decode.Log{Vault: vault, Block: block, Time: uint32(10 * block)},
		Effects: []mapping.Effect{e}}
}

// folded returns the state after some logs, with nothing before them.
func folded(facts ...decode.Fact) *Change {
	s := newChange([]common.Address{vault})
	s.addFacts(facts...)
	return s
}

func (s *Change) addFacts(facts ...decode.Fact) {
	for i := range facts {
		for j := range facts[i].Effects {
			e := entryOf(&facts[i], j)
			s.addKeys(&e, facts[i].Sign)
		}
	}
	s.fold(&decode.Unit{Facts: decode.Batch{facts}})
}

// commit makes the current state the previous one.
func (s *Change) commit() {
	for _, e := range s.entries {
		if e.before = nil; e.after != nil {
			old := *e.after
			e.before = &old
		}
	}
	for _, t := range s.totals {
		t.before = slices.Clone(t.after)
	}
	for _, m := range s.members {
		m.before = m.after
	}
}

// lines returns the current live rows.
func (s *Change) lines() (out []string) {
	fresh := *s
	fresh.entries, fresh.totals, fresh.members = map[entryKey]*pair[entry]{}, map[totalKey]*total{},
		map[memberKey]*pair[first]{}
	for k, e := range s.entries {
		fresh.entries[k] = &pair[entry]{after: e.after}
	}
	for k, t := range s.totals {
		fresh.totals[k] = &total{after: t.after}
	}
	for k, m := range s.members {
		fresh.members[k] = &pair[first]{after: m.after}
	}
	fresh.difference(func(_ int8, row readmodel.ListRow) { out = append(out, readmodel.ListsTable.Line(&row)) })
	slices.Sort(out)
	return out
}

// TestRequests checks the state of a request after some logs, one in each block from block 1 on.
func TestRequests(t *testing.T) {
	t.Parallel()
	requested, funded, claimed, cancelled, expired := mapping.Requested, mapping.Funded, mapping.Claimed,
		mapping.Cancelled, mapping.Expired
	for name, c := range map[string]struct {
		events     []mapping.Kind
		want       [3]uint64 // requested, funded, closed; zeros for no request
		impossible int       // events that change nothing
	}{
		"requested":                       {[]mapping.Kind{requested}, [3]uint64{1, never, never}, 0},
		"funded and claimed":              {[]mapping.Kind{requested, funded, claimed}, [3]uint64{1, 2, 3}, 0},
		"requested twice":                 {[]mapping.Kind{requested, requested, funded}, [3]uint64{1, 3, never}, 1},
		"funded twice":                    {[]mapping.Kind{requested, funded, funded}, [3]uint64{1, 2, never}, 1},
		"requested again after its end":   {[]mapping.Kind{requested, cancelled, requested}, [3]uint64{1, never, 2}, 1},
		"funded after it expired":         {[]mapping.Kind{requested, expired, funded}, [3]uint64{1, never, 2}, 1},
		"claimed twice":                   {[]mapping.Kind{requested, claimed, claimed}, [3]uint64{1, never, 2}, 1},
		"over before it is requested":     {[]mapping.Kind{claimed, funded, requested}, [3]uint64{3, never, never}, 2},
		"never requested":                 {[]mapping.Kind{funded, expired}, [3]uint64{}, 2},
		"cancelled although it is funded": {[]mapping.Kind{requested, funded, cancelled}, [3]uint64{1, 2, 3}, 0},
	} {
		var facts []decode.Fact
		for i, kind := range c.events {
			facts = append(facts, effect(kind, uint64(i)+1, 5, 3))
		}
		s := folded(facts...)
		var got [3]uint64
		if q := s.entries[requestKey(vault, 5)].after; q != nil {
			got = [3]uint64{q.Block, q.FundedBlock, q.ClosedBlock}
		}
		if got != c.want || len(s.Impossible) != c.impossible {
			t.Errorf("%s: %v, and %d logs changed nothing; want %v and %d", name, got, len(s.Impossible), c.want, c.impossible)
		}
	}
}

// TestNavHas18Decimals: NAV that comes from no log has 18 decimals, whatever the vault's record contains about the
// decimals of its shares and of its asset.
func TestNavHas18Decimals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ shares, asset uint32 }{{18, 18}, {18, 6}, {6, 6}, {6, 18}} {
		text, err := mapping.Canonical("valued", []byte(`preset: valued
sources: {vault: required}
events:
  - on: Supplied(uint256 shares)
    emit: supply
    set: {shares: $shares}
  - on: Counted(uint256 assets)
    emit: valuation
    set: {total_assets: $assets}
  - on: Priced(uint256 nav)
    emit: valuation
    set: {nav: $nav}
`))
		must(t, err)
		record := &event.Vault{Address: vault[:], Decimals: c.shares, Asset: &event.Token{Decimals: c.asset}}
		must(t, mapping.Record(record, []mapping.Source{{Role: "vault", Address: vault}},
			[]mapping.Text{{To: math.MaxUint64, Preset: "valued", Text: text}}))
		units := func(n, decimals uint32) *big.Int {
			return new(big.Int).Mul(big.NewInt(int64(n)), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil))
		}
		var in []chainlog.Raw
		seq := uint64(0)
		put := func(r *event.Record) {
			value, err := proto.Marshal(r)
			must(t, err)
			seq++
			in = append(in, chainlog.Raw{Seq: seq, Boundary: true, Value: value})
		}
		put(&event.Record{Boundary: true, Fact: &event.Record_Vault{Vault: record}})
		logged := func(name string, value *big.Int) {
			put(&event.Record{Boundary: true, Fact: &event.Record_Log{Log: &event.Log{Address: vault[:], BlockNumber: seq,
				BlockHash: common.Hash{1}.Bytes(), TxHash: common.Hash{2}.Bytes(), Data: common.BigToHash(value).Bytes(),
				Topics: [][]byte{crypto.Keccak256([]byte(name + "(uint256)"))}}}})
		}
		vaults, err := mapping.NewVaults()
		must(t, err)
		decoder := decode.NewDecoder(1, vaults)
		s := newChange([]common.Address{vault})
		same := func(what string, nav, assets *big.Int) {
			facts, err := decoder.All(in)
			must(t, err)
			s.addFacts(facts...)
			in = nil
			v := s.totals[totalsOf(vault, vault)].after.newest()
			if v.Nav.ToBig().Cmp(nav) != 0 || v.Assets.ToBig().Cmp(assets) != 0 {
				t.Errorf("%s, shares of %d decimals, an asset of %d: NAV %s and assets %s, want %s and %s",
					what, c.shares, c.asset, v.Nav.Dec(), v.Assets.Dec(), nav, assets)
			}
		}
		logged("Supplied", units(1000, c.shares))
		logged("Counted", units(1500, c.asset))
		same("1000 shares and 1500 of the asset", units(15, 17), units(1500, c.asset))
		logged("Priced", units(2, 18))
		same("1000 shares at 2", units(2, 18), units(2000, c.asset))
	}
}

// logsOfAllKinds returns logs of all kinds, one in each block from block 1 on.
func logsOfAllKinds() []decode.Fact {
	kinds := []mapping.Kind{mapping.Deposit, mapping.Requested, mapping.Sweep, mapping.Deposit, mapping.Deposit,
		mapping.Funded,
		mapping.Claimed,
		mapping.Requested, mapping.Sweep, mapping.Sweep, mapping.Deposit, mapping.Cancelled, mapping.Claimed,
		mapping.Valuation}
	ids := []uint64{1, 5, 1, 2, 9, 5, 5, 6, 3, 2, 3, 6, 77, 0}
	var facts []decode.Fact
	for i, kind := range kinds {
		f := effect(kind, uint64(i)+1, ids[i], 10)
		if i%3 == 2 && kind != mapping.Sweep {
			f.Effects[0].Owner, f.Effects[0].Partner = bob, 0
		}
		facts = append(facts, f)
	}
	return facts
}

// TestClip: clipping at any block returns the state after that block, and the difference leads from one state to the
// other.
func TestClip(t *testing.T) {
	t.Parallel()
	all := logsOfAllKinds()
	for ancestor := range all {
		want := folded(all[:ancestor]...)
		s := folded(all...)
		s.commit()
		before := s.lines()
		s.clip(uint64(ancestor))
		if got := s.lines(); !slices.Equal(got, want.lines()) {
			t.Fatalf("clipped at block %d there is\n%s\nwant\n%s", ancestor, strings.Join(got, "\n"),
				strings.Join(want.lines(), "\n"))
		}
		signs := map[string]int{}
		for _, line := range before {
			signs[line]++
		}
		came := false
		s.difference(func(sign int8, row readmodel.ListRow) {
			if came = came || sign > 0; came && sign < 0 {
				t.Fatal("a row is removed after one was added")
			}
			signs[readmodel.ListsTable.Line(&row)] += int(sign)
		})
		maps.DeleteFunc(signs, func(_ string, n int) bool { return n == 0 })
		for line, n := range signs {
			if n != 1 {
				t.Errorf("clipped at block %d the signs of a row add up to %d: %s", ancestor, n, line)
			}
		}
		if got := slices.Sorted(maps.Keys(signs)); !slices.Equal(got, want.lines()) {
			t.Errorf("clipped at block %d the difference gives\n%s\nwant\n%s", ancestor, strings.Join(got, "\n"),
				strings.Join(want.lines(), "\n"))
		}
		s.reindex()
		s.addFacts(all[ancestor:]...) // the same branch again
		s.difference(func(sign int8, row readmodel.ListRow) {
			t.Errorf("to block %d and back: sign %d of %+v", ancestor, sign, row)
		})
	}
}

// TestSweeps: a deposit is swept by the first sweep whose last number is at least its own; a deposit whose number a
// sweep has already reached is swept in its own block.
func TestSweeps(t *testing.T) {
	t.Parallel()
	deposit := func(block, id uint64) decode.Fact { return effect(mapping.Deposit, block, id, 10) }
	sweep := func(block, to uint64) decode.Fact { return effect(mapping.Sweep, block, to, 0) }
	for name, c := range map[string]struct {
		facts []decode.Fact
		want  map[uint64]uint64 // block in which each deposit is swept
		total string            // swept, their assets, the highest number
	}{
		"in order": {[]decode.Fact{deposit(1, 1), deposit(2, 2), deposit(3, 3), sweep(4, 2)},
			map[uint64]uint64{1: 4, 2: 4, 3: never}, "2 20 2"},
		"by two sweeps": {[]decode.Fact{deposit(1, 1), sweep(2, 1), deposit(3, 2), sweep(4, 2)},
			map[uint64]uint64{1: 2, 2: 4}, "2 20 2"},
		"twice": {[]decode.Fact{deposit(1, 1), sweep(2, 1), sweep(3, 1)}, map[uint64]uint64{1: 2},
			"1 10 1"},
		"back": {[]decode.Fact{deposit(1, 2), sweep(2, 2), sweep(3, 1), deposit(4, 1)},
			map[uint64]uint64{2: 2, 1: 4}, "2 20 2"},
		"after the sweep": {[]decode.Fact{sweep(1, 7), deposit(2, 7), deposit(3, 8)},
			map[uint64]uint64{7: 2, 8: never}, "1 10 7"},
		"number 0": {[]decode.Fact{deposit(1, 0), sweep(2, 0), deposit(3, 0), sweep(4, 1)},
			map[uint64]uint64{0: 4}, "2 20 1"},
		"the highest number": {[]decode.Fact{deposit(1, never), sweep(2, never)}, map[uint64]uint64{never: 2},
			fmt.Sprint("1 10 ", uint64(never))},
		"in the block of a sweep": {[]decode.Fact{deposit(1, 1), sweep(1, 1), deposit(1, 1)}, map[uint64]uint64{1: 1},
			"2 20 1"},
	} {
		for i := range c.facts {
			c.facts[i].Log.Index = uint32(i)
		}
		s := folded(c.facts...)
		for k, d := range s.entries {
			if k.kind != readmodel.Deposit {
				continue
			}
			if d.after.ClosedBlock != c.want[k.id] {
				t.Errorf("%s: deposit %d is swept in block %d, want %d", name, k.id, d.after.ClosedBlock, c.want[k.id])
			}
		}
		n := s.totals[totalsOf(vault, vault)].after.newest()
		if got := fmt.Sprint(n.Swept, n.SweptAssets.Uint64(), n.SweptTo); got != c.total {
			t.Errorf("%s: swept are %s, want %s", name, got, c.total)
		}
	}
}

// TestTotals: a step is true until the next block that changes a number.
func TestTotals(t *testing.T) {
	t.Parallel()
	var s steps
	for _, block := range []uint64{2, 2, 5, 9} {
		s = s.add(block, uint32(10*block), func(n *readmodel.ListRow) { n.Deposits++ })
	}
	s = s.add(11, 110, func(*readmodel.ListRow) {})
	var got []string
	for _, r := range s.rows(userIn(alice, vault)) {
		got = append(got, fmt.Sprint(r.Block, r.Key.Uint64(), r.TS, r.ClosedTS, r.Deposits))
	}
	if want := []string{"2 5 20 50 2", "5 9 50 90 3", fmt.Sprint(9, uint64(never), 90, 0, 4)}; !slices.Equal(got, want) {
		t.Errorf("the steps are %q, want %q", got, want)
	}
	for block, want := range map[uint64]uint64{1: 0, 2: 2, 4: 2, 5: 3, 8: 3, 9: 4} {
		if n := s.clip(block).newest().Deposits; n != want {
			t.Errorf("clipped at block %d there are %d deposits, want %d", block, n, want)
		}
	}
}

// TestChainOrder: a unit with several vaults is folded in chain order, even if the log contains one vault after the
// other.
func TestChainOrder(t *testing.T) {
	t.Parallel()
	other := common.HexToAddress("0xa2")
	late := effect(mapping.Deposit, 9, 1, 10)
	early := effect(mapping.Deposit, 4, 1, 10)
	early.Log.Vault = other
	s := newChange([]common.Address{vault, other})
	s.addFacts(late, early)
	if m := s.members[memberKey{user: alice}].after; m.block != 4 || m.ts != 40 {
		t.Errorf("alice is seen in block %d, want 4", m.block)
	}
	if n := s.totals[totalsOf(common.Address{}, common.Address{})].after; len(n) != 1 || n[0].Block != 4 {
		t.Errorf("the number of users is %+v", n)
	}
}

// TestTouched: the touched row names the list and owner of each row; for a unit that changes too many keys, it names
// everything. For a unit that retracts, it names the first block about which a response may change.
func TestTouched(t *testing.T) {
	t.Parallel()
	c := &Change{Cursor: readmodel.ListsCursor{Seq: 9, Block: 6}, retracts: true, ancestor: 4}
	key := readmodel.Touch(readmodel.Queue, vault)
	row := c.touched(map[readmodel.TouchedKey]bool{key: true})
	if row.Seq != 9 || row.Key.Uint64() != 9 || row.ID != 5 || row.Touched != readmodel.TouchedKeys(key[:]) {
		t.Errorf("the row is %+v", row)
	}
	c.Cursor.Block = 2 // blocks 3 and 4 are not recorded, and the new branch may have other logs in them
	if row := c.touched(nil); row.ID != 3 {
		t.Errorf("a unit that leaves the chain at block 2 counts as changing responses from block %d on", row.ID)
	}
	many := map[readmodel.TouchedKey]bool{}
	for i := range maxTouchedKeys + 1 {
		many[readmodel.Touch(readmodel.Totals, readmodel.PartnerOwner(uint32(i)))] = true
	}
	if row := c.touched(many); row.Touched != readmodel.TouchedKeys(readmodel.TouchedAll[:]) {
		t.Errorf("%d keys are named by %d", len(many), len(row.Touched))
	}
}

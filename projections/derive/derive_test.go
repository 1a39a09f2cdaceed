package derive

import (
	"maps"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/readmodel"
)

const never = readmodel.Never

var (
	vault = common.HexToAddress("0xa1")
	alice = common.HexToAddress("0xb1")
)

// fact is a log with one effect.
func fact(kind decode.EffectKind, block uint64, id uint64, assets uint64) *decode.Fact {
	e := decode.Effect{Kind: kind, ID: id, Owner: alice, Partner: 7}
	e.Assets.SetUint64(assets)
	return &decode.Fact{Sign: 1, Log: decode.Log{Vault: vault, Block: block, Time: uint32(10 * block)}, Effects: []decode.Effect{e}}
}

func takenBack(f *decode.Fact) *decode.Fact {
	back := *f
	back.Sign = -1
	return &back
}

// TestFoldAndClipOfWithdrawals: what a request is after some logs, a block each from
// block 1 on, and what is left of it at each block before.
func TestFoldAndClipOfWithdrawals(t *testing.T) {
	t.Parallel()
	asked, funded, claimed, cancelled, expired := decode.Requested, decode.Funded, decode.Claimed, decode.Cancelled, decode.Expired
	for name, c := range map[string]struct {
		events     []decode.EffectKind
		want       [3]uint64 // requested, funded, closed; zeros for no request
		impossible []int     // events that change nothing
	}{
		"asked for":                      {[]decode.EffectKind{asked}, [3]uint64{1, never, never}, nil},
		"funded and claimed":             {[]decode.EffectKind{asked, funded, claimed}, [3]uint64{1, 2, 3}, nil},
		"asked for twice":                {[]decode.EffectKind{asked, asked, funded}, [3]uint64{1, 3, never}, []int{1}},
		"funded twice":                   {[]decode.EffectKind{asked, funded, funded}, [3]uint64{1, 2, never}, []int{2}},
		"asked for again after its end":  {[]decode.EffectKind{asked, cancelled, asked}, [3]uint64{1, never, 2}, []int{2}},
		"funded after it expired":        {[]decode.EffectKind{asked, expired, funded}, [3]uint64{1, never, 2}, []int{2}},
		"claimed twice":                  {[]decode.EffectKind{asked, claimed, claimed}, [3]uint64{1, never, 2}, []int{2}},
		"over before it is asked for":    {[]decode.EffectKind{claimed, funded, asked}, [3]uint64{3, never, never}, []int{0, 1}},
		"never asked for":                {[]decode.EffectKind{funded, expired}, [3]uint64{}, []int{0, 1}},
		"cancelled although it is known": {[]decode.EffectKind{asked, funded, cancelled}, [3]uint64{1, 2, 3}, nil},
	} {
		fold := func(events []decode.EffectKind) (got [3]uint64, ignored []int, state map[requestKey]*Withdrawal) {
			state = map[requestKey]*Withdrawal{}
			for i, kind := range events {
				f := fact(kind, uint64(i)+1, 5, 1)
				if !foldWithdrawal(state, nil, f, &f.Effects[0]) {
					ignored = append(ignored, i)
				}
			}
			return blocksOf(state), ignored, state
		}
		got, ignored, _ := fold(c.events)
		if got != c.want || !slices.Equal(ignored, c.impossible) {
			t.Errorf("%s: %v, and %v changed nothing; want %v and %v", name, got, ignored, c.want, c.impossible)
		}
		for block := range c.events {
			want, _, _ := fold(c.events[:block])
			_, _, state := fold(c.events)
			clipWithdrawals(state, uint64(block))
			if got := blocksOf(state); got != want {
				t.Errorf("%s, clipped at block %d: %v, want %v", name, block, got, want)
			}
		}
	}
	key := requestKey{vault, 5}
	again := fact(asked, 9, 5, 1)
	if foldWithdrawal(map[requestKey]*Withdrawal{}, map[requestKey]bool{key: true}, again, &again.Effects[0]) {
		t.Error("a request whose row was over long ago is asked for again")
	}
}

func blocksOf(state map[requestKey]*Withdrawal) (out [3]uint64) {
	if w := state[requestKey{vault, 5}]; w != nil {
		out = [3]uint64{w.RequestedBlock, w.FundedBlock, w.ClosedBlock}
	}
	return out
}

// TestFoldAndClipOfUsers: since when somebody is a user of what, and the sums, which
// no clip changes: what is taken back does.
func TestFoldAndClipOfUsers(t *testing.T) {
	t.Parallel()
	state := map[scope]*member{}
	of := func(s scope) (block, deposited, withdrawn uint64) {
		t.Helper()
		s.user = alice
		m := state[s]
		if m == nil {
			return 0, 0, 0
		}
		return m.firstBlock, m.deposited.Uint64(), m.withdrawn.Uint64()
	}
	wants := func(when string, s scope, block, deposited, withdrawn uint64) {
		t.Helper()
		if b, d, w := of(s); b != block || d != deposited || w != withdrawn {
			t.Errorf("%s: %+v is seen in block %d, deposited %d, withdrew %d; want %d, %d, %d", when, s, b, d, w, block, deposited, withdrawn)
		}
	}
	claim, request, deposit := fact(decode.Claimed, 1, 5, 3), fact(decode.Requested, 2, 6, 90), fact(decode.Deposit, 3, 1, 50)
	foldMember(state, claim, &claim.Effects[0])
	wants("who only claimed", scope{}, never, 0, 3)
	if rows := userRows(state); len(rows) != 1 {
		t.Errorf("who only claimed is in the rows %v", rows)
	}
	foldMember(state, request, &request.Effects[0])
	foldMember(state, deposit, &deposit.Effects[0])
	wants("of all", scope{}, 2, 50, 3)
	wants("of the vault", scope{vault: vault}, 2, 0, 0)
	wants("of the partner", scope{partner: 7}, 3, 0, 0)
	if rows := userRows(state); len(rows) != 6 { // member of three scopes, and three lists of all
		t.Errorf("a user is in the rows %v", slices.Collect(maps.Keys(rows)))
	}
	clipMembers(state, 2)
	wants("clipped at block 2", scope{}, 2, 50, 3)
	wants("clipped at block 2", scope{partner: 7}, never, 0, 0)
	foldMember(state, takenBack(deposit), &deposit.Effects[0])
	wants("the deposit taken back", scope{}, 2, 0, 3)
	clipMembers(state, 0)
	for _, f := range []*decode.Fact{request, claim} {
		foldMember(state, takenBack(f), &f.Effects[0])
	}
	wants("all taken back", scope{}, never, 0, 0)
	if rows := userRows(state); len(rows) != 0 {
		t.Errorf("of nobody there are the rows %v", rows)
	}
}

// TestFoldAndClipOfPartnerTotals: a row is true until the next block with a deposit.
func TestFoldAndClipOfPartnerTotals(t *testing.T) {
	t.Parallel()
	at := func(blocks ...uint64) map[PartnerTotal]bool {
		rows := map[PartnerTotal]bool{}
		newest := newestTotals(rows)
		for _, b := range blocks {
			f := fact(decode.Deposit, b, 1, 10)
			foldPartnerTotal(rows, newest, f, &f.Effects[0])
		}
		return rows
	}
	row := func(from, until, deposits uint64) PartnerTotal {
		p := PartnerTotal{Partner: 7, Vault: vault, FromBlock: from, UntilBlock: until, Deposits: deposits}
		p.Volume.SetUint64(10 * deposits)
		return p
	}
	rows := at(2, 2, 5, 9)
	if want := map[PartnerTotal]bool{row(2, 5, 2): true, row(5, 9, 3): true, row(9, never, 4): true}; !maps.Equal(rows, want) {
		t.Errorf("the rows are %v, want %v", rows, want)
	}
	for block, want := range map[uint64]map[PartnerTotal]bool{1: {}, 2: at(2, 2), 4: at(2, 2), 5: at(2, 2, 5), 8: at(2, 2, 5), 9: rows} {
		if got := clipPartnerTotals(rows, block); !maps.Equal(got, want) {
			t.Errorf("clipped at block %d: %v, want %v", block, got, want)
		}
	}
}

// TestBetween: what is in both is no difference.
func TestBetween(t *testing.T) {
	t.Parallel()
	d := between(map[int]bool{1: true, 2: true}, map[int]bool{2: true, 3: true})
	if !slices.Equal(d.Gone, []int{1}) || !slices.Equal(d.Come, []int{3}) {
		t.Errorf("the difference is %+v", d)
	}
}

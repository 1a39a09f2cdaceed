package ingest

import (
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/testkit/logoracle"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/registry"
)

// attributed changes the mapping of the rig's first vault so that partner ids become attribution values, which name no
// partner without an alias. Otherwise it is the mapping of the reference contracts. The other vaults are removed.
func (r *rig) attributed() {
	r.t.Helper()
	text, err := mapping.PresetText("reference")
	r.must(err)
	file := filepath.Join(r.t.TempDir(), "attributed.yaml")
	r.must(os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "partner: $partnerId", "attribution: $partnerId")),
		0o600))
	r.config.Vaults = r.config.Vaults[:1]
	r.config.Vaults[0].Mapping = file
}

// value returns the attribution value of a number.
func value(n int64) common.Hash { return common.BigToHash(big.NewInt(n)) }

// alias issues a command about the aliases of the first vault.
func (r *rig) alias(kind string, a vaults.Alias) (ids []int64) {
	r.t.Helper()
	argument, err := a.Encode()
	r.must(err)
	r.orders.mu.Lock()
	defer r.orders.mu.Unlock()
	return []int64{r.give(kind, r.config.Vaults[0], argument)}
}

// places counts a partner's referrals in the referral topics whose logs are in the chain, by log.
func (r *rig) places(partner uint32) map[string]int {
	r.t.Helper()
	r.settle()
	out := map[string]int{}
	for _, referral := range r.published() {
		h, err := r.chain.HeaderByNumber(r.ctx, new(big.Int).SetUint64(referral.GetLog().GetBlockNumber()))
		r.must(err)
		if referral.GetPartnerId() == partner && h.Hash() == common.Hash(referral.GetLog().GetBlockHash()) {
			out[placeOf(referral)]++
		}
		if referral.GetEffect().GetPartnerId() != referral.GetPartnerId() {
			r.t.Errorf("the effect names partner %d, the referral names %d", referral.GetEffect().GetPartnerId(),
				referral.GetPartnerId())
		}
	}
	return out
}

// attributedTo returns the first vault's logs in the chain that have an attribution value, from a block.
func (r *rig) attributedTo(value uint32, from uint64) map[string]int {
	r.t.Helper()
	out := map[string]int{}
	for n := from; n <= r.height(); n++ {
		h, err := r.chain.HeaderByNumber(r.ctx, new(big.Int).SetUint64(n))
		r.must(err)
		for _, l := range r.chainLogs(h, common.HexToAddress(r.config.Vaults[0].Address)) {
			if _, of := logoracle.Attribution(r.config.ID, l); of == value {
				out[placeOf(publishedReferral{&event.Referral{Log: l}, ""})]++
			}
		}
	}
	return out
}

// aliases returns the aliases in each record of the first vault, in order.
func (r *rig) aliases() (all [][]*event.Alias) {
	r.t.Helper()
	r.settle()
	records, _ := r.log()
	for _, record := range records {
		if v := record.GetVault(); v != nil && !v.GetRemoved() {
			all = append(all, v.GetAliases())
		}
	}
	return all
}

// TestAliases: a value names no partner without an alias. With one, referrals are written from then on, across
// reorganisations. A second command adds nothing, another partner is refused, and without the alias the value names no
// partner again. Records of the vault after a change of name or a restore keep the aliases.
func TestAliases(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.attributed()
	r.config.Confirmations = 1
	r.steps(20)
	depositor := r.depositor()
	depositor.deposit(1, 7)
	p := r.follow()
	r.settle()
	if all := r.published(); len(all) > 0 {
		t.Fatalf("%d referrals were written without an alias", len(all))
	}
	for _, c := range []struct {
		kind string
		a    vaults.Alias
		want vaults.Outcome
	}{
		{registry.SetAlias, vaults.Alias{Value: value(7), Partner: 70}, done("seq ")},
		{registry.SetAlias, vaults.Alias{Value: value(7), Partner: 70}, done("7 names partner 70")},
		{registry.SetAlias, vaults.Alias{Value: value(7), Partner: 71}, refused("remove that alias first")},
		{registry.SetAlias, vaults.Alias{Value: value(7), Partner: 0}, refused("no partner")},
		{registry.RemoveAlias, vaults.Alias{Value: value(8), Partner: 0}, done("8 names no partner")},
	} {
		if outcome := p.outcome(r.alias(c.kind, c.a)); outcome.Result != c.want.Result ||
			!strings.Contains(outcome.Detail, c.want.Detail) {
			t.Errorf("the outcome of %s %v is %v, want %v", c.kind, c.a, outcome, c.want)
		}
	}
	from := r.height() + 1
	depositor.deposit(2, 7)
	depositor.deposit(3, 42)
	p.caughtUp()
	if got, want := r.places(70), r.attributedTo(7, from); len(want) != 1 || !maps.Equal(got, want) {
		t.Errorf("the published referrals are %v, want %v", got, want)
	}
	r.reorg(3) // all deposits are orphaned
	from = r.height() - 2
	depositor.deposit(4, 7)
	p.caughtUp()
	if got, want := r.places(70), r.attributedTo(7, from); len(want) == 0 || !maps.Equal(got, want) {
		t.Errorf("after a reorganisation the published referrals are %v, want %v", got, want)
	}
	p.halt()

	r.config.Vaults[0].Name = "Renamed"
	r.config.Vaults = append(r.config.Vaults,
		vaults.Config{Address: r.contracts.Vaults[1].Address.Hex(), StartBlock: r.contracts.Vaults[1].StartBlock})
	r.order(registry.RemoveVault, r.config.Vaults[0])
	p = r.start()
	p.outcome(r.order(registry.RestoreVault, r.config.Vaults[0]))
	if outcome := p.outcome(r.alias(registry.RemoveAlias,
		vaults.Alias{Value: value(7)})); outcome.Result != registry.CommandDone {
		t.Errorf("the outcome of the removal is %v", outcome)
	}
	before := len(r.published())
	depositor.deposit(5, 7)
	p.caughtUp()
	r.settle()
	if after := len(r.published()); after != before {
		t.Errorf("%d referrals were written after the alias was removed", after-before)
	}
	var counts []int
	for _, a := range r.aliases() {
		counts = append(counts, len(a))
	}
	if last := len(counts) - 1; counts[0] != 0 || counts[1] != 1 || counts[last] != 0 ||
		counts[last-1]+counts[last-2] == 0 {
		t.Errorf("the vault records have %v aliases", counts)
	}
}

// TestAliasThroughCrashes: a crash at any step of the transaction that sets an alias neither loses nor duplicates it. A
// crash while earlier referrals are written loses none: in the end they are those of all live logs with the value.
func TestAliasThroughCrashes(t *testing.T) {
	for _, at := range few(writer.Steps) {
		t.Run(string(at), func(t *testing.T) {
			r := newRig(t, kfake)
			r.attributed()
			r.config.Confirmations = 1
			r.steps(15)
			depositor := r.depositor()
			for n := range int64(3) {
				depositor.deposit(n+1, 7)
			}
			p := r.follow()
			r.reorg(2) // two deposits are retracted
			depositor.deposit(9, 7)
			p.caughtUp()
			p.halt()
			die := func(ids []int64) vaults.Outcome {
				t.Helper()
				inPieces := func(i *Ingest) { i.earlierAtOnce = 7 }
				r.killed(inPieces, killAt(at, 2)) // 1 is the claim
				p := r.start(inPieces)
				defer p.halt()
				return p.outcome(ids)
			}
			if outcome := die(r.alias(registry.SetAlias,
				vaults.Alias{Value: value(7), Partner: 70})); outcome.Result != registry.CommandDone {
				t.Errorf("the outcome of the alias is %v", outcome)
			}
			if all := r.aliases(); len(all) != 2 || len(all[0]) != 0 || len(all[1]) != 1 || all[1][0].GetPartnerId() != 70 {
				t.Errorf("the vault records have the aliases %v", all)
			}
			if n := len(r.published()); n != 0 {
				t.Errorf("%d referrals were written of blocks before the alias", n)
			}
			if outcome := die(r.alias(registry.SendEarlier, vaults.Alias{Partner: 70})); outcome.Result != registry.CommandDone ||
				!strings.Contains(outcome.Detail, "referrals of vault") {
				t.Errorf("the outcome of sending the earlier referrals is %v", outcome)
			}
			got, want := r.places(70), r.attributedTo(7, 1)
			for place := range got {
				got[place] = 1 // a referral that is written twice has one event id
			}
			if len(want) < 2 || !maps.Equal(got, want) {
				t.Errorf("the published referrals are %v, want %v", got, want)
			}
			if all := len(r.published()); all > 2*len(want) {
				t.Errorf("%d referrals were written for %d logs of the chain", all, len(want))
			}
		})
	}
}

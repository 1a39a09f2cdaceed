package mapped

import (
	"context"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// order adds a command for ingest, and waits until it is done.
func (s *system) order(kind string, vault common.Address, a vaults.Alias) {
	s.t.Helper()
	argument, err := a.Encode()
	must(s.t, err)
	q := db.New(s.pool)
	id, err := q.AddVaultCommand(s.t.Context(),
		db.AddVaultCommandParams{ChainID: chainID, Kind: kind, Vault: vault[:], Argument: []byte(argument)})
	must(s.t, err)
	wait.Until(s.t, func() error {
		c, err := q.VaultCommand(s.t.Context(), id)
		if err == nil && c.Outcome != registry.CommandDone {
			err = fmt.Errorf("command %s: %q, %s", kind, c.Outcome, c.Detail)
		}
		return err
	})
}

// attributed returns the number of deposits in the read model with an attribution value.
func (s *system) attributed(vault common.Address, value common.Hash) (deposits uint64) {
	s.t.Helper()
	o, err := projections.NewOperator(chainID, s.kafka, s.ch, s.pool)
	must(s.t, err)
	defer o.Close()
	all, err := o.Attributions(s.t.Context(), 10)
	must(s.t, err)
	for _, a := range all {
		if a.Vault == vault && a.Value == value {
			deposits = a.Deposits
		}
	}
	return deposits
}

// brought waits until the partner's statistics have the expected number and volume of deposits of a vault: "0 0" if the
// vault is not in them.
func (s *system) brought(vault common.Address, want string) {
	s.t.Helper()
	wait.Until(s.t, func() error {
		stats, err := s.ask("/partner/stats")
		if err != nil {
			return err
		}
		got := "0 0"
		for _, v := range queued(stats.(map[string]any)["byVault"]) {
			if v["vaultAddress"] == vault.Hex() {
				got = fmt.Sprintf("%v %v", v["depositCount"], v["totalVolume"])
			}
		}
		if got != want {
			return fmt.Errorf("the partner brought %s to vault %s, want %s", got, vault, want)
		}
		return nil
	})
}

// events returns the ids of the partner's deliveries, oldest first.
func (s *system) events() (ids []string) {
	s.t.Helper()
	rows, err := s.pool.Query(s.t.Context(), "SELECT event_id::text FROM delivery WHERE partner_id = $1 ORDER BY sequence",
		partnerID)
	must(s.t, err)
	defer rows.Close()
	for rows.Next() {
		var id string
		must(s.t, rows.Scan(&id))
		ids = append(ids, id)
	}
	must(s.t, rows.Err())
	return ids
}

// agree waits until the read model matches the oracle's fold of the log, and the log matches the chain.
func (s *system) agree() {
	s.t.Helper()
	wait.Until(s.t, func() error {
		r, err := verify.Verify(s.t.Context(), chainID, s.kafka, s.ch, s.pool, verify.Options{Node: s.node})
		if err == nil && (r.Err() != nil || len(r.Quarantined) > 0) {
			err = fmt.Errorf("%w\n%s", r.Err(), r)
		}
		return err
	})
}

// statement waits until the partner's statement has that many deposits of a vault.
func (s *system) statement(vault common.Address, deposits int) {
	s.t.Helper()
	wait.Until(s.t, func() error {
		h, err := s.client.HeaderByNumber(s.t.Context(), big.NewInt(int64(rpc.FinalizedBlockNumber)))
		must(s.t, err)
		to := url.QueryEscape(time.Unix(int64(h.Time)-1, 0).UTC().Format(time.RFC3339))
		r, err := s.get("/partner/statement?from=2020-01-01&to=" + to)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		got := 0
		for line := range strings.Lines(string(body)) {
			if strings.Contains(line, "deposit.referral") && strings.Contains(line, vault.Hex()) {
				got++
			}
		}
		if err != nil || r.StatusCode != http.StatusOK || got != deposits {
			return fmt.Errorf("%s: the statement has %d deposits, want %d: %s, %v", r.Status, got, deposits, body, err)
		}
		return nil
	})
}

// TestAliases: an alias that is added while everything runs maps an attribution value to a partner, both a number and
// Lagoon's referral. It applies to the whole history in the statistics, the statement and their explanation, and to
// webhooks from then on, also across a reorganisation. Webhooks about earlier deposits are sent on request, each once.
// When the alias is removed, the value names no partner again.
func TestAliases(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	alice, bob, carol := common.Address{0xb1}, common.Address{0xb2}, common.Address{0xb3}
	number := func(n int64) common.Hash { return common.BigToHash(big.NewInt(n)) }
	bought := func(who common.Address, no, ref, paid int) {
		s.transact(emits(s.desk, "Bought(address,uint256,uint32,uint256)", who, no, ref, paid),
			emits(s.vault, "Minted(address,uint256,uint256,uint256)", who, no, 1, paid))
	}
	mine := func(n uint64) { // a minute later, because blocks can have the same time as the one before
		must(t, s.client.Client().CallContext(t.Context(), nil, "evm_increaseTime", 60))
		must(t, devchain.Mine(t.Context(), s.node, n))
	}

	// Given deposits whose attribution values have no alias.
	play, err := devchain.DeployProtocol(t.Context(), s.node, "lagoon-v0.6", 3)
	must(t, err)
	t.Cleanup(play.Close)
	lagoon := play.Sources["vault"]
	must(t, play.Steps(t.Context(), 30))
	bought(alice, 1, 555, 5_000_000)
	mine(20)
	s.programs(s.shop(strings.ReplaceAll(shop, "partner: $ref", "attribution: $ref")),
		vaults.Config{Address: lagoon.Hex(), StartBlock: play.StartBlock, Mapping: play.Preset})
	s.says("/users/"+alice.Hex(), `"totalDeposited":"5000000"`)
	referral := common.BytesToHash(devchain.Custodian().Bytes())
	fromLagoon := s.attributed(lagoon, referral)
	if n := s.attributed(s.vault, number(555)); n != 1 || fromLagoon == 0 {
		t.Fatalf("the read model has %d deposits of 555, and %d of Lagoon's referral", n, fromLagoon)
	}
	s.brought(s.vault, "0 0")
	s.statement(s.vault, 0)

	// When they get aliases, the answers follow with the next generation, and webhooks are sent for new deposits.
	s.order(registry.SetAlias, s.vault, vaults.Alias{Value: number(555), Partner: partnerID})
	s.order(registry.SetAlias, lagoon, vaults.Alias{Value: referral, Partner: partnerID})
	s.order(registry.SetAlias, s.vault, vaults.Alias{Value: number(556), Partner: partnerID})
	s.brought(s.vault, "1 5000000")
	s.says("/partner/stats", lagoon.Hex())
	bought(bob, 2, 555, 2_000_000)
	s.brought(s.vault, "2 7000000")
	must(t, devchain.Reorg(t.Context(), s.node, 1)) // without bob
	s.brought(s.vault, "1 5000000")
	bought(bob, 3, 555, 3_000_000)
	s.brought(s.vault, "2 8000000")
	mine(20)
	s.webhook("deposit.referral", bob.Hex(), `"3000000"`, `"partnerId":7`)
	if ids := s.events(); len(ids) != 1 {
		t.Errorf("the deliveries are %v: want that of the deposit after the alias", ids)
	}
	s.says("/explain?of="+url.QueryEscape("/api/v1/partner/stats")+"&field="+
		url.QueryEscape("/byVault/"+s.vault.Hex()+"/totalVolume"), `"value":"8000000"`)
	s.statement(s.vault, 2)
	s.provenStatement(s.vault)

	// And webhooks for the earlier deposits are sent on request; a second request sends nothing new.
	for range 2 {
		s.order(registry.SendEarlier, s.vault, vaults.Alias{Partner: partnerID})
		s.order(registry.SendEarlier, lagoon, vaults.Alias{Partner: partnerID})
	}
	s.webhook("deposit.referral", alice.Hex(), `"5000000"`)
	bought(carol, 4, 556, 1_000_000) // its webhook is sent after those of the second command
	mine(20)
	s.webhook("deposit.referral", carol.Hex())
	ids := s.events()
	if distinct := slices.Compact(slices.Sorted(slices.Values(ids))); len(ids) != 3+int(fromLagoon) ||
		len(distinct) != len(ids) {
		t.Errorf("%d deliveries, %d of them distinct, want %d", len(ids), len(distinct), 3+fromLagoon)
	}
	s.agree()

	// Without the alias the value names no partner, and new deposits are sent to no partner.
	s.order(registry.RemoveAlias, s.vault, vaults.Alias{Value: number(555)})
	s.brought(s.vault, "1 1000000")
	bought(bob, 5, 555, 9_000_000)
	bought(carol, 6, 556, 4_000_000)
	mine(20)
	s.webhook("deposit.referral", carol.Hex(), `"4000000"`)
	s.brought(s.vault, "2 5000000")
	if after := s.events(); len(after) != len(ids)+1 {
		t.Errorf("%d deliveries after the alias was removed, want %d", len(after), len(ids)+1)
	}
	s.statement(s.vault, 2)
	s.agree()

	// A deposit has no shares until its group has a price.
	s.plays(play, "/vaults/"+lagoon.Hex()+"/deposits?pageSize=100", `"shares":null`)
	s.says("/events?pageSize=100&vault="+lagoon.Hex()+"&kind=DepositRequest", `"shares":null`)
	s.agree()
	var dead int
	must(t, s.pool.QueryRow(context.Background(), "SELECT count(*) FROM dead_record").Scan(&dead))
	if dead > 0 {
		t.Errorf("%d records are dead letters", dead)
	}
}

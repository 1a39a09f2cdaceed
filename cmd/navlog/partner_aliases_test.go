package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// word returns a number as a 32-byte word, as in the log.
func word(n byte) []byte { return common.Hash{31: n}.Bytes() }

// attributedLog returns the log of a vault in which partner 70 has the alias 7. It has one deposit each with the values
// 7, 8 and 9, and a request with 8. A reorganisation orphans the block with the values 8 and 9, and then a second one
// restores the records with 8, in the same block.
func attributedLog(t *testing.T) (records []*event.Record, vault *event.Coverage) {
	t.Helper()
	text, err := mapping.Canonical("attributed", []byte(`preset: attributed
sources: {vault: required}
events:
  - on: Bought(address indexed owner, uint256 indexed ref, uint256 assets, uint256 shares)
    emit: deposit
    set: {key: place, owner: $owner, assets: $assets, shares: $shares, attribution: $ref}
  - on: Asked(address indexed owner, uint256 indexed ref, uint256 shares)
    emit: requested
    set: {key: place, owner: $owner, shares: $shares, attribution: $ref}
`))
	if err != nil {
		t.Fatal(err)
	}
	address := common.Address{0xa1}
	v := &event.Vault{Address: address[:], StartBlock: 1, Name: "One", Symbol: "V", Decimals: 18,
		Asset: &event.Token{Address: address[:], Symbol: "A", Decimals: 6}}
	if err := mapping.Record(v, []mapping.Source{{Role: "vault", Address: address}},
		[]mapping.Text{{To: math.MaxUint64, Preset: "attributed", Text: text}}); err != nil {
		t.Fatal(err)
	}
	v = mapping.WithAlias(v, common.Hash{31: 7}, 70)
	put := func(r *event.Record, retracts int) {
		records = append(records, r)
		r.Retracts = uint64(retracts)
	}
	log := func(block uint64, hash, index byte, signature string, ref byte, words ...byte) *event.Record {
		l := &event.Log{Address: address[:], BlockNumber: block, BlockHash: word(hash), BlockTime: 1_700_000_000 + block,
			TxHash: word(hash<<4 | index), LogIndex: uint32(index),
			Topics: [][]byte{crypto.Keccak256([]byte(signature)), word(0xb1), word(ref)}}
		for _, w := range words {
			l.Data = append(l.Data, word(w)...)
		}
		return &event.Record{Fact: &event.Record_Log{Log: l}}
	}
	block := func(number uint64, hash, parent byte) *event.Record {
		return &event.Record{Boundary: true,
			Fact: &event.Record_Block{Block: &event.Block{Number: number, Time: 1_700_000_000 + number, Hash: word(hash),
				ParentHash: word(parent)}}}
	}
	bought := func(block uint64, hash, index, ref byte) *event.Record {
		return log(block, hash, index, "Bought(address,uint256,uint256,uint256)", ref, 5, 6)
	}
	asked := func() *event.Record { return log(2, 2, 1, "Asked(address,uint256,uint256)", 8, 3) }
	put(&event.Record{Boundary: true, Fact: &event.Record_Vault{Vault: v}}, 0)
	put(bought(1, 1, 0, 7), 0)
	put(block(1, 1, 0), 0)
	put(bought(2, 2, 0, 8), 0) // seq 4
	put(asked(), 0)
	put(bought(2, 2, 2, 9), 0)
	put(block(2, 2, 1), 0)
	for seq := 7; seq >= 4; seq-- { // the block is orphaned and replaced by another one
		put(&event.Record{Fact: records[seq-1].Fact}, seq)
	}
	put(bought(2, 3, 0, 8), 0) // seq 12
	put(block(2, 3, 1), 0)
	for seq := 13; seq >= 12; seq-- { // and back, without the deposit of 9
		put(&event.Record{Fact: records[seq-1].Fact}, seq)
	}
	put(bought(2, 2, 0, 8), 0)
	put(asked(), 0)
	put(block(2, 2, 1), 0)
	return records, &event.Coverage{Address: address[:], StartBlock: 1, RecordSeq: 1}
}

// Aliases are listed from the log, and values without one from the counts of the read model. A backfill of a partner's
// earlier referrals is requested for each vault in which it has an alias.
func TestPartnerAliasesOfALog(t *testing.T) {
	c := newCommands(t)
	t.Setenv("NAVLOG_KAFKA_BROKERS", strings.Join(enginetest.Kafka(t), ","))
	t.Setenv("NAVLOG_CLICKHOUSE_ADDR", enginetest.ClickHouse(t))
	t.Setenv("NAVLOG_CLICKHOUSE_PREFIX", "aliases")
	if _, err := c.run("partner", "aliases", "list"); err == nil || !strings.Contains(err.Error(), "has no record yet") {
		t.Errorf("without a log: %v", err)
	}
	loaded, d, running := programs(t, c)
	records, covered := attributedLog(t)
	writeRecords(t, loaded.Kafka, records, covered)
	vault := common.BytesToAddress(covered.GetAddress()).Hex()
	project := d.Project()
	running.Start(t.Context(), "project", project.Run)
	wait.Until(t, project.Ready)

	var rows []aliasRow
	c.json(&rows, "partner", "aliases", "list")
	if len(rows) != 1 || rows[0].Vault != vault || rows[0].Value != (common.Hash{31: 7}) || rows[0].Partner != 70 {
		t.Errorf("the aliases are %+v", rows)
	}
	if out := c.mustRun("partner", "aliases", "list"); !strings.Contains(out, vault+"  7      70") {
		t.Errorf("the aliases are\n%s", out)
	}
	if out := c.mustRun("log", "show", "1"); !strings.Contains(out, "aliases") {
		t.Errorf("the vault's record is shown without its aliases: %s", out)
	}
	// Partner 70 is notified of the deposit of seq 2, with an id by the rule in docs/webhooks.md. That of seq 4 names
	// no partner.
	event := uuid.NewSHA1(uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://navlog.dev/event")),
		[]byte(fmt.Sprintf("31337:%s:0:deposit.referral:70", common.Hash{31: 0x10})))
	if out := c.mustRun("log", "show", "2"); !strings.Contains(out, "eventId="+event.String()) {
		t.Errorf("a deposit that names a partner is shown without the id of its event, %s: %s", event, out)
	}
	if out := c.mustRun("log", "show", "4"); strings.Contains(out, "eventId") {
		t.Errorf("a deposit that names no partner is shown with an event: %s", out)
	}
	wait.Until(t, func() error { // the generation is live and has the whole log
		out, err := c.run("partner", "aliases", "list", "--unknown")
		if err == nil && !strings.Contains(out,
			fmt.Sprintf("%s  8      1         1         block 2, 2023-11-14T22:13:22Z", vault)) {
			err = fmt.Errorf("the unknown values are\n%s", out)
		}
		return err
	})
	var unknown []unknownRow
	c.json(&unknown, "partner", "aliases", "list", "--unknown", "--limit", "1")
	if len(unknown) != 1 || unknown[0].Value != (common.Hash{31: 8}) || unknown[0].Deposits != 1 ||
		unknown[0].Requests != 1 || unknown[0].Block != 2 {
		t.Errorf("the unknown values are %+v", unknown)
	}
	if _, err := c.run("partner", "aliases", "list", "--unknown", "--limit", "0"); cli.CodeOf(err) != cli.Usage {
		t.Errorf("--limit 0: %v", err)
	}

	c.mustRun("partner", "create", "Acme", "--id", "70")
	if _, err := c.run("partner", "aliases", "backfill", "71", "--yes", "--wait", "0s"); err == nil ||
		!strings.Contains(err.Error(), "has no alias") {
		t.Errorf("the referrals of a partner without an alias: %v", err)
	}
	before := stdin
	stdin = strings.NewReader("yes\n") // for all vaults
	var left []vaultOrder
	c.json(&left, "partner", "aliases", "backfill", "70", "--wait", "0s")
	stdin = before
	if len(left) != 1 || left[0].Vault != vault || left[0].Outcome != "" {
		t.Errorf("the commands are %+v", left)
	}
	pending, err := db.New(c.registry()).PendingVaultCommands(t.Context(), 31337)
	if err != nil || len(pending) != 1 || pending[0].Kind != registry.SendEarlier ||
		common.BytesToAddress(pending[0].Vault).Hex() != vault ||
		!strings.Contains(string(pending[0].Argument), `"Partner":70`) {
		t.Errorf("the commands are %v, %v", pending, err)
	}
}

// Adding or removing an alias needs a confirmation and an existing partner, and leaves a row in the audit. A value that
// no log can have is rejected in one sentence.
func TestPartnerAliasesAreCommands(t *testing.T) {
	c := newCommands(t)
	vault := common.HexToAddress("0xa1A1a1a1A1A1A1A1A1a1a1a1a1a1A1A1A1A1a1a1").Hex()
	c.mustRun("partner", "create", "Acme", "--id", "70")
	for want, args := range map[string][]string{
		"is not an attribution value": {"add", "70", "acme", "--vault", vault},
		"names no partner":            {"remove", "0", "--vault", vault},
		"is not an address":           {"add", "70", "7", "--vault", "0x12"},
		"must be 1 to 4294967295":     {"add", "0", "7", "--vault", vault},
		"there is no partner 71":      {"add", "71", "7", "--vault", vault},
		"missing flags: --vault":      {"add", "70", "7"},
		"nothing was changed: type":   nil,
	} {
		if args == nil {
			args = []string{"add", "70", "7", "--vault", vault}
			before := stdin
			stdin = strings.NewReader("no\n")
			t.Cleanup(func() { stdin = before })
		} else {
			args = append(slices.Clone(args), "--yes")
		}
		if _, err := c.run(append([]string{"partner", "aliases"}, args...)...); err == nil ||
			!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	out := c.mustRun("partner", "aliases", "add", "70", "0x00000000000000000000000000000000000000b1", "--vault", vault,
		"--yes", "--wait", "0s", "--as", "ann")
	if !strings.Contains(out, "add the alias 177 for partner 70 to vault "+vault+" is queued as command 1") {
		t.Errorf("a pending alias: %q", out)
	}
	var o vaultOrder
	c.json(&o, "partner", "aliases", "remove", "177", "--vault", vault, "--yes", "--wait", "0s")
	if o.Kind != registry.RemoveAlias || o.Command != 2 || o.Outcome != "" || o.Vault != vault {
		t.Errorf("the outcome is %+v", o)
	}
	pending, err := db.New(c.registry()).PendingVaultCommands(t.Context(), 31337)
	if err != nil || len(pending) != 2 || pending[0].Kind != registry.SetAlias || pending[1].Kind != registry.RemoveAlias {
		t.Fatalf("the commands are %v, %v", pending, err)
	}
	for i, part := range []string{`"Partner":70`, `"Partner":0`} {
		if a := string(pending[i].Argument); !strings.Contains(a, part) ||
			!strings.Contains(a, strings.Repeat("0", 62)+"b1") {
			t.Errorf("command %d has the argument %s", i+1, a)
		}
	}
	audit := c.mustRun("audit")
	for _, part := range []string{`"ann"`, "partner aliases add", "partner aliases remove",
		"add the alias 177 for partner 70"} {
		if !strings.Contains(audit, part) {
			t.Errorf("the audit has no %q:\n%s", part, audit)
		}
	}
}

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// A vault is removed only after a confirmation, with a row in the audit; the command reports ingest's outcome.
func TestVaultRemove(t *testing.T) {
	c := newCommands(t)
	const address = "0xa1A1a1a1A1A1A1A1A1a1a1a1a1a1A1A1A1A1a1a1"
	pool, err := registry.Open(t.Context(), registry.Config{URL: os.Getenv("NAVLOG_POSTGRES_URL"), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	q := db.New(pool)
	pending := func() []db.PendingVaultCommandsRow {
		t.Helper()
		rows, err := q.PendingVaultCommands(t.Context(), 31337)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	types := func(text string) {
		t.Helper()
		before := stdin
		stdin = strings.NewReader(text)
		t.Cleanup(func() { stdin = before })
	}
	for _, answer := range []string{"", "no\n", "\n", "y\n"} {
		types(answer)
		if _, err := c.run("vault", "remove", address); cli.CodeOf(err) != cli.Usage ||
			!strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("after the answer %q: %v", answer, err)
		}
	}
	if _, err := c.run("vault", "remove", "0x12", "--yes"); cli.CodeOf(err) != cli.Usage {
		t.Errorf("an invalid address: %v", err)
	}
	if rows := pending(); len(rows) != 0 {
		t.Fatalf("commands without confirmation: %v", rows)
	}

	types("yes\n")
	if out := c.mustRun("vault", "remove", strings.ToLower(address), "--wait", "0s", "--as", "ann"); !strings.Contains(out,
		"queued as command 1") {
		t.Errorf("without an ingest: %q", out)
	}
	rows := pending()
	if len(rows) != 1 || rows[0].Kind != registry.RemoveVault ||
		common.BytesToAddress(rows[0].Vault).Hex() != common.HexToAddress(address).Hex() {
		t.Fatalf("the command is %v", rows)
	}
	if audit := c.mustRun("audit"); !strings.Contains(audit, `"ann"`) || !strings.Contains(audit, "vault remove") ||
		!strings.Contains(audit, common.HexToAddress(address).Hex()) {
		t.Errorf("the audit:\n%s", audit)
	}

	// A stand-in for ingest carries out the queued commands.
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			rows, _ := q.PendingVaultCommands(ctx, 31337)
			for _, r := range rows {
				outcome := db.FinishVaultCommandParams{ID: r.ID, Outcome: registry.CommandDone, Detail: "seq 9"}
				if r.Kind == registry.RestoreVault {
					outcome.Outcome, outcome.Detail = registry.CommandRefused, "there are six"
				}
				_ = q.FinishVaultCommand(ctx, outcome)
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	defer func() { stop(); <-ended }()
	var o vaultOrder
	c.json(&o, "vault", "remove", address, "--yes")
	if o.Outcome != registry.CommandDone || o.Detail != "seq 9" || o.Command != 2 {
		t.Errorf("the outcome is %+v", o)
	}
	if out, err := c.run("vault", "restore", address, "--yes"); err == nil ||
		!strings.Contains(err.Error(), "there are six") || out != "" {
		t.Errorf("a rejected command: %q, %v", out, err)
	}
}

// A signal ends a command that waits for the answer of a person.
func TestConfirmIsInterrupted(t *testing.T) {
	before := stdin
	t.Cleanup(func() { stdin = before })
	silent, end := io.Pipe()
	defer end.Close()
	stdin = silent
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := confirm(ctx, &cli.Streams{Out: io.Discard, Err: io.Discard}, "Remove it.\n"); !errors.Is(err,
		context.Canceled) || !strings.Contains(err.Error(), "nothing was changed") {
		t.Error(err)
	}
}

// The doctor reports each difference between chain.vaults and the log.
func TestDoctorComparesVaults(t *testing.T) {
	address := func(n byte) string { return common.Address{n}.Hex() }
	covers := func(n byte, start uint64, name string, removed bool) *event.Coverage {
		a := common.Address{n}
		return &event.Coverage{Address: a[:], StartBlock: start, CoveredTo: 90, ConfiguredName: name, Removed: removed}
	}
	e := &examination{config: config.Config{Chain: ingest.Config{ID: 5, Vaults: []vaults.Config{
		{Address: address(1), StartBlock: 10}, {Address: address(2), StartBlock: 10}, {Address: address(3), StartBlock: 10},
		{Address: address(4), StartBlock: 5}, {Address: address(5), StartBlock: 12, Name: "Five"},
	}}}}
	e.compareVaults(&event.Cursor{Vaults: []*event.Coverage{
		covers(1, 10, "", false), covers(3, 10, "", true), covers(4, 10, "", false), covers(5, 10, "Old", false),
		covers(6, 10, "", false), covers(7, 10, "", true),
	}})
	for n, want := range map[byte][]string{
		1: nil, 2: {"but not in the log"}, 3: {"was removed"}, 4: {"from block 5 on, but the log has it from block 10 on"},
		5: {"from block 12 on", `"Five"`}, 6: {"but not in chain.vaults"}, 7: nil,
	} {
		var found []string
		for _, f := range e.findings {
			if f.Check == "vault "+address(n) {
				found = append(found, f.Found)
				if f.Verdict != warning || f.Advice == "" {
					t.Errorf("vault %d: %+v", n, f)
				}
			}
		}
		if len(found) != len(want) ||
			slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(strings.Join(found, "\n"), w) }) {
			t.Errorf("vault %d: found %q, want %q", n, found, want)
		}
	}
	// a start block of 0 means 1
	same := &examination{config: config.Config{Chain: ingest.Config{ID: 5,
		Vaults: []vaults.Config{{Address: address(1)}}}}}
	same.compareVaults(&event.Cursor{Vaults: []*event.Coverage{covers(1, 1, "", false)}})
	if len(same.findings) != 1 || same.findings[0].Verdict != fine {
		t.Errorf("without a difference: %+v", same.findings)
	}
	none := &examination{config: same.config}
	none.compareVaults(nil)
	if len(none.findings) != 0 {
		t.Errorf("without a log: %+v", none.findings)
	}
}

// The command to add a vault contains its mapping, so no other machine needs the file.
func TestVaultAdd(t *testing.T) {
	c := newCommands(t)
	const address, gate = "0xa1A1a1a1A1A1A1A1A1a1a1a1a1a1A1A1A1A1a1a1", "0xb2b2b2b2b2B2b2B2B2b2b2B2B2b2B2B2b2b2b2b2"
	pool, err := registry.Open(t.Context(), registry.Config{URL: os.Getenv("NAVLOG_POSTGRES_URL"), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	file := filepath.Join(t.TempDir(), "own.yaml")
	text := "preset: own\nsources: {vault: required, gate: required}\nevents:\n  - {on: A(), source: gate, emit: none}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	add := []string{"vault", "add", address, "--start-block", "7", "--yes", "--wait", "0s"}
	for part, more := range map[string][]string{
		"needs a source `gate`":     {"--mapping", file},
		"--mapping: unknown preset": {"--mapping", "nosuch"},
		"--source is":               {"--mapping", file, "--source", "gate=" + gate + ",topic9=0x"},
		"sources.gate.topic1":       {"--mapping", file, "--source", "gate=" + gate + ",topic1=0x12"},
		"asset.address":             {"--asset", "0x12"},
	} {
		if _, err := c.run(append(slices.Clone(add), more...)...); cli.CodeOf(err) != cli.Usage ||
			!strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "chain.vaults") {
			t.Errorf("%v: %v", more, err)
		}
	}
	c.mustRun(append(slices.Clone(add), "--mapping", file, "--source", "gate="+gate+",topic1="+address, "--decimals", "6",
		"--symbol", "OWN")...)
	rows, err := db.New(pool).PendingVaultCommands(t.Context(), 31337)
	if err != nil || len(rows) != 1 || rows[0].Kind != registry.AddVault {
		t.Fatalf("the commands are %v, %v", rows, err)
	}
	for _, part := range []string{`"Start":7`, `"Symbol":"OWN"`, `"Decimals":6`, `"Preset":"own"`,
		"0xb2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2"} {
		if !strings.Contains(string(rows[0].Argument), part) {
			t.Errorf("the command lacks %s: %s", part, rows[0].Argument)
		}
	}
}

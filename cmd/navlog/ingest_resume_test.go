package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/ingest/operate"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/schemas/registry"
)

// TestIngestResume freezes a running ingest by a reorganisation below the final block, and ends the freeze by the
// operator's command: afterwards the log continues, and the read models equal a fold of it.
func TestIngestResume(t *testing.T) {
	const id = 31_399
	c := newCommands(t)
	anvil := enginetest.Anvil(t, engines.AnvilOptions{ChainID: id, SlotsInEpoch: 4}) // the block 8 below the head is final
	contracts, err := devchain.Deploy(t.Context(), anvil.URL)
	if err != nil {
		t.Fatal(err)
	}
	steps := func(seed int64, n int) {
		t.Helper()
		if err := devchain.New(anvil.URL, contracts, seed, []uint32{7, 42}, slog.New(slog.DiscardHandler)).Steps(t.Context(),
			n); err != nil {
			t.Fatal(err)
		}
	}
	steps(1, 40)
	for name, value := range map[string]string{
		"CHAIN_ID": fmt.Sprint(id), "CHAIN_RPC": anvil.URL, "CHAIN_CONFIRMATIONS": "1", "CHAIN_POLL_INTERVAL": "50ms",
		"KAFKA_BROKERS": strings.Join(enginetest.Kafka(t), ","), "CLICKHOUSE_ADDR": enginetest.ClickHouse(t),
		"CLICKHOUSE_PREFIX": fmt.Sprintf("resume%d", os.Getpid()),
	} {
		t.Setenv("NAVLOG_"+name, value)
	}
	for n, v := range contracts.Vaults {
		t.Setenv(fmt.Sprintf("NAVLOG_CHAIN_VAULTS_%d_ADDRESS", n), v.Address.Hex())
		t.Setenv(fmt.Sprintf("NAVLOG_CHAIN_VAULTS_%d_START_BLOCK", n), fmt.Sprint(v.StartBlock))
	}
	i := startIngest(t, c)
	reached := func(what string, condition func(status.Status) bool) {
		t.Helper()
		wait.Until(t, func() error {
			if st := i.Status(); !condition(st) {
				return fmt.Errorf("no %s: %+v", what, st)
			}
			return nil
		})
	}
	atHead := func(st status.Status) bool {
		height, err := height(t.Context(), anvil.URL)
		return err == nil && st.State == status.Following && st.IndexedBlock == height && st.ReferralBlock == height
	}
	reached("head", atHead)
	if _, err := c.run("ingest", "resume", "--accept-reorg"); err == nil ||
		!strings.Contains(err.Error(), "chain.31399.log is not frozen") {
		t.Errorf("resuming a log that is not frozen: %v", err)
	}
	if err := devchain.Reorg(t.Context(), anvil.URL, 30); err != nil {
		t.Fatal(err)
	}
	reached("freeze", func(st status.Status) bool { return st.State == status.Frozen })
	if reason := i.Status().Reason; !strings.Contains(reason, "`navlog ingest resume`") {
		t.Errorf("the status lacks the command: %s", reason)
	}

	wait.Until(t, func() error { // ingest writes its state once a second
		out, err := c.run("status")
		if cli.CodeOf(err) != cli.Frozen || !strings.Contains(out, "frozen") {
			return fmt.Errorf("the status returns %v:\n%s", err, out)
		}
		return nil
	})
	if out, err := c.run("doctor"); err == nil || !strings.Contains(out, "FAIL     ingest") {
		t.Errorf("the doctor: %v\n%s", err, out)
	}
	if out, err := c.run("log", "stats"); err != nil || !strings.Contains(out, "FROZEN") ||
		!strings.Contains(out, "DepositAccepted") {
		t.Errorf("the stats: %v\n%s", err, out)
	}
	out, err := c.run("ingest", "resume")
	if cli.CodeOf(err) != cli.Frozen {
		t.Errorf("exit code %d", cli.CodeOf(err))
	}
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("without the flag the error is %v", err)
	}
	for _, want := range []string{"chain 31399 was frozen: block ", "is final",
		"The newest block that it has in common with http://127.0.0.1:", "would be retracted", "Inform the partners",
		"EVENT ID", "deposit.referral"} {
		if !strings.Contains(out, want) {
			t.Errorf("the plan lacks %q:\n%s", want, out)
		}
	}
	var done operate.Resumption
	c.json(&done, "ingest", "resume", "--accept-reorg")
	if !done.Accepted || done.Records == 0 || len(done.Referrals) == 0 || done.Ancestor.Number >= done.Head.Number {
		t.Errorf("done %+v", done)
	}
	var audit []auditRow
	if c.json(&audit, "audit"); len(audit) < 2 || audit[0].Command != "ingest resume" ||
		audit[0].Outcome != registry.ActionDone || audit[1].Outcome != registry.ActionBegun {
		t.Errorf("audit %+v", audit)
	}
	reached("head of the new chain", atHead)
	steps(2, 10)
	reached("head with new traffic", atHead)
	if out, err := c.run("log", "tail", "-n", "100000"); err != nil || !strings.Contains(out, "RETRACTS seq ") ||
		!strings.Contains(out, "accept-reorg") {
		t.Errorf("the log: %v\n%s", err, out)
	}
	if out, err := c.run("verify"); err != nil {
		t.Errorf("the read models after the resumption: %v\n%s", err, out)
	}
	out, err = c.run("verify", "--receipts", "--headers")
	for _, want := range []string{"proven by their receipts: ", "compare that hash with a source that you trust"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("the amounts after the resumption: %v; the report lacks %q:\n%s", err, want, out)
		}
	}
	if _, err := c.run("verify", "--headers"); err == nil || !strings.Contains(err.Error(), "--receipts") {
		t.Errorf("--headers without --receipts: %v", err)
	}
	if _, err := c.run("verify", "--receipts", "--no-chain"); err == nil {
		t.Error("--receipts is accepted together with --no-chain")
	}
}

// startIngest runs ingest and project.
func startIngest(t *testing.T, c commands) *ingest.Ingest {
	t.Helper()
	_, d, running := programs(t, c)
	i, project := d.Ingest(), d.Project()
	running.Start(t.Context(), "ingest", i.Run)
	running.Start(t.Context(), "project", project.Run)
	wait.Until(t, project.Ready)
	return i
}

func height(ctx context.Context, url string) (uint64, error) {
	client, err := ethclient.DialContext(ctx, url)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	return client.BlockNumber(ctx)
}

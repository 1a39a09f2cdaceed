package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/deploy/testkit/stack"
)

// hidden is a password that must never appear in any output.
const hidden = "hidden-word"

// fails runs a command that must exit by itself with a code other than 0 and one sentence on stderr that contains all
// of the words. The sentence is a single line, except for a list after a colon. Warnings may precede it.
func fails(t *testing.T, settings, args []string, words ...string) {
	t.Helper()
	program := "navlog"
	if args[0] == "up" {
		program = "navlog-dev"
	}
	ctx, cancel := context.WithTimeout(t.Context(), startPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t, program), args...)
	cmd.Env = stack.Environment(settings...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	said := stderr.String()
	if ctx.Err() != nil {
		t.Fatalf("navlog %s does not end. It said:\n%s%s", strings.Join(args, " "), &stdout, said)
	}
	if err == nil {
		t.Errorf("navlog %s ended with 0. It said:\n%s%s", strings.Join(args, " "), &stdout, said)
	}
	warning := func(line string) bool { return strings.HasPrefix(line, program+": warning: ") }
	lines := slices.DeleteFunc(strings.Split(said, "\n"), warning)
	_, sentence, found := strings.Cut("\n"+strings.Join(lines, "\n"), "\n"+program+": ")
	if !found || strings.Contains(sentence, "\n"+program+": ") || strings.Contains(said, "panic") ||
		strings.Contains(said, "goroutine ") {
		t.Errorf("navlog %s does not say one sentence:\n%s", strings.Join(args, " "), said)
	}
	sentence = strings.TrimSuffix(sentence, "\n")
	t.Logf("navlog: %s", sentence)
	if head, _, more := strings.Cut(sentence, "\n"); more && !strings.HasPrefix(head, "the configuration has mistakes") {
		t.Errorf("navlog %s says more than a line:\n%s", strings.Join(args, " "), sentence)
	}
	if strings.Contains(said+stdout.String(), hidden) {
		t.Errorf("navlog %s prints a password", strings.Join(args, " "))
	}
	for _, word := range words {
		if !strings.Contains(sentence, word) {
			t.Errorf("navlog %s does not say %q:\n%s", strings.Join(args, " "), word, said)
		}
	}
}

// settings writes a configuration file and returns its path.
func settings(t *testing.T, yaml string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "navlog.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const secretKey = "NAVLOG_SECRET_KEY=" + partners.SealKey

func TestConfigCheckNamesEveryMistake(t *testing.T) {
	file := settings(t, `
chain:
  id: 0
  rpc: ["ftp://127.0.0.1"]
  vaults: [{address: "0x12"}]
kafka: {brokers: ["nowhere"]}
clickhouse: {addr: "nowhere"}
postgres: {url: "http://127.0.0.1"}
http: {listen: "nowhere", router: "0x12"}
`)
	fails(t, []string{secretKey}, []string{"config", "check", "--config", file},
		"chain.id", "chain.rpc[0]", "chain.vaults[0].address", "kafka.brokers", "clickhouse.addr", "postgres.url",
		"http.listen", "http.router")
	fails(t, []string{secretKey}, []string{"config", "check", "--config", settings(t, "chain: {idd: 1}\nnothing: {}\n")},
		"idd", "nothing")
	fails(t, []string{secretKey}, []string{"config", "check", "--config", filepath.Join(t.TempDir(), "none.yaml")},
		"none.yaml")
	fails(t, []string{secretKey, "NAVLOG_CHAIN_IDD=1"}, []string{"config", "check", "--config", settings(t, "")},
		"NAVLOG_CHAIN_IDD")
	fails(t, nil, []string{"nothing"}, "nothing")
}

func TestConfigCheckAcceptsASoundFile(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), binary(t, "navlog"), "config", "check", "--config", settings(t, `
chain: {id: 31337, rpc: ["http://127.0.0.1:8545"], vaults: [{address: "0x1000000000000000000000000000000000000001", startBlock: 1}]}
kafka: {brokers: ["127.0.0.1:9092"]}
clickhouse: {addr: "127.0.0.1:9000"}
postgres: {url: "postgres://navlog@127.0.0.1/navlog"}
http: {router: "0x1000000000000000000000000000000000000001"}
`))
	cmd.Env = stack.Environment(secretKey)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// closed is an address of this machine on which no program listens.
const closed = "127.0.0.1:1"

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestUpSaysWhatIsUnreachable(t *testing.T) {
	up := func(t *testing.T, settings []string, flags ...string) {
		args := []string{"up", "--data", openTempDir(t), "--listen", "127.0.0.1:0", "--no-scenario"}
		fails(t, settings, append(args, flags...), closed)
	}
	for flag, format := range map[string]string{
		"--rpc": "http://%s", "--kafka": "%s", "--clickhouse": "%s", "--postgres": "postgres://%s",
	} {
		t.Run(flag, func(t *testing.T) { up(t, nil, flag, fmt.Sprintf(format, closed)) })
	}
	// A URL with a password is passed where it cannot be read: as a flag it causes a warning.
	t.Run("NAVLOG_POSTGRES_URL", func(t *testing.T) {
		up(t, []string{"NAVLOG_POSTGRES_URL=postgres://navlog:" + hidden + "@" + closed + "/navlog"})
	})
}

func TestUpSaysThatThePortIsTaken(t *testing.T) {
	taken := listen(t).Addr().String()
	fails(t, nil, []string{"up", "--data", openTempDir(t), "--listen", taken, "--no-scenario"}, taken, "--listen")
}

func TestUpSaysThatItsDataIsDamaged(t *testing.T) {
	dir := openTempDir(t)
	if err := os.WriteFile(filepath.Join(dir, "contracts.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, nil, []string{"up", "--data", dir, "--listen", "127.0.0.1:0", "--no-scenario"}, "contracts.json")
}

func TestIngestSaysThatAVaultHasNoCode(t *testing.T) {
	anvil := enginetest.Anvil(t, engines.AnvilOptions{})
	deployed, err := devchain.Deploy(t.Context(), anvil.URL)
	if err != nil {
		t.Fatal(err)
	}
	const nowhere = "0x00000000000000000000000000000000000000A1"
	file := settings(t, fmt.Sprintf(`
chain: {id: %d, rpc: [%q], vaults: [{address: %q, startBlock: %d}, {address: %q, startBlock: 1}]}
kafka: {brokers: [%q]}
postgres: {url: %q}
`, deployed.ChainID, anvil.URL, deployed.Vaults[0].Address, deployed.Vaults[0].StartBlock, nowhere,
		enginetest.Kafka(t)[0], enginetest.Postgres(t)))
	fails(t, nil, []string{"ingest", "--config", file}, nowhere, "no code")
}

func TestIngestSaysThatTheChainIsAnother(t *testing.T) {
	anvil := enginetest.Anvil(t, engines.AnvilOptions{ChainID: 7})
	file := settings(t, fmt.Sprintf(`
chain: {id: 8, rpc: [%q], vaults: [{address: "0x1000000000000000000000000000000000000001", startBlock: 1}]}
kafka: {brokers: [%q]}
postgres: {url: %q}
`, anvil.URL, enginetest.Kafka(t)[0], enginetest.Postgres(t)))
	fails(t, nil, []string{"ingest", "--config", file}, "7", "8")
}

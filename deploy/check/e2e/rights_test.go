package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"go.yaml.in/yaml/v3"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

// A composed is navlog on a broker configured as in compose.yaml: each program connects with the settings from
// compose.yaml, in which only addresses and folders are replaced by those of this machine.
type composed struct {
	t        *testing.T
	kafka    *enginetest.GuardedKafka
	settings []string
	services map[string]composedService
}

// A composedService is the part of a service in compose.yaml that matters here.
type composedService struct {
	Command     []string                `yaml:"command"`
	Environment map[string]string       `yaml:"environment"`
	Healthcheck struct{ Test []string } `yaml:"healthcheck"`
}

// The programs work with the Kafka rights that compose.yaml gives them: a chain becomes a log, the log tables, and a
// referral a webhook, and operator commands work too. The doctor reports missing rights of a user.
func TestProgramsOfCompose(t *testing.T) {
	if testing.Short() {
		t.Skip("the programs are other processes")
	}
	t.Parallel()
	c := &composed{t: t, kafka: enginetest.StartGuardedKafka(t, "../../docker")}
	var shipped struct {
		Services map[string]composedService `yaml:"services"`
	}
	b, err := os.ReadFile("../../docker/compose.yaml")
	if err == nil {
		err = yaml.Unmarshal(b, &shipped)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.services = shipped.Services
	chain, contracts := startChain(t)
	receiver := newReceiver(t)
	api, err := engines.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	c.settings = []string{"NAVLOG_CONFIG=" + writeConfiguration(t, "composed", chain.URL, contracts, receiver.CAFile,
		map[string]any{
			"http": map[string]any{"router": contracts.Router.Hex(), "listen": api},
		}), secretKey}

	c.healthy()
	if said, err := c.run("ingest"); err == nil ||
		strings.Count(said, "give the user and the password that the brokers know") != 1 {
		t.Errorf("ingest without a user on the broker: %v\n%s", err, said)
	}
	for range 2 { // each `docker compose up` runs it again
		said, err := c.run("grant")
		if err != nil || !strings.Contains(said, "to navlog_dispatch, navlog_ingest, navlog_operator, navlog_project") {
			t.Fatalf("grant: %v\n%s", err, said)
		}
	}
	var partner struct{ APIKey, SigningSecret string }
	out, err := c.run("operate", "partner", "create", "Acme", "--id", "7", "--json")
	if err != nil || json.Unmarshal([]byte(out), &partner) != nil {
		t.Fatalf("partner create: %v\n%s", err, out)
	}
	acme := oracle.Partner{ID: 7, APIKey: partner.APIKey, SigningSecret: partner.SigningSecret}
	for _, program := range []string{"ingest", "project", "serve", "dispatch"} {
		c.start(program)
	}
	base := "http://" + api
	wait.Until(t, func() error { return wait.Answers(t.Context(), base+"/readyz") })
	w := &world{run: &run{document: document{API: base}},
		client: &oracle.Client{Base: base, HTTP: &http.Client{Timeout: patience}}}
	receiver.Expect(acme)
	w.post(t, acme.APIKey, "", "application/json", `{"url":"`+receiver.URL(acme)+`"}`, http.StatusOK,
		oracle.Object{"ok": true, "data": oracle.Object{"webhookUrl": receiver.URL(acme)}})

	if err := devchain.New(chain.URL, contracts, 11, []uint32{acme.ID}, slog.New(slog.DiscardHandler)).Steps(t.Context(),
		30); err != nil {
		t.Fatal(err)
	}
	if err := devchain.Mine(t.Context(), chain.URL, 10); err != nil {
		t.Fatal(err)
	}
	h, err := oracle.Read(t.Context(), chain.URL, contracts)
	if err != nil {
		t.Fatal(err)
	}
	expected := h.Events([]oracle.Partner{acme})
	if len(expected) == 0 {
		t.Fatal("no event is expected for the partner")
	}
	wait.Until(t, func() error {
		if missing := receiver.Compare(expected, false); len(missing) > 0 {
			return errors.New(strings.Join(missing, "\n"))
		}
		return nil
	})

	for _, command := range []string{"operate log stats", "operate log tail -n 3", "project verify",
		"project partner aliases list --unknown", "ingest doctor", "project doctor", "dispatch doctor", "operate doctor"} {
		service, rest, _ := strings.Cut(command, " ")
		said, err := c.run(service, strings.Fields(rest)...)
		user := strings.TrimPrefix(c.services[service].Environment["NAVLOG_KAFKA_SASL_USER"], "navlog_")
		if rest == "doctor" { // it may have other problems to report
			if !strings.Contains(said, fmt.Sprintf("User:navlog_%s has the rights of %s", user, user)) ||
				strings.Contains(said, "FAIL     Kafka") {
				t.Errorf("%s: %s", command, said)
			}
		} else if err != nil {
			t.Errorf("%s: %v\n%s", command, err, said)
		}
	}
	if said, err := c.run("operate", "audit"); err != nil || strings.Count(said, "kafka grant") != 4 {
		t.Errorf("the audit of two grants: %v\n%s", err, said)
	}
	c.withoutARight(contracts.ChainID)
}

// healthy runs the broker's health check, and lets Kafka's own tool parse the commands that navlog prints.
func (c *composed) healthy() {
	t := c.t
	t.Helper()
	b, err := os.ReadFile("../../docker/kafka/admin.properties")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "admin.properties")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(b), ":/run/secrets:", ":"+c.kafka.Secrets+":")),
		0o600); err != nil {
		t.Fatal(err)
	}
	check := strings.Join(c.services["kafka"].Healthcheck.Test, "\n")
	at := func(address string) string { return strings.Replace(address, ":", "/", 1) }
	opened := strings.NewReplacer("127.0.0.1/9094", at(c.kafka.Admin), "127.0.0.1/9092", at(c.kafka.Addr)).Replace(check)
	if words := strings.Split(opened, "\n"); len(words) < 2 || words[0] != "CMD" || strings.Contains(opened, "/9094") {
		t.Fatalf("the broker's health check is %q", check)
	} else if out, err := exec.CommandContext(t.Context(), words[1], words[2:]...).CombinedOutput(); err != nil {
		t.Errorf("the broker is not healthy: %v\n%s", err, out)
	}
	args := []string{"--bootstrap-server", c.kafka.Admin, "--command-config", file}
	commands, err := c.run("operate", "kafka", "rights", "--commands", "--login", "dispatch=sa-3")
	if err != nil {
		t.Fatalf("kafka rights: %v\n%s", err, commands)
	}
	for line := range strings.Lines(commands) {
		words := strings.Fields(line)
		if !strings.Contains(line, "User:sa-3 ") {
			continue // one user is enough: the tool takes seconds
		}
		if out, err := c.kafka.Tool(t.Context(), "org.apache.kafka.tools.AclCommand",
			append(slices.Clone(args), words[1:]...)...); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
	found, err := c.kafka.AdminAs(t, "admin").DescribeACLs(t.Context(),
		kadm.NewACLs().AnyResource().Allow("User:sa-3").AllowHosts().Operations().ResourcePatternType(kadm.ACLPatternLiteral))
	if err != nil || len(found) != 1 || len(found[0].Described) != 2 {
		t.Errorf("kafka-acls gave %v (%v)", found, err)
	}
}

// withoutARight revokes a right from each of two users, and grants it again.
func (c *composed) withoutARight(chainID uint64) {
	t := c.t
	t.Helper()
	cursor := fmt.Sprintf("chain.%d.cursor", chainID)
	deleted, err := c.kafka.AdminAs(t, "admin").DeleteACLs(t.Context(),
		kadm.NewACLs().Topics(cursor).Operations(kadm.OpDescribeConfigs, kadm.OpRead).
			Allow("User:navlog_operator", "User:navlog_ingest").AllowHosts("*").ResourcePatternType(kadm.ACLPatternLiteral))
	if err != nil || len(deleted) != 4 {
		t.Fatalf("%v: %v", deleted, err)
	}
	lacks := fmt.Sprintf("lacks Read on topic %s, which operator needs", cursor) // other problems are still reported
	wait.Until(t, func() error {
		said, err := c.run("operate", "doctor")
		if err != nil && strings.Contains(said, "FAIL     Kafka, rights") &&
			strings.Contains(said, "User:navlog_operator "+lacks) && strings.Contains(said, "-> run `navlog kafka grant`") &&
			strings.Contains(said, "does not report the rights on topic "+cursor) {
			return nil
		}
		return errors.New(said)
	})
	if said, err := c.run("operate", "doctor", "--kafka-user", "ingest"); err == nil ||
		!strings.Contains(said, "which ingest needs") {
		t.Errorf("the operator has the rights of ingest: %s", said)
	}
	if said, err := c.run("operate", "log", "tail", "-n", "1"); err == nil ||
		!strings.Contains(said, "`navlog doctor` says what this user of Kafka lacks") {
		t.Errorf("log tail: %v\n%s", err, said)
	}
	if said, err := c.run("grant"); err != nil {
		t.Fatalf("grant: %v\n%s", err, said)
	}
	wait.Until(t, func() error {
		said, err := c.run("operate", "log", "tail", "-n", "1")
		if err != nil {
			return errors.New(said)
		}
		return nil
	})
}

// startChain starts a development chain with the reference contracts.
func startChain(t *testing.T) (*engines.Anvil, *devchain.Contracts) {
	t.Helper()
	chain, err := engines.StartAnvil(t.Context(), t.TempDir(), engines.AnvilOptions{SlotsInEpoch: 1, Fleeting: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(chain.Kill)
	contracts, err := devchain.Deploy(t.Context(), chain.URL)
	if err != nil {
		t.Fatal(err)
	}
	return chain, contracts
}

// writeConfiguration writes the configuration file that all programs share, with further sections, and returns its
// path. The prefix is that of the databases of ClickHouse.
func writeConfiguration(t *testing.T, prefix, rpc string, contracts *devchain.Contracts, caFile string,
	more map[string]any) string {
	t.Helper()
	var vaults []map[string]any
	for _, v := range contracts.Vaults {
		vaults = append(vaults, map[string]any{"address": v.Address.Hex(), "startBlock": v.StartBlock})
	}
	sections := map[string]any{
		"chain": map[string]any{"id": contracts.ChainID, "rpc": []string{rpc}, "vaults": vaults,
			"pollInterval": "100ms"},
		"clickhouse": map[string]any{"addr": enginetest.ClickHouse(t), "prefix": fmt.Sprintf("%s%d", prefix, os.Getpid())},
		"postgres":   map[string]any{"url": enginetest.Postgres(t)},
		"http":       map[string]any{"router": contracts.Router.Hex()},
		"webhooks":   map[string]any{"caFile": caFile},
		"guard":      map[string]any{"allowNetworks": []string{partners.Network}},
	}
	maps.Copy(sections, more)
	text, err := yaml.Marshal(sections)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "navlog.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// command returns a service's command, or another one in its place, with the service's Kafka settings.
func (c *composed) command(service string, args ...string) *exec.Cmd {
	here := strings.NewReplacer("kafka:9092", c.kafka.Addr, "127.0.0.1:9094", c.kafka.Admin, "/run/secrets",
		c.kafka.Secrets)
	settings := slices.Clone(c.settings)
	for _, key := range slices.Sorted(maps.Keys(c.services[service].Environment)) {
		if strings.HasPrefix(key, "NAVLOG_KAFKA_") {
			settings = append(settings, key+"="+here.Replace(c.services[service].Environment[key]))
		}
	}
	if len(args) == 0 {
		for _, arg := range c.services[service].Command {
			args = append(args, here.Replace(arg))
		}
	}
	cmd := exec.CommandContext(c.t.Context(), binary(c.t, "navlog"), args...)
	cmd.Env = stack.Environment(settings...)
	return cmd
}

// run runs a command until it exits, and returns its output.
func (c *composed) run(service string, args ...string) (string, error) {
	c.t.Helper()
	var out bytes.Buffer
	cmd := c.command(service, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	for _, user := range []string{"admin", "ingest", "project", "dispatch", "operator"} {
		if strings.Contains(out.String(), c.kafka.Config(c.t, user).SASL.Password) {
			c.t.Errorf("%s: it prints the password of %s", cmd.Args, user)
		}
	}
	return out.String(), err
}

// start starts a program, which runs until the end of the test.
func (c *composed) start(service string) {
	t := c.t
	t.Helper()
	p, err := stack.Launch(c.command(service), filepath.Join(t.TempDir(), service))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", service, p.Output())
		}
	})
}

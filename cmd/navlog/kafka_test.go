package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config/configtest"
	"github.com/navlog/navlog/deploy/engines/enginetest"
)

// The rights are printed in three forms, without connecting to anything. Whether they are the right ones is tested in
// chainlog.
func TestKafkaRights(t *testing.T) {
	t.Setenv("NAVLOG_POSTGRES_URL", "postgres://"+closedAddress+"/navlog")
	c := commands{t, configtest.Write(t, configtest.Sound)}
	var rows []rightRow
	c.json(&rows, "kafka", "rights", "--login", "dispatch=sa-3;project=sa-2")
	for _, want := range []rightRow{
		{"ingest", "navlog_ingest", "transactional id", "navlog-ingest-31337", "Write"},
		{"ingest", "navlog_ingest", "topic", "chain.31337.cursor", "DescribeConfigs"},
		{"project", "sa-2", "topic", "chain.31337.log", "Read"},
		{"dispatch", "sa-3", "topic", "chain.31337.referral.deposits", "Read"},
	} {
		if !slices.Contains(rows, want) {
			t.Errorf("%+v is not among %+v", want, rows)
		}
	}
	if slices.ContainsFunc(rows,
		func(r rightRow) bool { return r.Operation == "Write" && r.User != "ingest" || r.Operation == "Delete" }) {
		t.Errorf("another user may write: %+v", rows)
	}
	out := c.mustRun("kafka", "rights", "--commands")
	for _, want := range []string{
		"$KAFKA_ACLS --add --allow-principal User:navlog_ingest --topic chain.31337.log --operation Create --operation " +
			"DescribeConfigs --operation Write --operation Read\n",
		"$KAFKA_ACLS --add --allow-principal User:navlog_ingest --transactional-id navlog-ingest-31337 --operation Write\n",
		"$KAFKA_ACLS --add --allow-principal User:navlog_dispatch --topic chain.31337.referral.withdrawals --operation " +
			"Read\n",
	} {
		if strings.Count(out, want) != 1 {
			t.Errorf("%q is not exactly once in\n%s", want, out)
		}
	}
	out = c.mustRun("kafka", "rights", "--commands", "--login", "ingest=CN=it's $HOME,O=Acme", "--login", "project=sa-2")
	for _, want := range []string{`--allow-principal 'User:CN=it'\''s $HOME,O=Acme' --topic `,
		"--allow-principal User:sa-2 --topic "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if table := c.mustRun("kafka", "rights"); strings.Count(table, "\n") != len(rows)+1 ||
		!strings.Contains(table, "User:navlog_operator") {
		t.Errorf("the table:\n%s", table)
	}
}

// An unknown user is rejected.
func TestDoctorRejectsUnknownKafkaUser(t *testing.T) {
	c := commands{t, configtest.Write(t, configtest.Sound)}
	if _, err := c.run("doctor", "--kafka-user", "serve"); cli.CodeOf(err) != cli.Usage {
		t.Errorf("an unknown user: %v", err)
	}
}

// A grant that is impossible is rejected before any request to a broker.
func TestKafkaGrantMistakes(t *testing.T) {
	t.Setenv("NAVLOG_KAFKA_BROKERS", closedAddress)
	c := commands{t, configtest.Write(t, configtest.Sound)}
	passwords := t.TempDir()
	for _, user := range []string{"ingest", "project", "dispatch"} {
		if err := os.WriteFile(filepath.Join(passwords, "kafka_"+user), []byte("hunter2"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, wrong := range []struct {
		args    []string
		code    cli.Code
		message string
	}{
		{[]string{"--login", "serve=sa-9"}, cli.Usage,
			`--login names "serve", and the users are ingest, project, dispatch, operator`},
		{[]string{"--login", "ingest=sa-1;dispatch=sa-1"}, cli.Usage,
			`the users ingest and dispatch have the same login "sa-1"`},
		{[]string{"--login", "ingest=navlog_operator"}, cli.Usage, "the users ingest and operator have the same login"},
		{[]string{"--passwords", passwords}, cli.Configuration, "read the password of Kafka's user navlog_operator"},
	} {
		_, err := c.run(append([]string{"kafka", "grant"}, wrong.args...)...)
		if cli.CodeOf(err) != wrong.code || !strings.Contains(err.Error(), wrong.message) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: %v", wrong.args, err)
		}
	}
}

// A Kafka without the topics of the chain is new or the wrong one: commands that need the topics report this.
func TestKafkaWithoutTopics(t *testing.T) {
	c := newCommands(t)
	t.Setenv("NAVLOG_KAFKA_BROKERS", strings.Join(enginetest.Kafka(t), ","))
	t.Setenv("NAVLOG_CLICKHOUSE_ADDR", enginetest.ClickHouse(t))
	for _, args := range [][]string{{"backup", t.TempDir()}, {"ingest", "resume"}, {"projection", "rebuild"}} {
		if _, err := c.run(args...); err == nil || !strings.Contains(err.Error(), "are kafka.brokers and chain.id right?") {
			t.Errorf("navlog %s: %v", strings.Join(args, " "), err)
		}
	}
}

package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/navlog/navlog/cmd/internal/config/configtest"
	"github.com/navlog/navlog/ingest/rpc"
)

func TestConfigIsReadFromFileAndEnvironment(t *testing.T) {
	c, err := Load(configtest.Write(t, configtest.Sound), []string{
		configtest.SecretKey, "NAVLOG_KAFKA_BROKERS=a:1,b:2", "NAVLOG_CHAIN_CONFIRMATIONS=3", "NAVLOG_KAFKA_SASL_USER=u",
		"NAVLOG_KAFKA_SASL_MECHANISM=PLAIN", "NAVLOG_KAFKA_SASL_PASSWORD=p",
		"HOME=/tmp", "NAVLOG_CONFIG=x", "NAVLOG_STATEMENT_RPC=http://127.0.0.1:1",
		"NAVLOG_MAPPING_RPC=http://127.0.0.1:1", "NAVLOG_MAPPING_RPC_FILE=/none",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(AllSections...); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.Kafka.Brokers, " "); got != "a:1 b:2" {
		t.Errorf("the environment does not override the file: brokers %q", got)
	}
	if c.Chain.Confirmations != 3 || c.Kafka.SASL.User != "u" {
		t.Errorf("confirmations %d, SASL user %q", c.Chain.Confirmations, c.Kafka.SASL.User)
	}
	if c.Chain.PollInterval.String() != "250ms" || c.Chain.Window == 0 || len(c.Chain.Vaults) != 1 {
		t.Errorf("file or defaults are lost: %+v", c.Chain)
	}
}

// A variable that only begins like a setting would have no effect, so it is rejected; those of the endpoints count from
// 0 to the last endpoint.
func TestUnknownVariablesAreRejected(t *testing.T) {
	const endpoints = "NAVLOG_CHAIN_RPC=http://a.example,http://b.example"
	for _, invented := range []string{
		"NAVLOG_CHAIN_FINALITY_DEPTH", "NAVLOG_CHAIN_RPC_1_REQUEST_PER_SECOND", "NAVLOG_CHAIN_RPC_2_BURST",
		"NAVLOG_CHAIN_RPC_7_BURST",
		"NAVLOG_CHAIN_RPC_x_BURST", "NAVLOG_CHAIN_RPC_", "NAVLOG_SECRET_KEYS_FILE", "NAVLOG_POSTGRES_FILE",
		"NAVLOG_SECRET_KEY_FILE_FILE", "NAVLOG_HTTP_LISTEN_ADDR",
		// variables of Kubernetes Services named navlog and navlog-serve
		"NAVLOG_SERVICE_HOST", "NAVLOG_SERVE_PORT_8080_TCP_ADDR",
	} {
		_, err := Load(configtest.Write(t, configtest.Sound), []string{endpoints, invented + "=5000"})
		if err == nil || !strings.Contains(err.Error(), invented+" is not a setting") ||
			!strings.Contains(err.Error(), "enableServiceLinks: false") {
			t.Errorf("%s: %v", invented, err)
		}
	}
	c, err := Load(configtest.Write(t, configtest.Sound), []string{
		endpoints, "NAVLOG_CHAIN_RPC_0_WS=ws://a.example", "NAVLOG_CHAIN_RPC_1_URL=http://c.example",
		"NAVLOG_CHAIN_RPC_1_REQUESTS_PER_SECOND=25", "NAVLOG_CHAIN_RPC_1_BURST=50",
		"NAVLOG_CHAIN_RPC_1_PRICES=eth_getLogs:75,eth_call:26", "NAVLOG_CHAIN_FINALITY=depth: 64",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []rpc.Endpoint{{URL: "http://a.example", WS: "ws://a.example"},
		{URL: "http://c.example", RequestsPerSecond: 25, Burst: 50,
			Prices: map[string]uint64{"eth_getLogs": 75, "eth_call": 26}}}
	if !reflect.DeepEqual(c.Chain.RPC, want) || c.Chain.Finality.Depth != 64 {
		t.Errorf("endpoints %+v, finality %+v", c.Chain.RPC, c.Chain.Finality)
	}
}

// One run reports every mistake: unknown keys with their lines, wrong types, unknown variables, and every wrong value.
func TestConfigCheckNamesEveryMistakeAtOnce(t *testing.T) {
	file := configtest.Write(t, `
chain:
  id: 0
  rpc: [ftp://node, {url: "http://a.example", speed: 4}]
  vaults: [{address: "0x12", sources: {queue: {address: x, topik1: y}}}]
  pollIntervall: 1s
kafka: {brokers: [nohost], replicationFactor: 99}
clickhouse: {addr: nowhere, prefix: Bad-Prefix}
postgres: {url: "mysql://x:secretpassword@y"}
http: {listen: nonsense, router: "0x1"}
surplus: true
`)
	c, err := Load(file, []string{"NAVLOG_KAFKA_BROKER=x:1", "NAVLOG_SECRET_KEY=short", "NAVLOG_CHAIN_WINDOW=many"})
	if err == nil {
		t.Fatal("unknown keys and variables were accepted")
	}
	text := err.Error()
	if fault := c.Validate(AllSections...); fault != nil {
		text += "\n" + fault.Error()
	}
	for _, want := range []string{
		"line 4: unknown key speed", "line 5: unknown key topik1", "line 6: unknown key pollIntervall",
		"line 11: unknown key surplus",
		"NAVLOG_KAFKA_BROKER is not a setting", `NAVLOG_CHAIN_WINDOW is "many" and must be a whole number, 0 or more`,
		"chain.id", "chain.rpc[0]", "chain.vaults[0].address", `"nohost"`, "kafka.replicationFactor",
		"clickhouse.addr", "clickhouse.prefix", "postgres.url", "http.listen", "http.router", "NAVLOG_SECRET_KEY",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the error does not mention %s", want)
		}
	}
	if strings.Contains(text, "secretpassword") {
		t.Error("a password is repeated")
	}
	if t.Failed() {
		t.Log(text)
	}
}

// serve needs the secret key only if partners may rotate their keys; a missing key is reported once.
func TestSecretKeyOfServe(t *testing.T) {
	const setting = "NAVLOG_HTTP_PARTNER_ROTATION=true"
	const unset = "NAVLOG_SECRET_KEY is not set: give the key that dispatch has; for a new deployment create one with " +
		"`openssl rand -base64 32`"
	for what, test := range map[string]struct {
		environment []string
		sections    []Section
		mistake     string
	}{
		"by default":            {nil, Needs["serve"], ""},
		"with rotation":         {[]string{setting}, Needs["serve"], unset},
		"with rotation and key": {[]string{setting, configtest.SecretKey}, Needs["serve"], ""},
		"all programs, no key":  {[]string{setting}, AllSections, unset},
		"only project, no key":  {[]string{setting}, Needs["project"], ""},
		"with rotation, short key": {[]string{setting, "NAVLOG_SECRET_KEY=short"}, Needs["serve"],
			"NAVLOG_SECRET_KEY must be the base64 of 32 bytes"},
	} {
		c, err := Load(configtest.Write(t, configtest.Sound), test.environment)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		if err := c.Validate(test.sections...); err != nil {
			text = err.Error()
		}
		if (text == "") != (test.mistake == "") || !strings.Contains(text, test.mistake) || strings.Contains(text, "\n") {
			t.Errorf("%s: %q, want %q", what, text, test.mistake)
		}
	}
}

func TestMissingOrInvalidConfigFile(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml"), nil); err == nil {
		t.Error("a named file that does not exist is accepted")
	}
	if _, err := Load(configtest.Write(t, "chain: [unclosed"), nil); err == nil {
		t.Error("text that is not YAML is accepted")
	}
	if _, err := Load(configtest.Write(t, ""), nil); err != nil {
		t.Errorf("an empty file is rejected: %v", err)
	}
}

// A mistake that stops the reading of the file is the only one reported: the keys after it are not missing.
func TestOnlyRealMistakesAreReported(t *testing.T) {
	for _, fault := range []string{"finality: {height: 3}", "confirmations: 0", "window: [unclosed"} {
		c, err := Load(configtest.Write(t, strings.Replace(configtest.Sound, "pollInterval: 250ms", fault, 1)),
			[]string{configtest.SecretKey})
		if err == nil {
			t.Errorf("%s is accepted", fault)
			continue
		}
		if text := errors.Join(err, c.Validate(AllSections...)).Error(); strings.Contains(text, "\n") {
			t.Errorf("%s: more than the mistake is reported:\n%s", fault, text)
		}
	}
}

// After a mistake in one setting, the mistakes after it are reported too.
func TestMistakesAfterAMistake(t *testing.T) {
	for _, fault := range []string{"finality: {height: 3}", "confirmations: 0"} {
		text := strings.Replace(configtest.Sound, "pollInterval: 250ms", fault, 1) + "surplus: 1\n"
		_, err := Load(configtest.Write(t, text), []string{configtest.SecretKey})
		if err == nil || strings.Count(err.Error(), "line ") != 2 || !strings.Contains(err.Error(), "surplus") {
			t.Errorf("%s and a surplus setting: %v", fault, err)
		}
	}
}

// Settings that would have no effect, or with which a program could not start, are rejected; a wrong variable is named
// as it is written.
func TestMistakesAreNamed(t *testing.T) {
	for _, m := range []struct {
		text    string
		environ string
		want    string
	}{
		{configtest.Sound + "---\nchain: {id: 5}\n", "", "line 12: a second document"},
		{configtest.Sound + "surplus: 1\n---\nchain: {id: 5}\n", "", "line 13: a second document"},
		{configtest.Sound + "---\nchain: [unclosed\n", "", "line"},
		{configtest.Sound, "NAVLOG_HTTP_LISTEN=127.0.0.1:99999", `http.listen is "127.0.0.1:99999"`},
		{configtest.Sound, "NAVLOG_OPS_LISTEN=127.0.0.1:http9", `ops.listen is "127.0.0.1:http9"`},
		{configtest.Sound, "NAVLOG_KAFKA_TLS=yes", `NAVLOG_KAFKA_TLS is "yes" and must be true or false`},
		{configtest.Sound, "NAVLOG_CHAIN_RPC_0_BURST=many", `NAVLOG_CHAIN_RPC_0_BURST is "many"`},
		{configtest.Sound, "NAVLOG_CHAIN_POLL_INTERVAL=5",
			`NAVLOG_CHAIN_POLL_INTERVAL is "5" and must be a duration with its unit, such as 250ms`},
		{configtest.Sound, "NAVLOG_CHAIN_FINALITY=height", "NAVLOG_CHAIN_FINALITY: finality"},
		{configtest.Sound, "NAVLOG_CHAIN_PROVE=50/s", "NAVLOG_CHAIN_PROVE: chain.receiptsEvery replaces chain.prove"},
		{strings.Replace(configtest.Sound, "chain:\n", "chain:\n  prove: 50/s\n", 1), "",
			": chain.receiptsEvery replaces chain.prove"},
	} {
		c, err := Load(configtest.Write(t, m.text), []string{configtest.SecretKey, m.environ})
		if err = errors.Join(err, c.Validate(AllSections...)); err == nil || !strings.Contains(err.Error(), m.want) {
			t.Errorf("%s: %v, want %q", m.environ, err, m.want)
		}
	}
	if _, err := Load(configtest.Write(t, "---"+configtest.Sound+"...\n"), nil); err != nil {
		t.Errorf("a document with a beginning and an end: %v", err)
	}
}

// A value of another type is described without Go's and YAML's names for it, and a fraction is not rounded down.
func TestValuesOfAnotherType(t *testing.T) {
	const text = `chain:
  id: x
  pollInterval: 5
  window: 1.5
  agreement: 2.0
  receiptsPerSecond: 0.5
  prices: {eth_call: 2.5, eth_getLogs: 1_000.5}
  profile: []
  proof: {headers: true}
  standby: 0.5
  finality: []
  vaults: [{decimals: 300}]
kafka: []
clickhouse: {tls: 1, password: 1.5}
webhooks: {leaseSeconds: 10s, retentionDays: 90.7}
http: {listen: {}, trustedProxies: all, publicRateLimit: 1e3, vaults: [{managementFee: 0.5}]}
`
	c, err := Load(configtest.Write(t, text), nil)
	if err == nil {
		t.Fatal("values of another type were accepted")
	}
	got := regexp.MustCompile(`(?m)^.*, line `).ReplaceAllString(err.Error(), "line ")
	const want = "line 2: `x` must be a whole number, 0 or more\n" +
		"line 3: `5` must be a duration with its unit, such as 250ms, 10s or 1m\n" +
		"line 8: must be a text\n" +
		"line 9: must be a text\n" +
		"line 10: `0.5` must be a duration with its unit, such as 250ms, 10s or 1m\n" +
		"line 11: must be a text\n" +
		"line 12: `300` must be a whole number, 0 to 255\n" +
		"line 13: must be a section: keys with values\n" +
		"line 14: `1` must be true or false\n" +
		"line 15: `10s` must be a whole number\n" +
		"line 16: must be a text\n" +
		"line 16: `all` must be a list\n" +
		"line 4: `1.5` must be a whole number, 0 or more\n" +
		"line 7: `2.5` must be a whole number, 0 or more\n" +
		"line 7: `1_000.5` must be a whole number, 0 or more\n" +
		"line 15: `90.7` must be a whole number"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if c.Chain.Agreement != 2 || c.Chain.ReceiptsPerSecond != 0.5 || c.HTTP.PublicRateLimit != 1000 ||
		c.ClickHouse.Password != "1.5" || c.HTTP.Vaults[0].ManagementFee != "0.5" {
		t.Errorf("a valid value was changed: %+v", c)
	}
}

// The example is the only list of settings for readers who do not know Go: it is valid except for what an operator has
// to fill in, has every key, and sets optional settings to their defaults.
func TestExampleHasEverySetting(t *testing.T) {
	const file = "../../../deploy/navlog.example.yaml"
	c, err := Load(file, []string{configtest.SecretKey})
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	fault := c.Validate(AllSections...)
	if fault == nil {
		t.Fatalf("%s is accepted unchanged", file)
	}
	for line := range strings.SplitSeq(fault.Error(), "\n") {
		if !strings.Contains(line, "still has the example's value") {
			t.Errorf("%s: %s", file, line)
		}
	}
	for _, key := range []string{"chain.vaults[0].address", "chain.rpc[0]", "chain.rpc[1]", "http.router"} {
		if !strings.Contains(fault.Error(), key+" still has") {
			t.Errorf("the example's %s is accepted", key)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	has := keysOf(t, text)
	all, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for key := range keysOf(t, all) {
		if !has[key] {
			t.Errorf("%s lacks %s: add it with its default, its range and its unit", file, key)
		}
	}

	want := Default()
	want.Chain = want.Chain.Complete()
	want.Chain.ID, want.Chain.RPC, want.Chain.Vaults = c.Chain.ID, c.Chain.RPC, c.Chain.Vaults
	want.Kafka.Brokers = c.Kafka.Brokers
	want.ClickHouse.Addr, want.ClickHouse.User, want.ClickHouse.QueryUser = c.ClickHouse.Addr, c.ClickHouse.User,
		c.ClickHouse.QueryUser
	want.Postgres.URL, want.HTTP.Router = c.Postgres.URL, c.HTTP.Router
	defaults, err := yaml.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(all) != string(defaults) {
		t.Errorf("%s has values that differ from the defaults:\n%s\nthe defaults are:\n%s", file, all, defaults)
	}
}

// keysOf returns the keys of a document with their parent keys, as chain.rpc.url; the keys of list elements are merged.
func keysOf(t *testing.T, document []byte) map[string]bool {
	t.Helper()
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	var collect func(n *yaml.Node, above string)
	collect = func(n *yaml.Node, above string) {
		if n.Kind != yaml.MappingNode {
			for _, element := range n.Content {
				collect(element, above)
			}
			return
		}
		for i := 0; i < len(n.Content); i += 2 {
			key := above + n.Content[i].Value
			keys[key] = true
			collect(n.Content[i+1], key+".")
		}
	}
	collect(&root, "")
	return keys
}

// The compose file uses only settings that exist.
func TestComposeUsesSettingsThatExist(t *testing.T) {
	b, err := os.ReadFile("../../../deploy/docker/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Environment map[string]string
		}
	}
	if err := yaml.Unmarshal(b, &compose); err != nil {
		t.Fatal(err)
	}
	var environ []string
	secrets := t.TempDir()
	for name, s := range compose.Services {
		for key, value := range s.Environment {
			if file, secret := strings.CutPrefix(value, "/run/secrets/"); secret {
				value = filepath.Join(secrets, file)
				if err := os.WriteFile(value, []byte("secret"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if strings.HasPrefix(key, envPrefix) {
				environ = append(environ, key+"="+value)
			}
			if name == "serve" && strings.HasPrefix(key, "NAVLOG_SECRET_KEY") {
				t.Error("serve gets the key of the signing secrets")
			}
		}
	}
	if len(environ) == 0 {
		t.Fatal("compose.yaml sets nothing")
	}
	if _, err := Load(configtest.Write(t, configtest.Sound), environ); err != nil {
		t.Errorf("deploy/docker/compose.yaml: %v", err)
	}
}

// Each setting can be in a file that a variable names, even an element of a list; a setting whose own name ends in
// _FILE is not such a variable.
func TestValuesInFiles(t *testing.T) {
	file := func(content string) string {
		name := filepath.Join(t.TempDir(), "value")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	c, err := Load(configtest.Write(t, configtest.Sound), []string{
		"NAVLOG_KAFKA_SASL_PASSWORD_FILE=" + file("from a file \n"), "NAVLOG_SECRET_KEY_FILE=" + file("key\r\n"),
		"NAVLOG_CHAIN_RPC=http://a.example,http://b.example", "NAVLOG_CHAIN_RPC_1_URL_FILE=" + file("http://c.example/token"),
		"NAVLOG_CHAIN_CONFIRMATIONS_FILE=" + file("3\n"), "NAVLOG_WEBHOOKS_CA_FILE=ca.pem",
	})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.Kafka.SASL.Password, c.SecretKey, c.Chain.RPC[0].URL, c.Chain.RPC[1].URL, c.Webhooks.CAFile}
	if !slices.Equal(got, []string{"from a file ", "key", "http://a.example", "http://c.example/token", "ca.pem"}) ||
		c.Chain.Confirmations != 3 {
		t.Errorf("read %q, confirmations %d", got, c.Chain.Confirmations)
	}
}

// Mistakes in files are reported with the variables that name the files, all at once and without the content.
func TestMistakesInFiles(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"empty": "\n", "huge": strings.Repeat("sesame", 20_000),
		"word": "sesame"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Load(configtest.Write(t, configtest.Sound), []string{
		"NAVLOG_SECRET_KEY_FILE=" + dir + "/missing", "NAVLOG_POSTGRES_URL_FILE=" + dir + "/empty",
		"NAVLOG_CLICKHOUSE_PASSWORD_FILE=" + dir + "/huge", "NAVLOG_KAFKA_SASL_PASSWORD_FILE=" + dir,
		"NAVLOG_KAFKA_SASL_USER=u",
		"NAVLOG_KAFKA_SASL_USER_FILE=" + dir + "/word", "NAVLOG_HTTP_STATEMENT_KEY_FILE=",
	})
	if err == nil {
		t.Fatal("no mistake was found")
	}
	for _, want := range []string{
		"NAVLOG_SECRET_KEY_FILE: open " + dir + "/missing: no such file",
		"NAVLOG_POSTGRES_URL_FILE: " + dir + "/empty is empty",
		"NAVLOG_CLICKHOUSE_PASSWORD_FILE: " + dir + "/huge has more than 65536 bytes",
		"NAVLOG_KAFKA_SASL_PASSWORD_FILE: read " + dir + ": is a directory",
		"NAVLOG_KAFKA_SASL_USER and NAVLOG_KAFKA_SASL_USER_FILE are both given",
		"NAVLOG_HTTP_STATEMENT_KEY_FILE is empty: give it the name of a file, or remove it",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), "is not a setting") {
		t.Errorf("the message is\n%v", err)
	}
}

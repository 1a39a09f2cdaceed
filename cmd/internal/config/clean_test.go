package config

import (
	"strings"
	"testing"

	"github.com/navlog/navlog/cmd/internal/config/configtest"
)

// Leading and trailing white space of a value is ignored, in the file and in the environment; a password keeps its own.
func TestSloppyConfiguration(t *testing.T) {
	file := configtest.Write(t, `
chain:
  id: 31337
  rpc: [" http://127.0.0.1:8545/key ", {url: "https://b.example ", ws: "wss://b.example\t"}]
  vaults:
    - {address: " 0x00000000000000000000000000000000000000A1\u00a0", startBlock: 3, name: " One Two "}
kafka: {brokers: ["127.0.0.1:9092 "], sasl: {user: " u", password: " p w "}}
clickhouse: {addr: "127.0.0.1:9000 "}
postgres: {url: "postgres://navlog@127.0.0.1/navlog\n"}
http: {router: "0x00000000000000000000000000000000000000b2 "}
`)
	environment := []string{"NAVLOG_HTTP_TRUSTED_PROXIES=10.0.0.0/8, 11.0.0.0/8 ", configtest.SecretKey + " ",
		"NAVLOG_CLICKHOUSE_PASSWORD= x "}
	c, err := Load(file, environment)
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		c.Chain.RPC[0].URL: "http://127.0.0.1:8545/key",
		c.Chain.RPC[1].URL: "https://b.example", c.Chain.RPC[1].WS: "wss://b.example",
		c.Chain.Vaults[0].Address: "0x00000000000000000000000000000000000000A1", c.Chain.Vaults[0].Name: "One Two",
		c.Kafka.Brokers[0]: "127.0.0.1:9092", c.Kafka.SASL.User: "u", c.Kafka.SASL.Password: " p w ",
		c.ClickHouse.Addr: "127.0.0.1:9000", c.ClickHouse.Password: " x ",
		c.Postgres.URL: "postgres://navlog@127.0.0.1/navlog", c.HTTP.Router: "0x00000000000000000000000000000000000000b2",
		strings.Join(c.HTTP.TrustedProxies, ","): "10.0.0.0/8,11.0.0.0/8",
		"NAVLOG_SECRET_KEY=" + c.SecretKey:       configtest.SecretKey,
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Values that cannot be intended are reported by key, all at once, without the values.
func TestInvisibleConfiguration(t *testing.T) {
	file := configtest.Write(t, strings.NewReplacer(
		"http://127.0.0.1:8545", "'https://sesame.example/a key'", "name: One", "name: \"sesame\u202e\"",
		"127.0.0.1:9000", "\"sesame\u200b\"", "startBlock: 3", "startBlock: 010",
	).Replace(configtest.Sound))
	_, err := Load(file, []string{"NAVLOG_SECRET_KEY=sesame\x00", "NAVLOG_HTTP_LISTEN=  ",
		"NAVLOG_KAFKA_SASL_PASSWORD=sesame\n"})
	if err == nil {
		t.Fatal("no mistake was found")
	}
	for _, want := range []string{
		"chain.rpc[0].url has white space in it", "chain.vaults[0].name has a character that cannot be seen, U+202E",
		"clickhouse.addr has a character that cannot be seen, U+200B",
		"NAVLOG_SECRET_KEY has a character that cannot be seen, U+0000",
		"http.listen is only white space", "kafka.sasl.password has a line break", "line 6: 010 begins with 0",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "sesame") {
		t.Errorf("the message is\n%v", err)
	}
	quoted := strings.Replace(configtest.Sound, "name: One", `name: "007"`, 1)
	if c, err := Load(configtest.Write(t, quoted), nil); err != nil || c.Chain.Vaults[0].Name != "007" {
		t.Errorf("a text of digits: %v", err)
	}
}

package ingest

import (
	"strings"
	"testing"
	"time"

	"github.com/caarlos0/env/v11"
	"go.yaml.in/yaml/v3"
)

const (
	vaultA = "0x00000000000000000000000000000000000000aa"
	vaultB = "0x00000000000000000000000000000000000000bb"
)

func validConfig() Config {
	c := DefaultConfig()
	c.ID, c.RPC, c.Vaults = 1, Endpoints("https://node.example/v3/secret"), []VaultConfig{{Address: vaultA, StartBlock: 5}}
	return c
}

func TestValidateNamesEveryMistake(t *testing.T) {
	if err := validConfig().Validate(); err != nil {
		t.Fatalf("a valid configuration is refused: %v", err)
	}
	c := Config{
		RPC:      Endpoints("ftp://node.example/secret", "::secret", "https://good.example"),
		Vaults:   []VaultConfig{{Address: "0x12"}, {Address: vaultA}, {Address: strings.ToUpper(vaultA[2:])}, {Address: "0x" + strings.ToUpper(vaultA[2:])}, {}, {}, {}},
		Finality: Finality{Depth: 2000}, PollInterval: time.Hour,
	}
	err := c.Validate()
	if err == nil {
		t.Fatal("nothing is wrong with a configuration in which all is wrong")
	}
	for _, want := range []string{
		"chain.id is missing", `chain.rpc[0] has the scheme "ftp"`, "chain.rpc[1] is not a URL", "chain.vaults has 7 vaults and must have 1 to 6",
		"chain.vaults[0].address", "chain.vaults[2].address", "chain.vaults[3].address is the same as chain.vaults[1].address", "chain.pollInterval is 1h",
		"chain.window is 0", "chain.finality is a depth of 2000", "chain.batchBlocks is 0",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the error repeats a URL:\n%v", err)
	}
	if strings.Contains(err.Error(), "rpc[2]") {
		t.Errorf("a good URL is refused:\n%v", err)
	}
	if err := (Config{}).Validate(); err == nil || !strings.Contains(err.Error(), "chain.rpc is empty") {
		t.Errorf("an empty configuration gives %v", err)
	}
}

func TestConfigFromYAML(t *testing.T) {
	for text, want := range map[string]Finality{
		"finality: tag": {}, "finality: 'depth: 64'": {64}, "finality: 64": {64}, "finality:\n  depth: 64": {64}, "finality: depth:64": {64}, "id: 1": {},
	} {
		c := DefaultConfig()
		if err := yaml.Unmarshal([]byte(text), &c); err != nil || c.Finality != want {
			t.Errorf("%q gives %+v and %v, want %+v", text, c.Finality, err, want)
		}
	}
	for text, want := range map[string]Confirmations{"confirmations: final": 0, "confirmations: 12": 12, "confirmations: '3'": 3} {
		c := DefaultConfig()
		if err := yaml.Unmarshal([]byte(text), &c); err != nil || c.Confirmations != want {
			t.Errorf("%q gives %d and %v, want %d", text, c.Confirmations, err, want)
		}
	}
	for _, text := range []string{"finality: soon", "finality: 0", "finality: {height: 3}", "finality: -1", "confirmations: 0", "confirmations: many", "confirmations: -1"} {
		c := DefaultConfig()
		if err := yaml.Unmarshal([]byte(text), &c); err == nil {
			t.Errorf("%q is accepted as %+v", text, c)
		}
	}
}

func TestConfigFromEnvironment(t *testing.T) {
	c := DefaultConfig()
	err := env.ParseWithOptions(&c, env.Options{Environment: map[string]string{
		"ID": "5", "RPC": "https://a.example,https://b.example", "FINALITY": "depth: 9", "CONFIRMATIONS": "2", "POLL_INTERVAL": "250ms",
		"VAULTS_0_ADDRESS": vaultA, "VAULTS_0_START_BLOCK": "7", "VAULTS_1_ADDRESS": vaultB,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if c.ID != 5 || len(c.RPC) != 2 || c.Finality.Depth != 9 || c.Confirmations != 2 || c.PollInterval != 250*time.Millisecond ||
		len(c.Vaults) != 2 || c.Vaults[0].StartBlock != 7 || c.Vaults[1].Address != vaultB || c.Window != 1024 {
		t.Errorf("the environment gives %+v", c)
	}
}

// Every text form reads back as itself.
func TestTextForms(t *testing.T) {
	for _, f := range []Finality{{}, {1}, {64}} {
		text, _ := f.MarshalText()
		back := Finality{99}
		if err := back.UnmarshalText(text); err != nil || back != f {
			t.Errorf("%+v becomes %q and then %+v, %v", f, text, back, err)
		}
	}
	for _, c := range []Confirmations{0, 1, 12} {
		text, _ := c.MarshalText()
		back := Confirmations(99)
		if err := back.UnmarshalText(text); err != nil || back != c {
			t.Errorf("%d becomes %q and then %d, %v", c, text, back, err)
		}
	}
}

package ingest

import (
	"maps"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caarlos0/env/v11"
	"go.yaml.in/yaml/v3"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/vaults"
)

const (
	vaultA = "0x00000000000000000000000000000000000000aa"
	vaultB = "0x00000000000000000000000000000000000000bb"
	vaultC = "0x00000000000000000000000000000000000000cc"
)

func validConfig() Config {
	c := DefaultConfig().Complete()
	c.ID, c.RPC, c.Vaults = 1, rpc.Endpoints("https://node.example/v3/secret"),
		[]vaults.Config{{Address: vaultA, StartBlock: 5}}
	return c
}

func TestValidateNamesEveryMistake(t *testing.T) {
	if err := validConfig().Validate(); err != nil {
		t.Fatalf("a valid configuration is refused: %v", err)
	}
	c := Config{
		RPC: append(rpc.Endpoints("ftp://node.example/secret", "::secret", "https://good.example", "https://Good.example/"),
			rpc.Endpoint{URL: "ws://good.example", WS: "https://secret.example", RequestsPerSecond: -1, Burst: 1_000_000},
			rpc.Endpoint{URL: "https://nan.example", RequestsPerSecond: math.NaN(), Prices: map[string]uint64{"getLogs": 80}}),
		Agreement: 3,
		Vaults: []vaults.Config{{Address: "0x12"}, {Address: vaultA}, {Address: strings.ToUpper(vaultA[2:])},
			{Address: "0x" + strings.ToUpper(vaultA[2:])}, {Address: vaultB, Name: "\xff"},
			{Address: vaultC, Name: strings.Repeat("x", 257)}, {}},
		Profile: "solana", Finality: Finality{Depth: 200_000}, Window: 150_000, BatchBlocks: 2_000_000,
		PollInterval: time.Hour, Prices: map[string]uint64{"getLogs": 75, "eth_call": 1 << 60},
		ReceiptsEvery: time.Millisecond, ReceiptsPerSecond: 20_000,
	}
	err := c.Validate()
	if err == nil {
		t.Fatal("a configuration full of mistakes is valid")
	}
	for _, want := range []string{
		"chain.id is missing", `chain.rpc[0] has the scheme "ftp"`, "chain.rpc[1] is not a URL",
		"chain.vaults has 7 vaults and must have 1 to 6",
		"chain.vaults[0].address", "chain.vaults[2].address",
		"chain.vaults[3].address is the same as chain.vaults[1].address", "chain.pollInterval is 1h",
		"chain.vaults[4].name has 1 bytes", "chain.vaults[5].name has 257 bytes and must be UTF-8 of at most 256",
		"chain.rpc[3] is the same URL as chain.rpc[2]", `chain.rpc[4].ws has the scheme "https" and must be wss or ws`,
		"chain.rpc[4].requestsPerSecond is -1", "chain.rpc[4].burst is 1000000",
		"chain.rpc[5].requestsPerSecond is NaN", "chain.agreement is 3 and must be 1 or 2",
		"chain.window is 150000", "chain.finality is a depth of 200000", "chain.batchBlocks is 2000000",
		`chain.profile is "solana" and must be arbitrum, base, ethereum, fast, optimism or polygon`,
		"chain.rangesInFlight is 0", `chain.proof is ""`,
		"chain.receiptsEvery is 1ms and must be 1s to 8760h0m0s, or 0",
		"chain.receiptsPerSecond is 20000 and must be above 0, up to 10000", `chain.prices has "getLogs": 75`,
		`chain.rpc[5].prices has "getLogs": 80`,
		`chain.prices has "eth_call": 1152921504606846976 and must have names of RPC methods`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the error repeats a URL:\n%v", err)
	}
	if strings.Contains(err.Error(), "chain.rpc[2] ") {
		t.Errorf("a valid URL is refused:\n%v", err)
	}
	single := validConfig()
	single.Agreement = 2
	if err := single.Validate(); err == nil ||
		!strings.Contains(err.Error(), "chain.agreement is 2, but chain.rpc has 1 endpoint") {
		t.Errorf("agreement 2 with one endpoint returns %v", err)
	}
	bloomless := validConfig()
	bloomless.Proof, bloomless.ReceiptsEvery = proof.None, time.Hour
	if err := bloomless.Validate(); err == nil ||
		!strings.Contains(err.Error(), "chain.receiptsEvery finds lost logs by blooms") {
		t.Errorf("receiptsEvery with proof none returns %v", err)
	}
	for old, says := range map[proof.Level]string{"bloom": "set it to headers", "head": "set it to headers",
		"full": "set it to headers, and chain.receiptsEvery", "all": "must be headers or none"} {
		c := validConfig()
		if c.Proof = old; c.Validate() == nil || !strings.Contains(c.Validate().Error(), says) {
			t.Errorf("chain.proof %s gives %v", old, c.Validate())
		}
	}
	if err := (Config{}).Validate(); err == nil || !strings.Contains(err.Error(), "chain.rpc is empty") {
		t.Errorf("an empty configuration gives %v", err)
	}
}

// fromYAML reads a configuration as the programs do: no unknown key is accepted.
func fromYAML(text string, c *Config) error {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	return decoder.Decode(c)
}

func TestConfigFromYAML(t *testing.T) {
	for text, want := range map[string]Finality{
		"finality: tag": {}, "finality: instant": {Instant: true}, "finality: 'depth: 64'": {Depth: 64},
		"finality: 64":                {Depth: 64},
		"window: &d 64\nfinality: *d": {Depth: 64}, "finality:\n  depth: 64": {Depth: 64}, "finality: depth:64": {Depth: 64},
		"id: 1": {},
	} {
		c := DefaultConfig().Complete()
		if err := fromYAML(text, &c); err != nil || c.Finality != want {
			t.Errorf("%q gives %+v and %v, want %+v", text, c.Finality, err, want)
		}
	}
	for text, want := range map[string]Confirmations{"confirmations: final": 0, "confirmations: 12": 12,
		"confirmations: '3'": 3} {
		c := DefaultConfig().Complete()
		if err := fromYAML(text, &c); err != nil || c.Confirmations != want {
			t.Errorf("%q gives %d and %v, want %d", text, c.Confirmations, err, want)
		}
	}
	for text, want := range map[string]time.Duration{"id: 1": 0, "receiptsEvery: 24h": 24 * time.Hour,
		"receiptsEvery: 0s": 0} {
		c := DefaultConfig().Complete()
		if err := fromYAML(text, &c); err != nil || c.ReceiptsEvery != want || c.ReceiptsPerSecond != 50 {
			t.Errorf("%q gives %v, %v a second and %v, want %v", text, c.ReceiptsEvery, c.ReceiptsPerSecond, err, want)
		}
	}
	for _, text := range []string{
		"receiptsEvery: 24", "receiptsEvery: daily", "receiptsPerSecond: 50/s", "finality: soon", "finality: 0",
		"finality: {height: 3}", "finality: -1",
		"finality: [64]", "finality: []", "finality: {}", "finality: {depth: 64, note: x}", "finality: {depth: [64]}",
		"finality: {[depth]: 64}",
		"vaults: [{sources: {queue: [1]}}]", "vaults: [{sources: {queue: {address: x, topik1: y}}}]",
		"confirmations: 0", "confirmations: many", "confirmations: -1", "confirmations: [3]", "confirmations: []",
		"confirmations: {}", "confirmations: {n: 3}",
	} {
		c := DefaultConfig().Complete()
		if err := fromYAML(text, &c); err == nil {
			t.Errorf("%q is accepted as %+v", text, c)
		}
	}
}

func TestEndpointsFromYAML(t *testing.T) {
	c := DefaultConfig().Complete()
	if err := fromYAML(`
rpc:
  - https://a.example/key
  - url: https://b.example
    ws: wss://b.example/socket
    requestsPerSecond: 12.5
    burst: 40
    prices: {eth_getLogs: 75}
agreement: 2
`, &c); err != nil {
		t.Fatal(err)
	}
	want := []rpc.Endpoint{{URL: "https://a.example/key"},
		{URL: "https://b.example", WS: "wss://b.example/socket", RequestsPerSecond: 12.5, Burst: 40,
			Prices: map[string]uint64{"eth_getLogs": 75}}}
	if !reflect.DeepEqual(c.RPC, want) || c.Agreement != 2 {
		t.Errorf("the endpoints are %+v, want %+v", c.RPC, want)
	}
	err := fromYAML("rpc:\n  - {url: https://a.example, speed: 4, burst: many}\n  - {uri: "+
		"https://b.example}\n  - [1]\n", &c)
	for _, says := range []string{"field speed not found", "line 2", "many", "field uri not found", "line 3"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the mistakes lack %q: %v", says, err)
		}
	}
}

func TestConfigFromEnvironment(t *testing.T) {
	c := DefaultConfig().Complete()
	err := env.ParseWithOptions(&c, env.Options{Environment: map[string]string{
		"ID": "5", "RPC": "https://a.example,https://b.example", "FINALITY": "depth: 9", "CONFIRMATIONS": "2",
		"POLL_INTERVAL": "250ms",
		"RPC_1_WS":      "wss://b.example", "RPC_1_REQUESTS_PER_SECOND": "2.5", "RPC_1_BURST": "9", "AGREEMENT": "2",
		"PRICES":           "eth_getLogs:75,eth_call:26",
		"VAULTS_0_ADDRESS": vaultA, "VAULTS_0_START_BLOCK": "7", "VAULTS_1_ADDRESS": vaultB,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []rpc.Endpoint{{URL: "https://a.example"},
		{URL: "https://b.example", WS: "wss://b.example", RequestsPerSecond: 2.5, Burst: 9}}; !reflect.DeepEqual(c.RPC,
		want) || c.Agreement != 2 {
		t.Errorf("the environment gives %+v, want %+v", c.RPC, want)
	}
	if want := map[string]uint64{"eth_getLogs": 75, "eth_call": 26}; !maps.Equal(c.Prices, want) {
		t.Errorf("the environment gives the prices %v, want %v", c.Prices, want)
	}
	if c.ID != 5 || len(c.RPC) != 2 || c.Finality.Depth != 9 || c.Confirmations != 2 ||
		c.PollInterval != 250*time.Millisecond ||
		len(c.Vaults) != 2 || c.Vaults[0].StartBlock != 7 || c.Vaults[1].Address != vaultB || c.Window != 1024 {
		t.Errorf("the environment gives %+v", c)
	}
}

// Every text form reads back as itself.
func TestTextForms(t *testing.T) {
	for _, f := range []Finality{{}, {Depth: 1}, {Instant: true}, {Depth: 64}} {
		text, _ := f.MarshalText()
		back := Finality{Depth: 99}
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

package query

import (
	"fmt"
	"strings"
	"testing"

	"github.com/navlog/navlog/query/readtest"
)

// TestSampledNAV: a sampled NAV appears in the vault, its history and files, without a transaction. It explains only
// the price, and no log proves it.
func TestSampledNAV(t *testing.T) {
	n := readtest.NewNode(t)
	w := newWorld(t, func(c *Config) { c.ProofRPC, c.ProofCallsPerSecond, c.CacheBytes = n.URL, 10_000, 0 })
	w.chain.Append(readtest.VaultRecord(vaultA, "Alpha", 1))
	deposit := fact{Kind: readtest.Deposit, Vault: vaultA, User: alice, Other: router, ID: 1, Assets: 100, Shares: 100,
		Tx: tx(1)}
	block := n.Block(t, 5, deposit)
	const price = 1_250_000_000_000_000_000
	sample := fact{Kind: readtest.Nav, Sampled: true, Vault: vaultA, Price: price, Block: 5, Hash: block[0].Hash,
		Time: block[0].Time}
	w.chain.Append(append(block[:len(block)-1:len(block)-1], sample, block[len(block)-1])...)
	w.publish()

	vault := "/api/v1/vaults/" + vaultA.Hex()
	navs := w.get(vault + "/nav").Data(t).([]any)
	same(t, "NAV updates", len(navs), 1)
	nav := navs[0].(object)
	same(t, "the sample", fmt.Sprintln(nav["id"], nav["txHash"], nav["logIndex"], nav["navPerShare"], nav["blockNumber"]),
		fmt.Sprintln(vaultA.Hex()+"-5", nil, nil, price, 5))
	if body := w.get(vault + "/nav?format=csv").Body.String(); !strings.HasSuffix(body, ",5,,\r\n") {
		t.Errorf("as a file: %q", body)
	}
	same(t, "the vault's NAV", fmt.Sprint(w.get(vault).Data(t).(object)["navPerShare"]), fmt.Sprint(price))

	why := w.get(explained(vault, "/navPerShare", "proof=true")).Data(t).(object)
	event := why["events"].([]any)[0].(object)
	same(t, "the explanation",
		fmt.Sprintln(why["value"], event["kind"], event["txHash"], event["logIndex"], event["change"]),
		fmt.Sprintln(price, "Sample", nil, nil, price))
	if text, _ := event["unproven"].(string); !strings.Contains(text, "It was sampled") ||
		!strings.Contains(text, block[0].Hash.Hex()) {
		t.Errorf("the reason why it is unproven is %q", text)
	}
	for _, field := range []string{"/totalAssets", "/totalSupply"} {
		why := w.get(explained(vault, field)).Data(t).(object)
		if why["value"] != nil || len(why["events"].([]any)) != 0 {
			t.Errorf("%s is explained by %v", field, why)
		}
	}
	same(t, "events of contracts", len(w.get("/api/v1/events").Data(t).([]any)), 1)
}

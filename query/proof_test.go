package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/trie/trienode"

	"github.com/navlog/navlog/query/readtest"
)

// newProven returns a world with three deposits in two blocks, and their node.
func newProven(t *testing.T) (*world, *readtest.Node, string) {
	t.Helper()
	n := readtest.NewNode(t)
	w := newWorld(t, func(c *Config) { c.ProofRPC, c.ProofCallsPerSecond, c.CacheBytes = n.URL, 10_000, 0 })
	deposit := func(id uint64, assets int64) fact {
		return fact{Kind: readtest.Deposit, Vault: vaultA, User: alice, Other: router, ID: id, Assets: assets, Shares: assets,
			Tx: tx(byte(id))}
	}
	w.chain.Append(readtest.VaultRecord(vaultA, "Alpha", 1))
	w.chain.Append(n.Block(t, 5, deposit(1, 100), deposit(2, 70), deposit(3, 5), deposit(4, 6), deposit(5, 7))...)
	w.chain.Append(n.Block(t, 6, deposit(6, 1))...)
	w.publish()
	return w, n, explained("/api/v1/users/"+alice.Hex(), "/totalDeposited", "proof=true")
}

// TestProofs: go-ethereum's own verifier proves each event from the block's hash only, for all transaction types, and
// the amounts in the proven logs add up.
func TestProofs(t *testing.T) {
	w, n, path := newProven(t)
	answer := w.get(path)
	if answer.Code != 200 {
		t.Fatal(w.logged.String())
	}
	data := answer.Data(t).(object)
	sum := new(big.Int)
	for i, one := range data["events"].([]any) {
		var e struct {
			Proof struct {
				BlockHash        common.Hash
				Header, Receipt  hexutil.Bytes
				TransactionIndex uint64
				Path             []hexutil.Bytes
				LogInReceipt     int
			}
		}
		text, _ := json.Marshal(one)
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatal(err)
		}
		p, header, set := e.Proof, new(types.Header), trienode.NewProofSet()
		if n.Blocks[p.BlockHash] == nil || crypto.Keccak256Hash(p.Header) != p.BlockHash ||
			rlp.DecodeBytes(p.Header, header) != nil {
			t.Fatalf("event %d: the header is not that of %s", i, p.BlockHash)
		}
		for _, node := range p.Path {
			_ = set.Put(crypto.Keccak256(node), node)
		}
		key, _ := rlp.EncodeToBytes(p.TransactionIndex)
		value, err := trie.VerifyProof(header.ReceiptHash, key, set)
		receipt := new(types.Receipt)
		if err != nil || !bytes.Equal(value, p.Receipt) || receipt.UnmarshalBinary(value) != nil {
			t.Fatalf("event %d: %v, %x", i, err, value)
		}
		l := receipt.Logs[p.LogInReceipt]
		same(t, "emitter", l.Address, vaultA)
		sum.Add(sum, new(big.Int).SetBytes(l.Data[32:64]))
	}
	same(t, "sum of what is proven", sum.String(), data["value"])
	same(t, "calls for two blocks", n.Calls, 4)
	w.get(path+"&pageSize=21").Failed(t, 400, "INVALID_PARAMETER")
	plain := w.get(strings.Replace(path, "proof=true", "proof=false", 1)).Body.String()
	if strings.Contains(plain, "proof\"") || n.Calls != 4 {
		t.Errorf("without proofs: %d calls, %s", n.Calls, plain)
	}
}

// TestProofsBesideRetractedEvents: of two events at one place of the chain, the live one is proven by its own block, and
// the retracted one has no proof.
func TestProofsBesideRetractedEvents(t *testing.T) {
	n := readtest.NewNode(t)
	w := newWorld(t, func(c *Config) { c.ProofRPC, c.ProofCallsPerSecond, c.CacheBytes = n.URL, 10_000, 0 })
	deposit := func(id uint64) fact {
		return fact{Kind: readtest.Deposit, Vault: vaultA, User: alice, Other: router, ID: id, Assets: 1, Shares: 1,
			Tx: tx(byte(id))}
	}
	w.chain.Append(readtest.VaultRecord(vaultA, "Alpha", 1))
	w.chain.Append(n.Block(t, 5, deposit(1))...)
	w.chain.Retract(4)
	live := slices.Concat(n.Block(t, 5, deposit(2)), n.Block(t, 6, deposit(3)))
	w.chain.Append(live...)
	w.publish()
	events := w.get(explained("/api/v1/users/"+alice.Hex(), "/totalDeposited", "proof=true",
		"retracted=true")).Data(t).(object)["events"].([]any)
	same(t, "events", len(events), 3)
	proven := []any{nil, live[0].Hash.Hex(), live[2].Hash.Hex()}
	for i, one := range events {
		e := one.(object)
		proof, _ := e["proof"].(object)
		same(t, "the block that proves "+fmt.Sprint(e["id"]), proof["blockHash"], proven[i])
		if why, _ := e["unproven"].(string); (proven[i] == nil) != strings.Contains(why, "It was retracted") {
			t.Errorf("event %d is unproven: %q", i, why)
		}
	}
}

// TestProvenBlocksAreKept: the node is called once per block, whichever client and path request its proofs.
func TestProvenBlocksAreKept(t *testing.T) {
	w, n, path := newProven(t)
	for i := range 3 {
		w.get(fmt.Sprintf("%s&pageSize=%d", path, 20-i)).Data(t)
		w.get(explained("/api/v1/users/"+alice.Hex(), "/totalDeposited", "proof=true", fmt.Sprintf("x=%d", i))).Data(t)
	}
	same(t, "calls for two blocks", n.Calls, 4)
}

// TestProofCallsOfADay: an address can use a part of a day's node calls, and then gets 429; blocks that are already
// proven, and responses without proofs, remain available.
func TestProofCallsOfADay(t *testing.T) {
	w, n, path := newProven(t)
	w.serve(func(c *Config) {
		c.ProofRPC, c.ProofCallsPerSecond, c.ProofCallsPerDay, c.CacheBytes = n.URL, 10_000, 40, 0
	})
	w.look()
	w.get(path + "&pageSize=1").Data(t) // two calls for its block: the share of an address, a twentieth
	r := w.get(path)
	r.Failed(t, 429, "RATE_LIMITED")
	same(t, "Retry-After", r.Header().Get("Retry-After"), fmt.Sprint(24*60*60))
	same(t, "calls", n.Calls, 2)
	w.get(path + "&pageSize=1").Data(t)
	w.get(strings.Replace(path, "proof=true", "proof=false", 1)).Data(t)
	if got := w.metric("navlog_query_rate_limited_total", "proofs"); got != 1 {
		t.Errorf("%v rejections are counted", got)
	}
	w.clock.add(24 * time.Hour)
	w.get(path + "&pageSize=5").Data(t)
}

// TestProofsForPartners: if the operator requires it, proofs need a key, and nothing else does.
func TestProofsForPartners(t *testing.T) {
	withoutDetector(t)
	w, n, path := newProven(t)
	w.serve(func(c *Config) { c.ProofRPC, c.ProofCallsPerSecond, c.ProofsForPartners = n.URL, 10_000, true })
	w.look()
	key := w.partner(7, "Seven")
	for _, proof := range []string{"true", "true&proof=false"} {
		r := w.get(strings.Replace(path, "proof=true", "proof="+proof, 1))
		r.Failed(t, 401, "UNAUTHORIZED")
		same(t, "CORS", r.Header().Get("Access-Control-Allow-Origin"), "")
	}
	same(t, "calls", n.Calls, 0)
	w.get(path, "x-api-key", key).Data(t)
	w.get(strings.Replace(path, "proof=true", "proof=false&proof=true", 1)).Data(t)
	same(t, "calls for two blocks", n.Calls, 4)
}

// TestProofsBesideAStateSync: the log of a Polygon state sync is marked as unprovable, and the other one of its block
// is proven.
func TestProofsBesideAStateSync(t *testing.T) {
	n := readtest.NewNode(t)
	n.Synced = true
	w := newWorld(t, func(c *Config) { c.ProofRPC, c.ProofCallsPerSecond, c.CacheBytes = n.URL, 10_000, 0 })
	deposit := func(id uint64) fact {
		return fact{Kind: readtest.Deposit, Vault: vaultA, User: alice, Other: router, ID: id, Assets: 1, Shares: 1,
			Tx: tx(byte(id))}
	}
	w.chain.Append(readtest.VaultRecord(vaultA, "Alpha", 1))
	w.chain.Append(n.Block(t, 5, deposit(1), deposit(2))...)
	w.publish()
	events := w.get(explained("/api/v1/users/"+alice.Hex(), "/totalDeposited",
		"proof=true")).Data(t).(object)["events"].([]any)
	same(t, "events", len(events), 2)
	for _, one := range events {
		e := one.(object)
		why, synced := e["unproven"].(string)
		if synced != (fmt.Sprint(e["logIndex"]) == "3") || synced != (e["proof"] == nil) || synced &&
			!strings.Contains(why, "cannot be proven: log 3 is of the state sync") {
			t.Errorf("log %v: unproven %q, proof %v", e["logIndex"], why, e["proof"])
		}
	}
}

// TestProofsOfALyingNode: a response from the node that does not match the block's hash is never passed on.
func TestProofsOfALyingNode(t *testing.T) {
	withoutDetector(t)
	w, n, path := newProven(t)
	edit := func(method, from, to string) func(string, string) string {
		return func(m, result string) string {
			if m == method {
				return strings.Replace(result, from, to, 1)
			}
			return result
		}
	}
	whole := func(method, by string) func(string, string) string {
		return func(m, result string) string {
			if m == method {
				return by
			}
			return result
		}
	}
	const header, receipts = "eth_getBlockByHash", "eth_getBlockReceipts"
	var other []byte
	for hash, h := range n.Blocks {
		if h.Number.Uint64() == 6 {
			other, _ = json.Marshal(n.Blocks[hash])
		}
	}
	for name, c := range map[string]struct {
		spoil  func(method, result string) string
		status int
		code   string
		text   string
	}{
		"an amount": {edit(receipts, "0000000064", "0000000065"), 502, "UNPROVEN",
			"the root of its 6 receipts is"},
		"a receipt": {whole(receipts, `"result":[]`), 502, "UNPROVEN", "the root of its 0 receipts"},
		"a header's field": {edit(header, `"timestamp":"0x`, `"timestamp":"0x1`), 502, "UNPROVEN",
			"fields of its header hash to"},
		"a foreign block": {whole(header, `"result":`+string(other)), 502, "UNPROVEN", "it is another block's"},
		"no receipts":     {whole(receipts, `"result":null`), 502, "UNPROVEN", "returns no receipts"},
		"no such method": {whole(receipts, `"error":{"code":-32601,"message":"no such method"}`), 502, "UNPROVEN",
			"returns no receipts"},
		"a huge response": {whole(receipts, `"result":"`+strings.Repeat("0", 33<<20)+`"`), 502, "UNPROVEN",
			"more than 32 MiB"},
		"no block": {whole(header, `"result":null`), 503, "UNAVAILABLE", "does not have block 5"},
		"an error response": {whole(header, `"error":{"code":-32000,"message":"busy"}`), 503, "UNAVAILABLE",
			"does not respond correctly"},
		"a malformed response": {whole(receipts, `"result":{}`), 503, "UNAVAILABLE", "does not respond correctly"},
	} {
		n.Spoil = c.spoil
		r := w.get(path)
		r.Failed(t, c.status, c.code)
		if !strings.Contains(r.Body.String(), c.text) {
			t.Errorf("%s: %s", name, r.Body)
		}
	}
	n.Spoil = edit(header, `"receiptsRoot":"0x`, `"receiptsRoot":null,"was":"0x`)
	for _, one := range w.get(path).Data(t).(object)["events"].([]any) {
		if e := one.(object); e["proof"] != nil ||
			!strings.Contains(e["unproven"].(string), "cannot be proven: its header has no receipts root") {
			t.Errorf("a chain without roots: %v", e)
		}
	}
	n.Spoil = readtest.AsIs
	if w.get(path).Code != 200 {
		t.Error("an honest node no longer proves the block")
	}
	w.serve()
	w.look()
	r := w.get(path)
	r.Failed(t, 400, "INVALID_PARAMETER")
	if !strings.Contains(r.Body.String(), "http.proofRpc") {
		t.Errorf("without a node: %s", r.Body)
	}
}

// provenPages is the test data for the verifier of the pages: query/web/src/verify.test.ts.
const provenPages = "web/src/proofs.json"

// TestProvenPages generates explanations with proofs for the verifier of the pages: numbers of all operations and
// kinds, in a trie of three levels and in a small one, with receipts of all types. NAVLOG_UPDATE_GOLDEN=1 rewrites
// them.
func TestProvenPages(t *testing.T) {
	withoutDetector(t)
	n := readtest.NewNode(t)
	w := newWorld(t, func(c *Config) { c.ProofRPC, c.ProofCallsPerSecond = n.URL, 10_000 })
	w.chain.Append(readtest.VaultRecord(vaultA, "Alpha", 1), readtest.VaultRecord(vaultB, "Beta", 1))
	var many []fact
	for i := range 140 {
		f := fact{Kind: readtest.Deposit, Vault: vaultA, User: bob, Other: router, ID: uint64(1 + i), Assets: int64(1000 + i),
			Shares: int64(900 + i), Tx: tx(byte(i))}
		switch i {
		case 0, 15, 127, 128, 139: // receipts with keys of one byte and of two, at the ends of the branches
			f.User = alice
		}
		many = append(many, f)
	}
	w.chain.Append(n.Block(t, 5, many...)...)
	w.chain.Append(n.Block(t, 6,
		fact{Kind: readtest.Request, Vault: vaultA, User: alice, Other: router, ID: 0, Assets: 77, Shares: 70,
			Expires: uint64(blockTime(900)), Tx: tx(200)},
		fact{Kind: readtest.Nav, Vault: vaultA, User: unknown, ID: 1, Price: 1_050_000_000, Assets: 5_000_000,
			Supply: 4_900_000, Tx: tx(201)},
		fact{Kind: readtest.Deposit, Vault: vaultB, User: alice, Other: router, ID: 1, Assets: 31, Shares: 30, Tx: tx(202)},
	)...)
	w.chain.Append(n.Block(t, 7,
		fact{Kind: readtest.Claim, Vault: vaultA, User: alice, Other: router, ID: 0, Assets: 78, Shares: 70, Tx: tx(210)})...)
	w.publish()
	var explanations []any
	for _, number := range [][2]string{
		{"/users/" + alice.Hex(), "/totalDeposited"}, {"/users/" + alice.Hex(), "/totalWithdrawn"},
		{"/users/" + alice.Hex(), "/firstSeen"},
		{"/users/" + alice.Hex(), "/holdings/withdrawals/" + vaultA.Hex() + "/_sum/assetsEstimate"},
		{"/vaults/" + vaultA.Hex() + "/users", "/" + alice.Hex() + "/totalDeposited"},
		{"/vaults/" + vaultA.Hex(), "/navPerShare"}, {"/vaults/" + vaultA.Hex(), "/totalAssets"},
		{"/vaults/" + vaultA.Hex(), "/totalSupply"}, {"/vaults/" + vaultA.Hex(), "/stats/userCount"},
		{"/queues/deposits?vault=" + vaultB.Hex(), "/0/count"},
	} {
		answer := w.get(explained("/api/v1"+number[0], number[1], "proof=true"))
		data := answer.Data(t).(object)
		for _, e := range data["events"].([]any) {
			if e.(object)["proof"] == nil {
				t.Errorf("%s %s: %v has no proof", number[0], number[1], e)
			}
		}
		explanations = append(explanations, data)
	}
	text, err := json.MarshalIndent(explanations, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if updateGolden {
		if err := os.WriteFile(provenPages, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(provenPages); err != nil || !bytes.Equal(kept, text) {
		t.Errorf("%s differs from the response of the API (%v): rewrite it with NAVLOG_UPDATE_GOLDEN=1, and check that "+
			"make test-web passes", provenPages, err)
	}
}

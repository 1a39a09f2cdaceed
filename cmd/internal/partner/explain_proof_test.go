package partner

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/explain"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/users"
	"github.com/navlog/navlog/query/vaults"
	"github.com/navlog/navlog/schemas/chainproof"
	"github.com/navlog/navlog/schemas/mapping"
)

// newAProvenAPI returns the API over three blocks that a node can prove: 23 deposits, a request, a claim and a NAV.
func newAProvenAPI(t *testing.T) (*anAPI, *readtest.Node) {
	t.Helper()
	n, l, a := readtest.NewNode(t), readtest.NewLog(readtest.SmallChain().ChainID), readtest.VaultA
	l.Append(readtest.VaultRecord(a, "Alpha", 1))
	var deposits []readtest.Fact
	for i := range 22 {
		deposits = append(deposits,
			readtest.Fact{Kind: readtest.Deposit, Vault: a, User: readtest.Alice, Other: readtest.Router, ID: uint64(i + 1),
				Assets: 10, Shares: 9, Tx: readtest.Tx(byte(i))})
	}
	l.Append(n.Block(t, 3, deposits...)...)
	l.Append(n.Block(t, 4,
		readtest.Fact{Kind: readtest.Deposit, Vault: a, User: readtest.Alice, Other: readtest.Router, ID: 23, Assets: 7,
			Shares: 7, Tx: readtest.Tx(30)},
		readtest.Fact{Kind: readtest.Request, Vault: a, User: readtest.Alice, Other: readtest.Carol, Assets: 44, Shares: 40,
			Tx: readtest.Tx(31)},
		readtest.Fact{Kind: readtest.Deposit, Vault: a, User: readtest.Unknown, Other: readtest.Router, ID: 24, Assets: 7,
			Shares: 7, Tx: readtest.Tx(34)})...)
	l.Append(n.Block(t, 5,
		readtest.Fact{Kind: readtest.Claim, Vault: a, User: readtest.Alice, Other: readtest.Carol, Assets: 45, Shares: 40,
			Tx: readtest.Tx(32)},
		readtest.Fact{Kind: readtest.Nav, Vault: a, User: readtest.Router, Price: 1_050_000, Assets: 500, Supply: 400,
			Tx: readtest.Tx(33)})...)
	own, err := explain.NewNode(n.URL, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	g := readtest.New(t, enginetest.ClickHouse(t))
	g.Write(l)
	return serveAnAPI(t, readtest.Serve(t, g,
		serve.Route{Path: "/api/v1/vaults", Get: vaults.List},
		serve.Route{Path: "/api/v1/vaults/{address}", Get: vaults.Detail(nil)},
		serve.Route{Path: "/api/v1/users/{address}", Get: users.Detail},
		serve.Route{Path: "/api/v1/explain", Get: explain.New(own).Explain, PartnerIf: explain.NeedsKey})), n
}

// Each log is proven from the hash of its block, across pages, and its value is the change that the API lists.
func TestExplainProof(t *testing.T) {
	api, n := newAProvenAPI(t)
	alice, a := readtest.Alice.Hex(), readtest.VaultA.Hex()
	for args, want := range map[string]string{
		"user " + alice + " totalDeposited": "is 227 (0.000227 USDX): the sum of 23 " +
			"logs, 0 retracted shown: adds up; 23 of 23 logs proven",
		"user " + alice + " totalWithdrawn": "is 45 (0.000045 USDX): the sum of 1 " +
			"log, 0 retracted shown: adds up; 1 of 1 log proven",
		"user " + alice + " firstSeen": "1 of 1 log proven",
		"user " + alice + " holdings/withdrawals/" + a +
			"/_sum/assetsEstimate": "is 44 (0.000044 USDX): the sum of 1 log, 0 retracted shown: adds up; 1 of 1 log proven",
		"user " + alice + " holdings/deposits/" + strings.ToLower(a) + "/_count": "23 of 23 logs proven",
		"vault " + a + " navPerShare": "is 1050000 (0.000000000001050000): the " +
			"last of 1 log, 0 retracted shown: adds up; 1 of 1 log proven",
		"vault " + a + " totalAssets": "1 of 1 log proven",
		"vault " + a + " totalSupply": "1 of 1 log proven",
		"vault " + a + " userCount":   "2 of 2 logs proven",
	} {
		out, err := api.explain(t, append(strings.Fields(args), "--proof")...)
		if err != nil || !strings.Contains(out, want+": compare the hashes") ||
			!strings.Contains(out, "  proven in block 0x") {
			t.Errorf("the output of explain %s lacks %q: %v\n%s", args, want, err, out)
		}
	}
	out, err := api.explain(t, "user", alice, "totalDeposited", "--proof", "--rpc", n.URL, "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var end outcome
	if err != nil || json.Unmarshal([]byte(lines[len(lines)-1]), &end) != nil || end.Proven == nil || *end.Proven != 23 {
		t.Errorf("as JSON, with a node: %v\n%s", err, out)
	}
	if out, err := api.explain(t, "user", alice, "totalDeposited", "--proof", "--rpc-file",
		secretFile(t, n.URL)); err != nil || !strings.Contains(out, "23 of 23 logs proven") ||
		strings.Contains(out, "compare the hashes") {
		t.Errorf("with a node whose URL is in a file: %v\n%s", err, out)
	}
	t.Setenv("NAVLOG_EXPLAIN_RPC", n.URL)
	if out, err := api.explain(t, "user", alice, "totalDeposited", "--proof"); err != nil ||
		strings.Contains(out, "compare the hashes") {
		t.Errorf("with a node whose URL is in the environment: %v\n%s", err, out)
	}
	if out, err := api.explain(t, "user", alice, "totalDeposited"); err != nil {
		t.Errorf("without --proof no node is needed, even if one is configured: %v\n%s", err, out)
	}
	t.Setenv("NAVLOG_EXPLAIN_RPC", "")
	api, n = newAProvenAPI(t) // a new one, because an API caches the blocks that it has proven
	n.Spoil = func(method, result string) string {
		return strings.Replace(result, `"receiptsRoot":"0x`, `"receiptsRoot":null,"was":"0x`, 1)
	}
	out, err = api.explain(t, "vault", a, "navPerShare", "--proof")
	if err != nil || !strings.Contains(out, "cannot be proven: It cannot be proven: its header has no receipts root.") ||
		!strings.Contains(out, "0 of 1 log proven") {
		t.Errorf("a chain without receipts roots: %v\n%s", err, out)
	}
}

// TestProofOfCompanions: a log whose amount is in another log of its transaction is compared with both.
func TestProofOfCompanions(t *testing.T) {
	m, err := mapping.Preset("yo")
	if err != nil {
		t.Fatal(err)
	}
	log := func(signature string, data []int64, topics ...common.Address) *types.Log {
		l := &types.Log{Address: readtest.VaultA, Topics: []common.Hash{crypto.Keccak256Hash([]byte(signature))}}
		for _, topic := range topics {
			l.Topics = append(l.Topics, common.BytesToHash(topic[:]))
		}
		for _, n := range data {
			l.Data = append(l.Data, common.BigToHash(big.NewInt(n)).Bytes()...)
		}
		return l
	}
	fulfilled := log("RequestFulfilled(address,uint256,uint256)", []int64{100, 100}, readtest.Alice)
	paid := log("Withdraw(address,address,address,uint256,uint256)", []int64{99, 100}, readtest.VaultA, readtest.Alice,
		readtest.VaultA)
	elsewhere := *paid
	elsewhere.Address = readtest.VaultB
	for want, c := range map[string]struct {
		change string
		tx     []*types.Log
	}{
		"": {"99", []*types.Log{paid, fulfilled}},
		"the log says 99, but the API says that it changes the number by 100":                                               {"100", []*types.Log{paid, fulfilled}},
		"the log does not have the layout of an event: RequestFulfilled: the transaction has no companion for it: Withdraw": {"99", []*types.Log{&elsewhere, fulfilled}},
	} {
		p := prover{of: "/api/v1/users/" + readtest.Alice.Hex(), field: "/totalWithdrawn", operation: "sum",
			asOf: big.NewInt(9), mapped: m.VaultOnly()}
		e := &explainedEvent{Proof: &explainedProof{Proof: chainproof.Proof{LogInReceipt: 1}}}
		e.VaultAddress, e.Kind, e.Change = readtest.VaultA.Hex(), "RequestFulfilled", c.change
		if got := p.difference(e, &types.Header{Number: big.NewInt(8)}, c.tx); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestLogOfASharedContract: a contract that several vaults share also emits logs of the others, which are not the
// vault's.
func TestLogOfASharedContract(t *testing.T) {
	gate, own, another := common.Address{7}, common.Hash{1}, common.Hash{2}
	m := &mapping.Sources{Description: &mapping.Description{Sources: []mapping.Source{
		{Role: "vault", Address: readtest.VaultA},
		{Role: "gate", Address: gate, Filters: []mapping.Filter{{Topic: 1, Value: own}}},
	}}}
	for _, c := range []struct {
		contract common.Address
		vault    common.Hash
		want     bool
	}{{gate, own, true}, {gate, another, false}, {readtest.VaultA, another, true}, {readtest.VaultB, own, false}} {
		if got := m.TakesLog(c.contract, []common.Hash{{9}, c.vault}); got != c.want {
			t.Errorf("a log of %s about %s is the vault's: %t", c.contract, c.vault, got)
		}
	}
}

// An API that is wrong about a log, or returns the proof of another one, is detected.
func TestExplainProofOfALyingAPI(t *testing.T) {
	api, n := newAProvenAPI(t)
	alice, a := readtest.Alice.Hex(), readtest.VaultA.Hex()
	events := regexp.MustCompile(`(?s)"events":\[(\{.*\})\]`)
	text := func(from, to string) func(string) string {
		return func(body string) string { return strings.Replace(body, from, to, 1) }
	}
	shown := text("", "")
	// instead returns the first page of the true explanation of another number.
	instead := func(args ...string) func(string) string {
		var page string
		api.spoil = func(path, body string) string {
			if page == "" && strings.Contains(path, "/explain") {
				page = body
			}
			return body
		}
		if _, err := api.explain(t, append(args, "--proof")...); err != nil {
			t.Fatal(err)
		}
		return func(string) string { return page }
	}
	claimed := instead("user", alice, "totalWithdrawn")
	nav := instead("vault", a, "navPerShare")
	deposits := instead("user", alice, "holdings/deposits/"+a+"/_count")
	for name, c := range map[string]struct {
		args    string
		explain func(body string) string
		number  func(body string) string
		part    string
	}{
		"bad amount": {"user " + alice + " totalWithdrawn",
			func(body string) string { return strings.ReplaceAll(body, `"45"`, `"46"`) },
			text(`"totalWithdrawn":"45"`, `"totalWithdrawn":"46"`),
			"the log says 45, but the API says that it changes the number by 46"},
		"bad time": {"user " + alice + " firstSeen",
			func(body string) string { return strings.ReplaceAll(body, ":56.000Z", ":57.000Z") },
			func(body string) string { return strings.ReplaceAll(body, ":56.000Z", ":57.000Z") }, "the log says 2023"},
		"bad user": {"user " + alice + " totalWithdrawn",
			text(`"userAddress":"`+alice, `"userAddress":"`+readtest.Unknown.Hex()), shown, "the log is about " + alice},
		"bad vault": {"user " + alice + " totalWithdrawn",
			text(`"vaultAddress":"`+a, `"vaultAddress":"`+readtest.VaultB.Hex()), shown,
			"but the API says that it is of " + readtest.VaultB.Hex()},
		"bad kind": {"user " + alice + " totalWithdrawn", text("WithdrawalClaimed", "WithdrawalFunded"), shown,
			"the log is not a WithdrawalFunded"},
		"bad block": {"user " + alice + " totalWithdrawn", text(`"blockNumber":"5"`, `"blockNumber":"4"`), shown,
			"it is about block 5"},
		"bad header": {"user " + alice + " totalWithdrawn", text(`"header":"0xf9`, `"header":"0xf8`), shown,
			"its header hashes to"},
		"bad receipt": {"user " + alice + " totalWithdrawn", text(`"receipt":"0x`, `"receipt":"0x00`), shown,
			"its receipt is not the one"},
		"no proof": {"user " + alice + " totalWithdrawn", text(`"proof":`, `"was":`), shown,
			"there is none, and no reason is given"},
		"a repeated log": {"vault " + a + " userCount", func(body string) string {
			first := strings.Split(events.FindStringSubmatch(body)[1], `},{"id"`)
			second := strings.Replace(first[0], `"sum":"1"`, `"sum":"2"`, 1)
			return events.ReplaceAllLiteralString(body, `"events":[`+first[0]+`},`+second+`}]`)
		}, shown, "it does not come after the previous one"},
		"a log of another user": {"user " + readtest.Unknown.Hex() + " totalWithdrawn", claimed,
			text(`"totalWithdrawn":"0"`, `"totalWithdrawn":"45"`), "but the number is of " + readtest.Unknown.Hex()},
		"text appended to a user": {"user " + alice + " totalWithdrawn",
			text(`"userAddress":"`+alice, `"userAddress":"`+alice+" or so"), shown,
			"but the API says that it is about " + alice + " or so"},
		"an inserted claim": {"user " + alice + " totalDeposited", claimed, shown,
			"a WithdrawalClaimed does not affect the number"},
		"a NAV presented as a user": {"vault " + a + " userCount", func(string) string {
			return strings.NewReplacer(`"1050000"`, `"1"`, `"last"`, `"count"`).Replace(nav(""))
		}, shown, "a NavUpdated does not affect the number"},
		"a repeated user": {"vault " + a + " userCount", deposits, shown,
			"the number counts users, but " + alice + " is counted twice"},
		"a log of a later block": {"user " + alice + " totalWithdrawn --as-of 4", claimed, shown,
			"it is in block 5, but the number is as of block 4"},
	} {
		api.spoil = func(path, body string) string {
			if strings.Contains(path, "/explain") {
				return c.explain(body)
			}
			return c.number(body)
		}
		if out, err := api.explain(t, append(strings.Fields(c.args), "--proof")...); cli.CodeOf(err) != cli.Different ||
			!strings.Contains(err.Error(), c.part) || !strings.Contains(out, "NOT PROVEN") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	api.spoil = func(_, body string) string { return body }
	// Another chain than the reader's, whose proofs are internally consistent.
	other := readtest.NewNode(t)
	other.Block(t, 5, readtest.Fact{Kind: readtest.Claim, Vault: readtest.VaultA, User: readtest.Alice, Assets: 1,
		Shares: 1})
	_, err := api.explain(t, "user", alice, "totalWithdrawn", "--proof", "--rpc", other.URL)
	if cli.CodeOf(err) != cli.Different || !strings.Contains(err.Error(), "and the node of --rpc has 0x") {
		t.Errorf("another chain: %v", err)
	}
	for name, c := range map[string]struct {
		args string
		want cli.Code
		part string
	}{
		"a block that the node does not have": {"--proof --rpc " + readtest.NewNode(t).URL, cli.Unreachable,
			"has no block 5"},
		"an unreachable node": {"--proof --rpc http://" + closedAddress, cli.Unreachable,
			"request block 5 from the node of --rpc"},
		"an invalid URL": {"--proof --rpc nonsense://x", cli.Usage,
			"must be a URL that begins with http:// or https://"},
		"--rpc without --proof": {"--rpc " + n.URL, cli.Usage, "give --proof too"},
	} {
		if _, err := api.explain(t,
			append([]string{"user", alice, "totalWithdrawn"}, strings.Fields(c.args)...)...); cli.CodeOf(err) != c.want ||
			!strings.Contains(fmt.Sprint(err), c.part) {
			t.Errorf("%s: exit code %d: %v", name, cli.CodeOf(err), err)
		}
	}
}

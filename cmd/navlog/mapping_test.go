package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/mapping"
)

// TestMappingCheck checks that every mistake is printed with its position, and that the exit code is that of an invalid
// configuration.
func TestMappingCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check := func(text string, more ...string) (string, error) {
		file := filepath.Join(dir, "m.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, other bytes.Buffer
		err := run(t.Context(), append([]string{"mapping", "check", file}, more...), &out, &other)
		return strings.ReplaceAll(out.String(), dir+"/", ""), err
	}
	reference, err := mapping.PresetText("reference")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := check(string(reference)); err != nil || out != "m.yaml has no mistakes.\n" {
		t.Errorf("%q, %v", out, err)
	}
	out, err := check(strings.Replace(strings.Replace(string(reference), "$settlementId", "$x", 1), "key: $depositId",
		"key: $depositIdd", 1) + "extra: 1\n")
	if err == nil || cli.CodeOf(err) != cli.Configuration || !strings.Contains(err.Error(), ": 2") ||
		!strings.Contains(out, "m.yaml:7:16: unknown parameter `$depositIdd`") ||
		!strings.Contains(out, ": unknown key `extra` in a mapping") {
		t.Errorf("%v (%d)\n%s", err, cli.CodeOf(err), out)
	}
	var document bytes.Buffer
	var checked struct {
		OK       bool     `json:"ok"`
		Mistakes []string `json:"mistakes"`
	}
	err = run(t.Context(), []string{"mapping", "check", "--json", filepath.Join(dir, "m.yaml")}, &document, io.Discard)
	if decoded := json.Unmarshal(document.Bytes(), &checked); decoded != nil || cli.CodeOf(err) != cli.Configuration ||
		checked.OK ||
		len(checked.Mistakes) != 2 ||
		strings.Join(checked.Mistakes, "\n")+"\n" != strings.ReplaceAll(out, "m.yaml", filepath.Join(dir, "m.yaml")) {
		t.Errorf("as JSON: %v, %v\n%s", err, decoded, document.String())
	}
	if out, err := check(string(reference), "--json"); err != nil ||
		out != `{"file":"m.yaml","mistakes":[],"ok":true}`+"\n" {
		t.Errorf("%q, %v", out, err)
	}
	if err := run(t.Context(), []string{"mapping", "check", filepath.Join(dir, "none.yaml")}, &bytes.Buffer{},
		&bytes.Buffer{}); cli.CodeOf(err) != cli.Usage {
		t.Errorf("a file that does not exist: %v (%d)", err, cli.CodeOf(err))
	}
}

// mappingNode returns a node with these logs that serves at most 4 blocks per request.
func mappingNode(t *testing.T, logs ...types.Log) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
			Params []json.RawMessage
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		var result any
		switch q.Method {
		case "eth_getBlockByNumber":
			var number hexutil.Uint64
			_ = json.Unmarshal(q.Params[0], &number)
			result = &types.Header{Number: new(big.Int).SetUint64(uint64(number)), Difficulty: new(big.Int)}
		case "eth_getCode":
			result = "0x6000"
			if r.URL.Path == "/empty" {
				result = "0x"
			}
		case "eth_getStorageAt":
			result = common.Hash{31: 9} // the implementation slot of a proxy
		case "eth_getLogs":
			var filter struct {
				FromBlock, ToBlock hexutil.Uint64
				Address            []common.Address
			}
			if err := json.Unmarshal(q.Params[0], &filter); err != nil || len(filter.Address) == 0 {
				t.Errorf("%s: %v", q.Params[0], err)
			}
			if filter.ToBlock-filter.FromBlock > 3 {
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32005,"message":"too many blocks"}}`, q.ID)
				return
			}
			some := []types.Log{}
			for _, l := range logs {
				if l.BlockNumber >= uint64(filter.FromBlock) && l.BlockNumber <= uint64(filter.ToBlock) {
					some = append(some, l)
				}
			}
			result = some
		}
		text, _ := json.Marshal(result)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, text)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestVaultDetect checks that the preset that decodes most of a contract's logs is proposed, with the evidence, and
// that a proxy is reported.
func TestVaultDetect(t *testing.T) {
	t.Parallel()
	vault := common.HexToAddress("0xa1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1")
	topics, data, err := contracts.Encode(contracts.DepositAccepted{DepositID: big.NewInt(3), Owner: vault, PartnerID: 7,
		Assets: big.NewInt(5), Shares: big.NewInt(99)})
	if err != nil {
		t.Fatal(err)
	}
	known := types.Log{Address: vault, Topics: topics, Data: data, BlockNumber: 20, TxHash: common.Hash{1}}
	wrong, unknown := known, known
	wrong.Data, wrong.Index = data[1:], 1
	unknown.Topics, unknown.Index = []common.Hash{{0xaa}}, 2
	node := mappingNode(t, known, wrong, unknown)
	detect := func(args ...string) (string, error) {
		var out, other bytes.Buffer
		err := run(t.Context(), append([]string{"vault", "detect", vault.Hex(), "--to", "30"}, args...), &out, &other)
		return out.String(), err
	}
	out, err := detect("--rpc", node, "--json")
	var d detected
	if err != nil || json.Unmarshal([]byte(out), &d) != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if d.Proposal != "reference" || d.Logs != 3 || d.Topics != 2 || d.Presets[0].Known != 1 || d.Presets[0].Wrong != 1 ||
		!slices.Equal(d.Presets[0].Events, []string{"DepositAccepted"}) || d.CodeBytes != 2 ||
		d.Implementation != (common.Address{19: 9}).Hex() {
		t.Errorf("detected %+v", d)
	}
	out, err = detect("--rpc", node)
	for _, part := range []string{"2 bytes of code", "It is a proxy",
		"reference: 1 log with an effect, 1 that differ from their declaration", "Proposed: reference.",
		"--from 0 --to 30 --rpc " + node + "\n"} {
		if err != nil || !strings.Contains(out, part) {
			t.Errorf("the output lacks %q: %v\n%s", part, err, out)
		}
	}
	if out, err = detect("--rpc", mappingNode(t, unknown)); err != nil || !strings.Contains(out, "No preset fits") {
		t.Errorf("an unknown contract: %v\n%s", err, out)
	}
	keyed := mappingNode(t, known) + "/v2/hunter2"
	file := filepath.Join(t.TempDir(), "node")
	if err := os.WriteFile(file, []byte(keyed), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err = detect("--rpc", keyed); err != nil || !strings.HasSuffix(out, "--to 30 --rpc URL\n") {
		t.Errorf("the proposed command repeats a key: %v\n%s", err, out)
	}
	if out, err = detect("--rpc-file", file); err != nil || !strings.HasSuffix(out, "--to 30 --rpc-file "+file+"\n") {
		t.Errorf("the proposed command does not read the file of the node: %v\n%s", err, out)
	}
	for _, more := range [][]string{{"--rpc", node + "/empty"}, {"--rpc", node + "/empty", "--json"}} {
		if out, err = detect(more...); cli.CodeOf(err) != cli.Failed ||
			!strings.Contains(err.Error(), "has no code: it is not a contract on this chain") ||
			strings.Contains(out, "--blocks") {
			t.Errorf("an address without code: %v\n%s", err, out)
		}
	}
	// A log and the one that completes it are read together.
	words := func(amounts ...int64) (data []byte) {
		for _, n := range amounts {
			data = append(data, common.BigToHash(big.NewInt(n)).Bytes()...)
		}
		return data
	}
	user, itself := common.Hash{31: 9}, common.BytesToHash(vault[:])
	fulfilled := types.Log{Address: vault, BlockNumber: 20, TxHash: common.Hash{1}, Data: words(100, 100),
		Topics: []common.Hash{crypto.Keccak256Hash([]byte("RequestFulfilled(address,uint256,uint256)")), user}}
	paid := types.Log{Address: vault, BlockNumber: 20, TxHash: common.Hash{1}, Index: 1, Data: words(99, 100),
		Topics: []common.Hash{crypto.Keccak256Hash([]byte("Withdraw(address,address,address,uint256,uint256)")), itself, user,
			itself}}
	if out, err = detect("--rpc", mappingNode(t, fulfilled, paid)); err != nil ||
		!strings.Contains(out, "yo: 1 log with an effect, 0 that differ from their declaration; events: RequestFulfilled, Withdraw") {
		t.Errorf("logs that complete each other: %v\n%s", err, out)
	}
	// A search that ends at the last block number terminates.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	last := []string{"vault", "detect", vault.Hex(), "--to", fmt.Sprint(uint64(math.MaxUint64)), "--blocks", "10", "--rpc",
		node}
	if err := run(ctx, last, io.Discard, io.Discard); err != nil {
		t.Errorf("up to the last block number: %v", err)
	}
	if _, err := detect("--rpc", "http://127.0.0.1:1"); cli.CodeOf(err) != cli.Unreachable {
		t.Errorf("an unreachable node: %v", err)
	}
	if _, err := detect(); cli.CodeOf(err) != cli.Usage {
		t.Errorf("without a node: %v", err)
	}
	for slot, name := range map[common.Hash]string{slotImplementation: "implementation", slotBeacon: "beacon"} {
		hash := new(big.Int).SetBytes(crypto.Keccak256([]byte("eip1967.proxy." + name)))
		if want := common.BigToHash(hash.Sub(hash, big.NewInt(1))); slot != want {
			t.Errorf("the slot of the %s is %s, want %s", name, slot, want)
		}
	}
}

// TestMappingTry checks what a preset, a custom mapping and the description of a vault make of real logs.
func TestMappingTry(t *testing.T) {
	t.Parallel()
	vault := common.HexToAddress("0xa1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1")
	at := func(block uint64, index uint, topics []common.Hash, data []byte) types.Log {
		return types.Log{Address: vault, Topics: topics, Data: data, BlockNumber: block, Index: index,
			TxHash: common.Hash{1: byte(block)}}
	}
	emit := func(block uint64, index uint, e contracts.Event) types.Log {
		topics, data, err := contracts.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		return at(block, index, topics, data)
	}
	deposit := func(assets *big.Int) contracts.Event {
		return contracts.DepositAccepted{DepositID: big.NewInt(3), Owner: vault, PartnerID: 7, Assets: assets,
			Shares: big.NewInt(99)}
	}
	node := mappingNode(t, emit(20, 1, deposit(big.NewInt(100))), emit(11, 2, deposit(mapping.MaxAmount)),
		emit(11, 1, contracts.NavUpdated{NavID: big.NewInt(1), NavPerShare: big.NewInt(5), TotalAssets: big.NewInt(6),
			TotalSupply: big.NewInt(7)}),
		at(12, 0, []common.Hash{{0xaa}}, nil), at(13, 0, []common.Hash{}, nil), emit(99, 0, deposit(big.NewInt(1))))
	var other bytes.Buffer // standard error
	try := func(args ...string) (string, error) {
		var out bytes.Buffer
		other.Reset()
		err := run(t.Context(), append([]string{"mapping", "try"}, args...), &out, &other)
		return out.String(), err
	}
	blocks := []string{"--from", "10", "--to", "30", "--rpc", node}
	out, err := try(append(blocks, "reference", "--address", vault.Hex(), "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	var got tried
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Logs != 5 || got.Quarantined != 1 || got.Effects["deposit"] != 1 || got.Effects["valuation"] != 1 ||
		got.Unknown["no topic"] != 1 || got.Unknown[(common.Hash{0xaa}).Hex()] != 1 || len(got.Without) != 0 {
		t.Errorf("the counts are %+v", got)
	}
	if len(got.First) != 2 || got.First[0].Effect != "valuation" || got.First[1].Block != 20 ||
		got.First[1].Event != "DepositAccepted" ||
		got.First[1].Fields["assets"] != "100" || got.First[1].Fields["partner"] != "7" {
		t.Errorf("the effects are %+v", got.First)
	}
	if len(got.Faults) != 1 || got.Faults[0].Index != 2 || got.Faults[0].Why !=
		"assets is "+mapping.MaxAmount.String()+", and an amount of 2^191 or more cannot be summed" {
		t.Errorf("the quarantined logs are %+v", got.Faults)
	}

	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	described := file("v.yaml", "sources: {vault: "+vault.Hex()+"}\npresets: [{preset: reference, from: 12}]\n")
	out, err = try(append(blocks, described)...)
	for _, part := range []string{"have 5 logs", "deposit  key=3 owner=0x", "assets=100",
		"UNKNOWN EVENT, BY ITS FIRST TOPIC"} {
		if err != nil || !strings.Contains(out, part) {
			t.Errorf("the output lacks %q: %v\n%s", part, err, out)
		}
	}
	// The contract is shared: only one of its logs names the vault.
	shared := file("shared.yaml",
		"sources: {vault: {address: "+vault.Hex()+", topic2: "+vault.Hex()+"}}\npresets: [{preset: reference}]\n")
	foreign := emit(21, 0, contracts.DepositAccepted{DepositID: big.NewInt(4), Owner: common.Address{9},
		Assets: big.NewInt(5), Shares: big.NewInt(6)})
	out, err = try("--from", "10", "--to", "30", "--rpc", mappingNode(t, emit(20, 1, deposit(big.NewInt(100))), foreign),
		shared)
	if err != nil || !strings.Contains(out, "have 1 log of") || strings.Contains(out, "key=4") {
		t.Errorf("a shared contract: %v\n%s", err, out)
	}
	// A claim whose request is older, or has another name.
	queue := mappingNode(t, emit(20, 0, contracts.WithdrawalRequested{RequestIndex: big.NewInt(4), Shares: big.NewInt(1),
		AssetsEstimate: big.NewInt(2)}), emit(21, 0, contracts.WithdrawalFunded{RequestIndex: big.NewInt(4),
		SettlementID: big.NewInt(1), Shares: big.NewInt(1), Assets: big.NewInt(2)}),
		emit(21, 1, contracts.WithdrawalClaimed{RequestIndex: big.NewInt(5), Shares: big.NewInt(1), Assets: big.NewInt(2)}))
	named := file("named.yaml", "preset: named\nsources: {vault: required}\nevents:\n  - on: WithdrawalRequested(uint256 "+
		"indexed id, address indexed owner, uint32 indexed p, address r, uint256 shares, uint256 a, uint64 e)\n    emit: "+
		"requested\n    set: {key: place, source_id: $id, owner: $owner, shares: $shares}\n  - on: WithdrawalFunded(uint256 "+
		"indexed id, address indexed o, uint256 indexed s, uint256 sh, uint256 a)\n    emit: funded\n    set: {source_id: "+
		"$id}\n  - on: WithdrawalClaimed(uint256 indexed id, address indexed o, address indexed r, uint256 s, uint256 a)\n"+
		"    emit: claimed\n    set: {source_id: $id, assets: $a}\n")
	for _, of := range []string{"reference", named} {
		out, err = try("--from", "10", "--to", "30", "--rpc", queue, of, "--address", vault.Hex(), "--json")
		var got tried
		if json.Unmarshal([]byte(out), &got) != nil || !maps.Equal(got.NoRequest, map[string]int{"claimed": 1}) {
			t.Errorf("a claim of an unknown request: %v\n%s", err, out)
		}
	}
	out, err = try("--from", "10", "--to", "30", "--rpc", queue, "reference", "--address", vault.Hex())
	if err != nil || !strings.Contains(out, "EFFECT ON A REQUEST THAT NO EARLIER LOG MAKES") {
		t.Errorf("a claim of an unknown request: %v\n%s", err, out)
	}
	// A request is paid in parts, a key is used twice, and a claim has no shares.
	request := func(block uint64, id, shares int64) types.Log {
		return emit(block, 0, contracts.WithdrawalRequested{RequestIndex: big.NewInt(id), Owner: vault,
			Shares: big.NewInt(shares), AssetsEstimate: big.NewInt(2)})
	}
	claim := func(block uint64, id, shares int64) types.Log {
		return emit(block, 0, contracts.WithdrawalClaimed{RequestIndex: big.NewInt(id), Owner: vault,
			Shares: big.NewInt(shares), Assets: big.NewInt(2)})
	}
	queue = mappingNode(t, request(20, 4, 10), claim(21, 4, 7), claim(22, 4, 3), request(23, 4, 10), claim(24, 4, 9),
		claim(25, 4, 0))
	owned := file("owned.yaml", "preset: owned\nsources: {vault: required}\nevents:\n  - on: WithdrawalRequested(uint256 "+
		"indexed id, address indexed owner, uint32 indexed p, address r, uint256 shares, uint256 a, uint64 e)\n    emit: "+
		"requested\n    set: {key: place, owner: $owner, shares: $shares}\n  - on: WithdrawalClaimed(uint256 indexed id, "+
		"address indexed owner, address indexed r, uint256 shares, uint256 a)\n    emit: claimed\n    set: {owner: $owner, "+
		"shares: $shares, assets: $a}\n")
	for of, want := range map[string][3]map[string]int{
		"reference": {{}, {"claimed": 3, "requested": 1}, {"claimed": 1}},
		owned:       {{"claimed": 1}, {}, {}},
	} {
		out, err = try("--from", "10", "--to", "30", "--rpc", queue, of, "--address", vault.Hex(), "--json")
		var got tried
		if json.Unmarshal([]byte(out), &got) != nil || !maps.Equal(got.NoRequest, want[0]) ||
			!maps.Equal(got.Repeated, want[1]) || !maps.Equal(got.Parts, want[2]) {
			t.Errorf("claims of parts, by %s: %v\n%s", of, err, out)
		}
	}
	if out, err = try("--from", "21", "--to", "30", "--rpc", queue, owned, "--address", vault.Hex()); err != nil ||
		!strings.Contains(out, "EFFECT ON A REQUEST THAT NO EARLIER LOG MAKES") {
		t.Errorf("claims of shares that were requested earlier: %v\n%s", err, out)
	}
	if out, err = try("--from", "10", "--to", "30", "--rpc", queue, "reference", "--address", vault.Hex()); err != nil ||
		!strings.Contains(out, "EFFECT THAT REPEATS ONE OF AN EARLIER LOG") ||
		!strings.Contains(out, "EFFECT ON A WHOLE REQUEST, WITH OTHER SHARES") {
		t.Errorf("claims of parts: %v\n%s", err, out)
	}
	// Companions and events without effect have other topics or other data than the mapping declares.
	wrong := file("wrong.yaml", "preset: wrong\nsources: {vault: required}\nevents:\n  - on: WithdrawalRequested(uint256 "+
		"indexed id, address indexed owner, uint32 indexed p, address r, uint256 shares, uint256 a, uint64 e)\n    emit: "+
		"instant\n    set: {owner: $owner, assets: $a, shares: $shares}\n    with:\n      on: WithdrawalClaimed(uint256 "+
		"indexed id, address owner, address indexed r, uint256 shares, uint256 a)\n      match: {id: $id}\n      set: "+
		"{receiver: $r}\n  - on: NavUpdated(uint256 indexed i, address indexed u, uint256 n, uint256 a, uint256 s)\n    emit: "+
		"none\n")
	queue = mappingNode(t, request(20, 4, 10), claim(20, 4, 10), emit(21, 0, contracts.NavUpdated{NavID: big.NewInt(1),
		NavPerShare: big.NewInt(5), TotalAssets: big.NewInt(6), TotalSupply: big.NewInt(7)}))
	out, err = try("--from", "10", "--to", "30", "--rpc", queue, wrong, "--address", vault.Hex(), "--json")
	var undeclared tried
	if json.Unmarshal([]byte(out), &undeclared) != nil || undeclared.Effects["instant"] != 1 ||
		!maps.Equal(undeclared.Undeclared, map[string]int{"WithdrawalClaimed": 1}) ||
		!maps.Equal(undeclared.Without, map[string]int{"NavUpdated": 1}) {
		t.Errorf("a companion with other topics than declared: %v\n%s", err, out)
	}
	if out, err = try("--from", "10", "--to", "30", "--rpc", queue, wrong, "--address", vault.Hex()); err != nil ||
		!strings.Contains(out, "KNOWN EVENT WITH OTHER TOPICS OR DATA THAN DECLARED") {
		t.Errorf("a companion with other topics than declared: %v\n%s", err, out)
	}
	own := file("own.yaml", "preset: own\nsources: {gate: required}\nevents:\n  - {on: A(), source: gate, emit: none}\n")
	out, err = try(append(blocks, own, "--address", "gate="+vault.Hex())...)
	if err != nil || !strings.Contains(out, "The mapping has none of these events") {
		t.Errorf("%v\n%s", err, out)
	}
	if other.Len() > 0 {
		t.Errorf("standard error has %s", &other)
	}
	if _, err = try(append(blocks, "veda", "--address", vault.Hex())...); err != nil ||
		strings.Count(other.String(), "warning") != 2 ||
		!strings.Contains(other.String(), `requires a source "teller"`) ||
		!strings.Contains(other.String(), `requires a source "accountant"`) {
		t.Errorf("without required sources: %v\n%s", err, &other)
	}
	// A description names files too, as chain.vaults does.
	deposits := file("deposits.yaml", "preset: own\nsources: {gate: required}\nevents:\n"+
		"  - on: DepositAccepted(uint256 indexed id, address indexed owner, uint32 indexed partner, address sender, "+
		"uint256 assets, uint256 shares)\n    source: gate\n    emit: supply\n    set: {shares: $shares}\n")
	filtered := file("filtered.yaml",
		"sources: {gate: {address: "+vault.Hex()+", topic2: "+vault.Hex()+"}}\npresets: [{preset: "+deposits+", from: 12}]\n")
	out, err = try("--from", "10", "--to", "30", "--rpc", mappingNode(t, emit(20, 1, deposit(big.NewInt(100))), foreign),
		filtered)
	if err != nil || !strings.Contains(out, "supply  shares=99") || strings.Contains(out, "shares=6") {
		t.Errorf("of a description with a file: %v\n%s", err, out)
	}

	fails := func(part string, code cli.Code, args ...string) {
		t.Helper()
		out, err := try(args...)
		if err == nil || !strings.Contains(err.Error()+other.String(), part) || cli.CodeOf(err) != code || out != "" {
			t.Errorf("%v: %v (%d)\n%s\nand to standard error\n%s", args, err, cli.CodeOf(err), out, &other)
		}
	}
	fails("unknown preset \"nosuch\"", cli.Usage, append(blocks, "nosuch", "--address", vault.Hex())...)
	fails("there is no contract to read", cli.Usage, append(blocks, "reference")...)
	fails("the mapping has no source \"gate\"", cli.Usage,
		append(blocks, "reference", "--address", "gate="+vault.Hex())...)
	fails("twice, and a contract is one source", cli.Usage,
		append(blocks, "reference", "--address", vault.Hex(), "--address", "vault="+vault.Hex())...)
	fails("the source \"vault\" twice", cli.Usage,
		append(blocks, "reference", "--address", vault.Hex(), "--address", common.Address{1}.Hex())...)
	fails("must be an address", cli.Usage, append(blocks, "reference", "--address", "0x01")...)
	fails("omit --address", cli.Usage, append(blocks, described, "--address", vault.Hex())...)
	fails("must not be after", cli.Usage, "reference", "--from", "3", "--to", "2", "--rpc", node, "--address", vault.Hex())
	fails("there is no node of the chain", cli.Usage, "reference", "--from", "1", "--to", "2", "--address", vault.Hex())
	fails("unknown key `x`", cli.Configuration, append(blocks, file("bad.yaml", "x: 1\n"), "--address", vault.Hex())...)
	fails("broken.yaml:1:20: "+dir+"/bad.yaml:1:1: ", cli.Configuration,
		append(blocks, file("broken.yaml", "presets: [{preset: "+dir+"/bad.yaml}]\nsources: {}\n"))...)
	fails("no such file or directory", cli.Configuration,
		append(blocks, file("absent.yaml", "presets: [{preset: ./absent/none.yaml}]\nsources: {}\n"))...)
	fails("request the logs of blocks 1 to 1 from the node", cli.Unreachable, "reference", "--from", "1", "--to", "2",
		"--rpc", "http://"+closedAddress, "--address", vault.Hex())
}

package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/statement"
	"github.com/navlog/navlog/schemas/webhook"
)

var statementKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{3}, ed25519.SeedSize))

// aStatement is signed, and of a chain that nobody serves.
func aStatement(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	const vault = "0xA1A1a1a1A1A1A1A1A1a1a1a1a1a1A1A1a1A1a1a1"
	w := statement.NewWriter(&b, statement.Header{ChainID: 5, PartnerID: 7, From: "2026-01-01T00:00:00.000Z", To: "2026-01-31T00:00:00.000Z",
		Vaults: []statement.Vault{{Address: vault, StartBlock: "1"}}, Block: statement.Block{Number: "9", Hash: "0x01", Timestamp: "2026-02-01T00:00:00.000Z"}})
	for _, e := range []statement.Event{
		{Type: webhook.DepositReferral, BlockHash: "0x05", Data: webhook.DepositData{VaultAddress: vault, Assets: "100", Shares: "99", BlockNumber: "5", LogIndex: 2}},
		{Type: webhook.WithdrawalReferral, BlockHash: "0x06", Data: webhook.WithdrawalData{VaultAddress: vault, AssetsEstimate: "44", Shares: "40", RequestIndex: "3", BlockNumber: "6"}},
	} {
		if err := w.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(statementKey); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A statement is given when it is whole, and never over a file that is there.
func TestStatementGet(t *testing.T) {
	whole := aStatement(t)
	answer, status := whole, http.StatusOK
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/partner/statement" || r.Header.Get("x-api-key") != "nk_test_key" || r.URL.Query().Get("to") != "2026-01-31" {
			t.Errorf("asked for %s with %v", r.URL, r.Header)
		}
		w.WriteHeader(status)
		_, _ = w.Write(answer)
	}))
	defer api.Close()
	t.Chdir(t.TempDir())
	t.Setenv("NAVLOG_API_KEY", "nk_test_key")
	get := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"statement", "--url", api.URL, "--from", "2026-01-01", "--to", "2026-01-31"}, args...), &out, &out)
		return out.String(), err
	}
	if out, err := get(); err != nil || out != string(whole) {
		t.Errorf("%v, %s", err, out)
	}
	out, err := get("--csv")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err != nil || len(lines) != 3 || !strings.Contains(lines[1], ",100,99,,5,0x05,") || !strings.Contains(lines[2], ",44,40,3,6,0x06,") {
		t.Errorf("as CSV: %v\n%s", err, out)
	}
	if _, err := get("-o", "kept.json"); err != nil {
		t.Error(err)
	}
	if _, err := get("-o", "kept.json"); err == nil || !strings.Contains(err.Error(), "kept.json") {
		t.Errorf("over a file that is there: %v", err)
	}
	fails := func(what, part string, code cli.Code, args ...string) {
		t.Helper()
		if out, err := get(args...); err == nil || !strings.Contains(err.Error(), part) || cli.CodeOf(err) != code || strings.Contains(out, "navlog/1") {
			t.Errorf("%s: %v (%d)\n%s", what, err, cli.CodeOf(err), out)
		}
	}
	answer = whole[:len(whole)-9]
	fails("cut off", "is not whole", cli.Failed)
	answer = bytes.Replace(whole, []byte(`"assets":"100"`), []byte(`"assets":"900"`), 1)
	fails("changed on the way", "its signature does not hold", cli.Failed)
	answer, status = []byte(`{"ok":false,"error":{"code":"INVALID_PARAMETER","message":"A query parameter is not valid.","details":[{"field":"to"}]}}`), 400
	fails("refused", `answered 400: A query parameter is not valid. [{"field":"to"}]`, cli.Usage)
	answer = []byte("<html>")
	fails("another server", "is that the API of navlog?", cli.Failed)
	fails("a key file that is not there", "none.txt", cli.Usage, "--key-file", "none.txt")
	t.Setenv("NAVLOG_API_KEY", "")
	fails("no key", "there is no API key", cli.Usage)
	fails("no URL", "must be the address of the API", cli.Usage, "--key-file", secretFile(t, "nk_test_key"), "--url", "navlog.example")
	fails("a key file that holds something else", "the API key has a character that cannot be seen", cli.Usage, "--key-file", "kept.json")
}

// What is not what was signed, or not by whom, ends with the code of a difference, and a
// node that is away with its own. What a chain says is compared in deploy/check/e2e.
func TestStatementVerify(t *testing.T) {
	whole := aStatement(t)
	keys := base64.StdEncoding.EncodeToString(statementKey.Public().(ed25519.PublicKey))
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"ok":true,"data":{"publicKeys":[%q]}}`, keys)
	}))
	defer api.Close()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":"0x6"}`)
	}))
	defer node.Close()
	dir := t.TempDir()
	verify := func(text []byte, part string, code cli.Code, args ...string) {
		t.Helper()
		file := filepath.Join(dir, "statement.json")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"statement", "verify", file}, args...), &out, &out)
		if err == nil || !strings.Contains(err.Error(), part) || cli.CodeOf(err) != code {
			t.Errorf("%v: %v (%d), want %q (%d)\n%s", args, err, cli.CodeOf(err), part, code, out.String())
		}
	}
	rpc := []string{"--rpc", node.URL}
	verify([]byte("{}"), "is not what navlog signs", cli.Different, rpc...)
	verify(bytes.Replace(whole, []byte(`"assets":"100"`), []byte(`"assets":"900"`), 1), "it was changed after it was signed", cli.Different, rpc...)
	verify(bytes.Replace(whole, []byte("\"}\n"), []byte(`","totals":[]}`+"\n"), 1), "has more after its signed part", cli.Different, rpc...)
	verify(whole, "it is of chain 5, and the node serves chain 6", cli.Different, append(rpc, "--url", api.URL)...)
	verify(whole, "which is not the one that it has to be", cli.Different, append(rpc, "--key", base64.StdEncoding.EncodeToString(make([]byte, 32)))...)
	verify(whole, "no base64", cli.Usage, append(rpc, "--key", "!")...)
	keys = ""
	verify(whole, "which is not the one that it has to be", cli.Different, append(rpc, "--url", api.URL)...)
	verify(whole, "ask the node for its chain", cli.Unreachable, "--rpc", "http://127.0.0.1:1")
	same := &comparison{want: []byte("one\ntwo\n")}
	if _, err := same.Write([]byte("one\n")); err != nil {
		t.Error(err)
	}
	if _, err := same.Write([]byte("three\n")); err == nil || err.Error() != `the statement differs: it has "two", and the chain says "three"` {
		t.Error(err)
	}
}

// statementNode is a node with empty blocks up to 40, each 12 seconds after the one before, and some logs.
func statementNode(t *testing.T, logs ...types.Log) string {
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
		case "eth_chainId":
			result = "0x5"
		case "eth_getBlockByNumber":
			var number hexutil.Uint64
			_ = json.Unmarshal(q.Params[0], &number)
			result = statementBlock(uint64(number))
		case "eth_getLogs":
			result = logs
		}
		text, _ := json.Marshal(result)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, text)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func statementBlock(number uint64) *types.Header {
	return &types.Header{Number: new(big.Int).SetUint64(number), Time: 1_700_000_000 + 12*number, Difficulty: new(big.Int)}
}

// A statement that starts a vault after an event is what the chain says, for no chain says where a vault starts: so that
// is shown, to people and to scripts.
func TestStatementVerifyShowsWhatIsBelieved(t *testing.T) {
	vault := common.HexToAddress("0xa1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1")
	topics, data, err := contracts.Encode(contracts.DepositAccepted{DepositID: big.NewInt(1), Owner: vault, Sender: vault, PartnerID: 7, Assets: big.NewInt(5), Shares: big.NewInt(5)})
	if err != nil {
		t.Fatal(err)
	}
	rpc := statementNode(t, types.Log{Address: vault, Topics: topics, Data: data, BlockNumber: 11, BlockHash: statementBlock(11).Hash()})
	at := statementBlock(32)
	header := statement.Header{ChainID: 5, PartnerID: 7, From: webhook.FormatTime(statementBlock(10).Time), To: webhook.FormatTime(statementBlock(30).Time),
		Block: statement.Block{Number: "32", Hash: at.Hash().Hex(), Timestamp: webhook.FormatTime(at.Time)}}
	verifyWith := func(start string, args ...string) (string, error) {
		header.Vaults = []statement.Vault{{Address: vault.Hex(), StartBlock: start}}
		var b, out bytes.Buffer
		if err := statement.NewWriter(&b, header).Finish(statementKey); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "statement.json")
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		err := run(t.Context(), append([]string{"statement", "verify", file}, args...), &out, &out)
		return out.String(), err
	}
	verify := func(start string, args ...string) (string, error) {
		return verifyWith(start, append([]string{"--rpc", rpc}, args...)...)
	}
	if _, err := verifyWith("12"); cli.CodeOf(err) != cli.Usage || !strings.Contains(err.Error(), "there is no node of the chain: name a file with its URL as --rpc-file, set NAVLOG_STATEMENT_RPC") {
		t.Errorf("without a node: %v", err)
	}
	if out, err := verify("11"); cli.CodeOf(err) != cli.Different {
		t.Errorf("without its event: %v\n%s", err, out)
	}
	out, err := verify("12")
	if words := strings.Join(strings.Fields(out), " "); err != nil || !strings.Contains(words, "VAULT FROM BLOCK DEPOSITS ASSETS WITHDRAWALS ESTIMATE "+vault.Hex()+" 12 0 0 0 0") {
		t.Errorf("%v\n%s", err, out)
	}
	for how, args := range map[string][]string{"a file": {"--rpc-file", secretFile(t, rpc)}, "the environment": nil} {
		if how == "the environment" {
			t.Setenv("NAVLOG_STATEMENT_RPC", rpc)
		}
		if out, err := verifyWith("12", args...); err != nil || !strings.Contains(out, "byte for byte") {
			t.Errorf("with the node's URL from %s: %v\n%s", how, err, out)
		}
	}
	if out, err := verify("12", "--json"); err != nil || !strings.Contains(out, `"vaults":[{"address":"`+vault.Hex()+`","startBlock":"12"}]`) {
		t.Errorf("as JSON: %v\n%s", err, out)
	}
}

// secretFile is a file with a value.
func secretFile(t *testing.T, value string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Who interrupts it is told of no node that is away.
func TestStatementVerifyIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	node := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server sees the connection end
		stop()
		<-r.Context().Done()
	}))
	defer node.Close()
	file := filepath.Join(t.TempDir(), "statement.json")
	if err := os.WriteFile(file, aStatement(t), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(ctx, []string{"statement", "verify", file, "--rpc", node.URL}, &out, &out); cli.CodeOf(err) != cli.Failed || !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("it ends with %d: %v", cli.CodeOf(err), err)
	}
}

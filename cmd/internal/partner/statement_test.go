package partner

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
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
	"regexp"
	"slices"
	"strconv"
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

// aStatement returns a signed statement of a chain without a node.
func aStatement(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	const vault = "0xA1A1a1a1A1A1A1A1A1a1a1a1a1a1A1A1a1A1a1a1"
	w := statement.NewWriter(&b,
		statement.Header{ChainID: 5, PartnerID: 7, From: "2026-01-01T00:00:00.000Z", To: "2026-01-31T00:00:00.000Z",
			Vaults: []statement.Vault{{Address: vault, StartBlock: "1"}},
			Block:  statement.Block{Number: "9", Hash: "0x01", Timestamp: "2026-02-01T00:00:00.000Z"}})
	for _, e := range []statement.Event{
		{Type: webhook.DepositReferral, BlockHash: "0x05",
			Data: webhook.DepositData{VaultAddress: vault, Assets: "100", Shares: "99", BlockNumber: "5", LogIndex: 2}},
		{Type: webhook.WithdrawalReferral, BlockHash: "0x06",
			Data: webhook.WithdrawalData{VaultAddress: vault, AssetsEstimate: "44", Shares: "40", RequestIndex: "3",
				BlockNumber: "6"}},
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

// A statement is written only if it is complete, and never over an existing file.
func TestStatementGet(t *testing.T) {
	whole := aStatement(t)
	answer, status := whole, http.StatusOK
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/partner/statement" || r.Header.Get("x-api-key") != "nk_test_key" ||
			r.URL.Query().Get("to") != "2026-01-31" {
			t.Errorf("requested %s with %v", r.URL, r.Header)
		}
		w.WriteHeader(status)
		_, _ = w.Write(answer)
	}))
	defer api.Close()
	t.Chdir(t.TempDir())
	t.Setenv("NAVLOG_API_KEY", "nk_test_key")
	get := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"statement", "--url", api.URL, "--from", "2026-01-01", "--to", "2026-01-31"},
			args...), &out, &out)
		return out.String(), err
	}
	if out, err := get(); err != nil || out != string(whole) {
		t.Errorf("%v, %s", err, out)
	}
	out, err := get("--csv")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err != nil || len(lines) != 3 || !strings.Contains(lines[1], ",100,99,,5,0x05,") ||
		!strings.Contains(lines[2], ",44,40,3,6,0x06,") {
		t.Errorf("as CSV: %v\n%s", err, out)
	}
	if _, err := get("-o", "kept.json"); err != nil {
		t.Error(err)
	}
	if _, err := get("-o", "kept.json"); err == nil || !strings.Contains(err.Error(), "kept.json") {
		t.Errorf("over an existing file: %v", err)
	}
	// A statement that cannot be written leaves no file behind, which the next attempt would not overwrite.
	body, _, _ := bytes.Cut(whole, []byte(",\n\"publicKey\""))
	body = regexp.MustCompile(`"data":\{[^}]*\}`).ReplaceAll(body, []byte(`"data":5`))
	digest := sha256.Sum256(body)
	encode := base64.StdEncoding.EncodeToString
	signature := ed25519.Sign(statementKey, append([]byte(statement.Context), digest[:]...))
	answer = fmt.Appendf(body, ",\n\"publicKey\":%q,\"signature\":%q}\n",
		encode(statementKey.Public().(ed25519.PublicKey)), encode(signature))
	if _, err := get("-o", "events.csv", "--csv"); err == nil || !strings.Contains(err.Error(), "of the statement") {
		t.Errorf("invalid events, as CSV: %v", err)
	}
	if _, err := os.Stat("events.csv"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left behind: %v", err)
	}
	fails := func(what, part string, code cli.Code, args ...string) {
		t.Helper()
		if out, err := get(args...); err == nil || !strings.Contains(err.Error(), part) || cli.CodeOf(err) != code ||
			strings.Contains(out, "navlog/1") {
			t.Errorf("%s: %v (%d)\n%s", what, err, cli.CodeOf(err), out)
		}
	}
	answer = whole[:len(whole)-9]
	fails("cut off", "is not complete", cli.Failed)
	answer = bytes.Replace(whole, []byte(`"assets":"100"`), []byte(`"assets":"900"`), 1)
	fails("changed in transit", "its signature is not valid", cli.Failed)
	answer,
		status = []byte(`{"ok":false,"error":{"code":"INVALID_PARAMETER","message":"A parameter is not valid.","details":[{"field":"to"}]}}`), 400
	fails("rejected", `responded with 400: A parameter is not valid. [{"field":"to"}]`, cli.Usage)
	answer = []byte("<html>")
	fails("another server", "is that the API of navlog?", cli.Failed)
	fails("a missing key file", "none.txt", cli.Usage, "--key-file", "none.txt")
	t.Setenv("NAVLOG_API_KEY", "")
	fails("no key", "there is no API key", cli.Usage)
	fails("no URL", "must be the address of the API", cli.Usage, "--key-file", secretFile(t, "nk_test_key"), "--url",
		"navlog.example")
	fails("a key file with other content", "the API key has a character that cannot be seen", cli.Usage, "--key-file",
		"kept.json")
}

// A statement that was changed, or signed by another key, ends with the code of a difference, and an unreachable node
// with its own code. The comparison with a chain is tested in deploy/check/e2e.
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
	verify(bytes.Replace(whole, []byte(`"assets":"100"`), []byte(`"assets":"900"`), 1),
		"it was changed after it was signed", cli.Different, rpc...)
	verify(bytes.Replace(whole, []byte("\"}\n"), []byte(`","totals":[]}`+"\n"), 1), "has more after its signed part",
		cli.Different, rpc...)
	verify(whole, "it is of chain 5, but the node serves chain 6", cli.Different, append(rpc, "--url", api.URL)...)
	verify(whole, "which is not an accepted key", cli.Different,
		append(rpc, "--key", base64.StdEncoding.EncodeToString(make([]byte, 32)))...)
	verify(whole, "not the base64", cli.Usage, append(rpc, "--key", "!")...)
	keys = base64.StdEncoding.EncodeToString(make([]byte, 32))
	verify(whole, "which is not an accepted key", cli.Different, append(rpc, "--url", api.URL)...)
	verify(whole, "request the chain id of the node", cli.Unreachable, "--rpc", "http://127.0.0.1:1")
	same := &comparison{want: []byte("one\ntwo\n")}
	if _, err := same.Write([]byte("one\n")); err != nil {
		t.Error(err)
	}
	if _, err := same.Write([]byte("three\n")); err == nil ||
		err.Error() != `the statement differs: it has "two", but the chain has "three"` {
		t.Error(err)
	}
}

// statementNode returns a node with empty blocks up to 40, each 12 seconds after the one before, and some logs.
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
			number := hexutil.Uint64(40) // the finalized block
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

// statementWorld is a chain with a deposit for partner 7 in block 11, and statements about its blocks 10 to 30.
type statementWorld struct {
	t      *testing.T
	rpc    string
	vault  common.Address
	header statement.Header
}

func newStatementWorld(t *testing.T) *statementWorld {
	t.Helper()
	w := &statementWorld{t: t, vault: common.HexToAddress("0xa1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1")}
	topics, data, err := contracts.Encode(contracts.DepositAccepted{DepositID: big.NewInt(1), Owner: w.vault,
		Sender: w.vault, PartnerID: 7, Assets: big.NewInt(5), Shares: big.NewInt(5)})
	if err != nil {
		t.Fatal(err)
	}
	w.rpc = statementNode(t, types.Log{Address: w.vault, Topics: topics, Data: data, BlockNumber: 11,
		BlockHash: statementBlock(11).Hash()})
	at := statementBlock(32)
	w.header = statement.Header{ChainID: 5, PartnerID: 7, From: webhook.FormatTime(statementBlock(10).Time),
		To:     webhook.FormatTime(statementBlock(30).Time),
		Vaults: []statement.Vault{{Address: w.vault.Hex(), StartBlock: "11"}},
		Block:  statement.Block{Number: "32", Hash: at.Hash().Hex(), Timestamp: webhook.FormatTime(at.Time)}}
	return w
}

// sign builds the statement of the header from the chain, and returns its file.
func (w *statementWorld) sign(h statement.Header, key ed25519.PrivateKey) string {
	w.t.Helper()
	var b bytes.Buffer
	out := statement.NewWriter(&b, h)
	start, _ := strconv.ParseUint(append(h.Vaults, statement.Vault{StartBlock: "99"})[0].StartBlock, 10, 64)
	if len(h.Vaults) > 0 && h.Vaults[0].Address == w.vault.Hex() && start <= 11 &&
		h.From < webhook.FormatTime(statementBlock(11).Time) && h.To > h.From && h.PartnerID == 7 {
		e := statement.Event{ID: webhook.EventID(5, common.Hash{}, 0, webhook.DepositReferral, 7),
			Type: webhook.DepositReferral, BlockHash: statementBlock(11).Hash().Hex(),
			Data: webhook.DepositData{VaultAddress: w.vault.Hex(), UserAddress: w.vault.Hex(), Assets: "5", Shares: "5",
				TxHash: common.Hash{}.Hex(), BlockNumber: "11", Timestamp: webhook.FormatTime(statementBlock(11).Time)}}
		if err := out.Add(e); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := out.Finish(key); err != nil {
		w.t.Fatal(err)
	}
	return w.file(b.String())
}

func (w *statementWorld) file(text string) string {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return file
}

func (w *statementWorld) verify(file string, args ...string) (string, error) {
	var out bytes.Buffer
	err := run(w.t.Context(), append([]string{"statement", "verify", file, "--rpc", w.rpc}, args...), &out, &out)
	return out.String(), err
}

// A statement is verified only if it matches the chain, is signed by a known key, and has every vault with events for
// the partner. Every other case has its own exit code, and its first line has the reason.
func TestStatementVerifyReportsWhatIsProven(t *testing.T) {
	w := newStatementWorld(t)
	public := base64.StdEncoding.EncodeToString(statementKey.Public().(ed25519.PublicKey))
	otherKey := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{4}, ed25519.SeedSize))
	otherPublic := base64.StdEncoding.EncodeToString(otherKey.Public().(ed25519.PublicKey))
	retired := func(at uint64) string { // the statement's key, retired at the time of a block, next to the current key
		return fmt.Sprintf(`{"ok":true,"data":{"algorithm":"Ed25519","publicKeys":[%q],"keys":[{"publicKey":%q,"since":"2020-01-01T00:00:00.000Z","retiredAt":%q},{"publicKey":%q,"retiredAt":null}]}}`,
			otherPublic, public, webhook.FormatTime(statementBlock(at).Time), otherPublic)
	}
	other := "0xb2b2b2b2b2B2b2B2B2b2b2B2B2b2B2B2b2b2b2b2"
	for name, c := range map[string]struct {
		change func(*statement.Header)
		by     ed25519.PrivateKey
		args   []string
		code   cli.Code
		part   string // in the error, or in the first line
	}{
		"by a known key": {args: []string{"--key", public},
			part: "VERIFIED: the statement matches the chain"},
		"for the right partner": {args: []string{"--key", public, "--partner", "7", "--vault",
			strings.ToLower(w.vault.Hex())}, part: "VERIFIED:"},
		"by a key from a file": {args: []string{"--keys-from",
			w.file("# of navlog.example\n" + otherPublic + "\n" + public + "\n")}, part: "VERIFIED:"},
		"by a key from a saved response": {args: []string{"--keys-from",
			w.file(fmt.Sprintf(`{"ok":true,"data":{"algorithm":"Ed25519","publicKeys":[%q]}}`, public))}, part: "VERIFIED:"},
		"by a key that was retired later": {args: []string{"--keys-from", w.file(retired(33))}, part: "VERIFIED:"},
		"by a key that was retired before": {args: []string{"--keys-from", w.file(retired(32))}, code: cli.Different,
			part: "was retired at"},
		"without a key":                       {code: cli.Unproven, part: "the signer is unknown"},
		"by an unknown signer, without a key": {by: otherKey, code: cli.Unproven, part: "the signer is unknown"},
		"with an unknown mapping": {change: func(h *statement.Header) {
			h.Vaults[0].Sources = []statement.Source{{Role: "vault", Address: h.Vaults[0].Address}}
			h.Vaults[0].Mappings = []statement.Mapping{{Preset: "shop", Hash: common.Hash{1}}}
		}, args: []string{"--key", public}, code: cli.Usage,
			part: "is not a preset of this version of navlog: pass its file as --mapping"},
		"with a mapping that has a mistake": {args: []string{"--key", public, "--mapping", w.file("preset: x\n")},
			code: cli.Usage,
			part: ":1:1: the key `sources` is missing"},
		"with a superfluous mapping": {args: []string{"--key", public, "--mapping",
			"../../../docs/mappings/susds.yaml"}, part: "VERIFIED:"},
		"by an unknown signer": {by: otherKey, args: []string{"--key", public}, code: cli.Different,
			part: "not an accepted key"},
		"by a signer that the key file lacks": {args: []string{"--keys-from", w.file(otherPublic)}, code: cli.Different,
			part: "not an accepted key"},
		"without vaults": {change: func(h *statement.Header) { h.Vaults = []statement.Vault{} },
			args: []string{"--key", public},
			code: cli.Unproven, part: "it names no vault"},
		"without the vault that has the events": {change: func(h *statement.Header) { h.Vaults[0].Address = other },
			args: []string{"--key", public}, code: cli.Unproven,
			part: "it does not have contract " + w.vault.Hex() + ", which has 1 event for"},
		"without an ignored contract": {change: func(h *statement.Header) { h.Vaults[0].Address = other },
			args: []string{"--key", public, "--ignore", w.vault.Hex()}, part: "VERIFIED:"},
		"without a required vault": {change: func(h *statement.Header) { h.Vaults[0].Address = other },
			args: []string{"--key", public, "--vault", w.vault.Hex()},
			code: cli.Different, part: "does not have vault " + w.vault.Hex()},
		"with a start block after the event": {change: func(h *statement.Header) { h.Vaults[0].StartBlock = "12" },
			args: []string{"--key", public}, code: cli.Unproven,
			part: "from block 12 on, and the chain has 1 event for the partner before it"},
		"for another partner": {args: []string{"--key", public, "--partner", "8"}, code: cli.Different,
			part: "is for partner 7, and must be for partner 8"},
		"for another chain": {change: func(h *statement.Header) { h.ChainID = 6 }, args: []string{"--key", public},
			code: cli.Different, part: "it is of chain 6, but the node serves chain 5"},
		"for a range without blocks": {change: func(h *statement.Header) {
			h.From, h.To = "2023-11-14T22:15:21.000Z",
				"2023-11-14T22:15:21.000Z"
		}, args: []string{"--key", public},
			code: cli.Unproven, part: "no block is in its range"},
		"for a range that ends before it begins": {change: func(h *statement.Header) { h.From, h.To = h.To, h.From },
			args: []string{"--key", public},
			code: cli.Different, part: "not a time after its from"},
		"with a vault listed twice": {change: func(h *statement.Header) { h.Vaults = append(h.Vaults, h.Vaults[0]) },
			args: []string{"--key", public},
			code: cli.Different, part: "twice"},
		"with a file without keys": {args: []string{"--keys-from", w.file("\n")}, code: cli.Usage, part: "it has no key"},
		"with a key that is too long": {args: []string{"--keys-from", w.file(public[:40] + "AAAA" + public[40:])},
			code: cli.Usage, part: "bytes and must have 32"},
		"with keys for another algorithm": {args: []string{"--keys-from",
			w.file(fmt.Sprintf(`{"algorithm":"RSA","publicKeys":[%q]}`, public))},
			code: cli.Usage, part: `of the algorithm "RSA"`},
		"with an invalid vault address": {args: []string{"--vault", "0x1"}, code: cli.Usage, part: "must be an address"},
	} {
		h := w.header
		h.Vaults = slices.Clone(h.Vaults)
		if c.change != nil {
			c.change(&h)
		}
		by := statementKey
		if c.by != nil {
			by = c.by
		}
		out, err := w.verify(w.sign(h, by), c.args...)
		first, _, _ := strings.Cut(out, "\n")
		if cli.CodeOf(err) != c.code {
			t.Errorf("%s: code %d, want %d: %v\n%s", name, cli.CodeOf(err), c.code, err, out)
			continue
		}
		switch c.code {
		case cli.Done:
			if !strings.HasPrefix(first, c.part) {
				t.Errorf("%s: the first line is %q", name, first)
			}
		case cli.Unproven:
			if !strings.HasPrefix(first, "NOT VERIFIED: ") || !strings.Contains(first, c.part) ||
				!strings.Contains(err.Error(), c.part) {
				t.Errorf("%s: the first line is %q, the error %v", name, first, err)
			}
			if words := strings.Join(strings.Fields(out), " "); !strings.Contains(words, "proven its events, totals and root") ||
				!strings.Contains(words, "not proven ") {
				t.Errorf("%s: the output lacks what is proven and what is not:\n%s", name, out)
			}
		default:
			if !strings.Contains(err.Error(), c.part) || strings.Contains(out, "VERIFIED") {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
	}
	for args, want := range map[string]string{"--key": `"verified":true,"unproven":[]`,
		"": `"verified":false,"unproven":["the signer is unknown`} {
		all := []string{"--json"}
		if args != "" {
			all = append(all, args, public)
		}
		if out, err := w.verify(w.sign(w.header, statementKey), all...); !strings.Contains(out, want) ||
			(err == nil) != (args != "") {
			t.Errorf("as JSON: %v\n%s", err, out)
		}
	}
}

// The vaults and their first blocks are shown next to the totals.
func TestStatementVerifyShowsUnprovenClaims(t *testing.T) {
	w := newStatementWorld(t)
	w.header.Vaults[0].StartBlock = "12"
	file := w.sign(w.header, statementKey)
	out, _ := w.verify(file)
	if words := strings.Join(strings.Fields(out), " "); !strings.Contains(words,
		"VAULT FROM BLOCK DEPOSITS ASSETS WITHDRAWALS ESTIMATE "+w.vault.Hex()+" 12 0 0 0 0") {
		t.Errorf("%s", out)
	}
	out, _ = w.verify(file, "--json")
	for _, want := range []string{`"vaults":[{"address":"` + w.vault.Hex() + `","startBlock":"12"}]`,
		`"leftOut":[{"address":"` + w.vault.Hex() + `","events":1,"startBlock":"12"}]`} {
		if !strings.Contains(out, want) {
			t.Errorf("as JSON: %s", out)
		}
	}
}

// secretFile returns a file with a value.
func secretFile(t *testing.T, value string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// An interrupted verification does not report the node as unreachable.
func TestStatementVerifyIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	node := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices the closed connection
		stop()
		<-r.Context().Done()
	}))
	defer node.Close()
	file := filepath.Join(t.TempDir(), "statement.json")
	if err := os.WriteFile(file, aStatement(t), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(ctx, []string{"statement", "verify", file, "--rpc", node.URL}, &out,
		&out); cli.CodeOf(err) != cli.Failed || !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("exit code %d: %v", cli.CodeOf(err), err)
	}
}

// TestStatementVerifyReadsItsNode checks that the node's URL comes from a file, the environment or a flag, and that the
// error without a URL names all three.
func TestStatementVerifyReadsItsNode(t *testing.T) {
	w := newStatementWorld(t)
	file, public := w.sign(w.header, statementKey),
		base64.StdEncoding.EncodeToString(statementKey.Public().(ed25519.PublicKey))
	verify := func(args ...string) error {
		var out bytes.Buffer
		return run(t.Context(), append([]string{"statement", "verify", file, "--key", public}, args...), &out, &out)
	}
	if err := verify(); cli.CodeOf(err) != cli.Usage ||
		!strings.Contains(err.Error(),
			"there is no node of the chain: name a file with its URL as --rpc-file, set NAVLOG_STATEMENT_RPC") {
		t.Errorf("without a node: %v", err)
	}
	if err := verify("--rpc-file", secretFile(t, w.rpc)); err != nil {
		t.Errorf("with the node's URL from a file: %v", err)
	}
	t.Setenv("NAVLOG_STATEMENT_RPC", w.rpc)
	if err := verify(); err != nil {
		t.Errorf("with the node's URL from the environment: %v", err)
	}
}

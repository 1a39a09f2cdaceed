package statement_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/statement"
	"github.com/navlog/navlog/schemas/webhook"
)

var (
	vaultA = common.HexToAddress("0xa1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1")
	vaultB = common.HexToAddress("0xb2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2")
	alice  = common.HexToAddress("0x1111111111111111111111111111111111111111")
	key    = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
)

const genesis = 1_700_000_000 // of the fake chain, in Unix seconds; a block every 12 s

// fakeChain has a block every 12 seconds, and rejects wide ranges.
type fakeChain struct {
	id, head uint64
	final    uint64
	logs     []types.Log
	widest   uint64
	asked    []string
	fails    error
}

func (c *fakeChain) ChainID(context.Context) (*big.Int, error) {
	return new(big.Int).SetUint64(c.id), c.fails
}

func (c *fakeChain) HeaderByNumber(_ context.Context, n *big.Int) (*types.Header, error) {
	if n.Sign() < 0 { // the finalized one
		return c.header(c.final), c.fails
	}
	if n.Uint64() > c.head {
		return nil, ethereum.NotFound
	}
	return c.header(n.Uint64()), c.fails
}

func (c *fakeChain) header(n uint64) *types.Header {
	return &types.Header{Number: new(big.Int).SetUint64(n), Time: genesis + 12*n, Difficulty: new(big.Int)}
}

func (c *fakeChain) FilterLogs(_ context.Context, q ethereum.FilterQuery) (out []types.Log, err error) {
	from, to := q.FromBlock.Uint64(), q.ToBlock.Uint64()
	if to-from+1 > c.widest {
		return nil, errors.New("range too wide")
	}
	c.asked = append(c.asked, fmt.Sprintf("%d-%d", from, to))
	for _, l := range slices.Backward(c.logs) { // in an unhelpful order
		wanted := slices.Contains(q.Addresses, l.Address)
		if len(q.Addresses) == 0 {
			wanted = slices.Contains(q.Topics[0], l.Topics[0]) && slices.Contains(q.Topics[3], l.Topics[3])
		}
		if l.BlockNumber >= from && l.BlockNumber <= to && wanted {
			out = append(out, l)
		}
	}
	return out, c.fails
}

// emit adds a log to the chain.
func (c *fakeChain) emit(t *testing.T, vault common.Address, block uint64, index uint, e contracts.Event) {
	t.Helper()
	topics, data, err := contracts.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	c.logs = append(c.logs, types.Log{Address: vault, Topics: topics, Data: data, BlockNumber: block,
		BlockHash: c.header(block).Hash(), TxHash: tx(block, index), Index: index})
}

func tx(block uint64, index uint) (h common.Hash) { h[0], h[31] = byte(block), byte(index); return h }

func n(v int64) *big.Int { return big.NewInt(v) }

func deposit(partner uint32, id, assets int64) contracts.DepositAccepted {
	return contracts.DepositAccepted{DepositID: n(id), Owner: alice, Sender: alice, PartnerID: partner, Assets: n(assets),
		Shares: n(assets)}
}

// delivered returns a deposit in the form of its webhook, written by hand.
func delivered(vault common.Address, block uint64, index uint, assets string) statement.Event {
	return statement.Event{
		ID: webhook.EventID(5, tx(block, index), uint32(index), "deposit.referral", 7), Type: "deposit.referral",
		BlockHash: (&fakeChain{}).header(block).Hash().Hex(),
		Data: webhook.DepositData{VaultAddress: vault.Hex(), UserAddress: alice.Hex(), Assets: assets, Shares: assets,
			TxHash: tx(block, index).Hex(), BlockNumber: fmt.Sprint(block), LogIndex: uint32(index),
			Timestamp: webhook.FormatTime(genesis + 12*block)},
	}
}

// header returns a header for the blocks 10 to 30 of a fake chain.
func header(c *fakeChain) statement.Header {
	return statement.Header{ChainID: 5, PartnerID: 7, From: webhook.FormatTime(genesis + 120),
		To:     webhook.FormatTime(genesis + 360),
		Vaults: []statement.Vault{{Address: vaultA.Hex(), StartBlock: "12"}, {Address: vaultB.Hex(), StartBlock: "1"}},
		Block: statement.Block{Number: "32", Hash: c.header(32).Hash().Hex(),
			Timestamp: webhook.FormatTime(genesis + 12*32)}}
}

func write(t *testing.T, h statement.Header, key ed25519.PrivateKey, events ...statement.Event) []byte {
	t.Helper()
	var b bytes.Buffer
	w := statement.NewWriter(&b, h)
	for _, e := range events {
		if err := w.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(key); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A rebuild from any node has the bytes that the signer wrote. It leaves out other partners, other
// events, other vaults, blocks outside of the time range or before a vault's start, and quarantined
// events.
func TestRebuild(t *testing.T) {
	c := &fakeChain{id: 5, head: 40, final: 40, widest: 7}
	c.emit(t, vaultB, 9, 0, deposit(7, 1, 1))   // before the time range
	c.emit(t, vaultB, 10, 3, deposit(7, 2, 10)) // its first block
	c.emit(t, vaultB, 10, 1, deposit(7, 3, 11))
	c.emit(t, vaultA, 11, 0, deposit(7, 1, 1)) // before the vault's start
	c.emit(t, vaultA, 12, 0, deposit(8, 2, 1)) // of another partner
	c.emit(t, vaultA, 12, 1, deposit(0, 3, 1))
	c.emit(t, vaultA, 20, 0, contracts.WithdrawalRequested{RequestIndex: n(4), Owner: alice, Receiver: alice, PartnerID: 7,
		Shares: n(3), AssetsEstimate: n(4), ExpiresAt: 9})
	c.emit(t, vaultA, 21, 0, contracts.WithdrawalFunded{RequestIndex: n(4), SettlementID: n(1), Assets: n(4),
		Shares: n(3)})
	// not a vault
	c.emit(t, alice, 22, 0, deposit(7, 9, 1))
	// quarantined
	c.emit(t, vaultA, 23, 0, contracts.DepositAccepted{DepositID: n(9), Owner: alice, PartnerID: 7,
		Assets: new(big.Int).Lsh(n(1), 200), Shares: n(1)})
	c.emit(t, vaultA, 30, 2, deposit(7, 5, 12)) // its last block
	c.emit(t, vaultA, 31, 0, deposit(7, 6, 1))
	withdrawal := statement.Event{ID: webhook.EventID(5, tx(20, 0), 0, "withdrawal.referral", 7),
		Type: "withdrawal.referral", BlockHash: c.header(20).Hash().Hex(),
		Data: webhook.WithdrawalData{VaultAddress: vaultA.Hex(), UserAddress: alice.Hex(), Shares: "3", AssetsEstimate: "4",
			RequestIndex: "4", TxHash: tx(20, 0).Hex(), BlockNumber: "20", LogIndex: 0,
			Timestamp: webhook.FormatTime(genesis + 240)}}
	text := write(t, header(c), key, delivered(vaultB, 10, 1, "11"), delivered(vaultB, 10, 3, "10"), withdrawal,
		delivered(vaultA, 30, 2, "12"))
	d, err := statement.Parse(text)
	if err != nil || !d.Signed() || len(d.Events) != 4 {
		t.Fatalf("%v, %+v", err, d)
	}
	var again bytes.Buffer
	var progress []uint64
	found, err := statement.Rebuild(t.Context(), &again, d.Header, c, nil,
		func(done, of uint64) { progress = append(progress, done, of) })
	if err != nil {
		t.Fatal(err)
	}
	// Events that the header excludes are found: before a vault's start, and of a contract that is not a vault.
	left := []statement.LeftOut{{Address: vaultA.Hex(), Events: 1, StartBlock: "12"}, {Address: alice.Hex(), Events: 1}}
	if found.Blocks != 21 || found.Pending || !slices.Equal(found.LeftOut, left) {
		t.Errorf("found %+v", found)
	}
	asked := c.asked
	c.final = 31
	if found, err := statement.Rebuild(t.Context(), io.Discard, d.Header, c, nil, nil); err != nil || !found.Pending {
		t.Errorf("a block that is not final: %+v, %v", found, err)
	}
	if !bytes.Equal(again.Bytes(), d.Body) {
		t.Errorf("rebuilt\n%s\nsigned\n%s", again.Bytes(), d.Body)
	}
	if last := progress[len(progress)-2:]; last[0] != 21 || last[1] != 21 {
		t.Errorf("progress %v", progress)
	}
	for i := 1; i < len(asked); i++ { // each block once
		var end, next uint64
		_, _ = fmt.Sscanf(asked[i-1][strings.Index(asked[i-1], "-")+1:], "%d", &end)
		_, _ = fmt.Sscanf(asked[i], "%d-", &next)
		if next != end+1 {
			t.Errorf("requested %v", asked)
		}
	}

	// Another amount, one event more or less, or another order changes the bytes.
	for name, events := range map[string][]statement.Event{
		"another amount": {delivered(vaultB, 10, 1, "11"), delivered(vaultB, 10, 3, "1000"), withdrawal,
			delivered(vaultA, 30, 2, "12")},
		"one event less": {delivered(vaultB, 10, 1, "11"), withdrawal, delivered(vaultA, 30, 2, "12")},
		"a repeated event": {delivered(vaultB, 10, 1, "11"), delivered(vaultB, 10, 3, "10"), withdrawal, withdrawal,
			delivered(vaultA, 30, 2, "12")},
		"another order": {delivered(vaultB, 10, 3, "10"), delivered(vaultB, 10, 1, "11"), withdrawal,
			delivered(vaultA, 30, 2, "12")},
	} {
		if bytes.Equal(write(t, header(c), nil, events...), again.Bytes()) {
			t.Errorf("%s does not change the bytes", name)
		}
	}
}

// A header that contradicts the chain is distinguished from a node that does not respond.
func TestRebuildErrors(t *testing.T) {
	c := &fakeChain{id: 5, head: 40, widest: 100}
	for part, change := range map[string]func(*statement.Header){
		"it is of chain 6, but the node serves chain 5": func(h *statement.Header) { h.ChainID = 6 },
		`its to is "later"`:                             func(h *statement.Header) { h.To = "later" },
		`its from is "soon"`:                            func(h *statement.Header) { h.From = "soon" },
		"not a time after its from":                     func(h *statement.Header) { h.To = webhook.FormatTime(genesis) },
		"twice":                                         func(h *statement.Header) { h.Vaults[1].Address = h.Vaults[0].Address },
		`its vault "0x1"`:                               func(h *statement.Header) { h.Vaults[0].Address = "0x1" },
		`its vault "0xa1a1`:                             func(h *statement.Header) { h.Vaults[0].Address = strings.ToLower(h.Vaults[0].Address) },
		`from block "x"`:                                func(h *statement.Header) { h.Vaults[0].StartBlock = "x" },
		`its block is "x"`:                              func(h *statement.Header) { h.Block.Number = "x" },
		"the chain has no block 99 yet":                 func(h *statement.Header) { h.Block.Number = "99" },
		`but the statement was made at "0x01"`:          func(h *statement.Header) { h.Block.Hash = "0x01" },
		"its to, " + webhook.FormatTime(genesis+12*33):  func(h *statement.Header) { h.To = webhook.FormatTime(genesis + 12*33) },
		// that of its block
		"events may be missing": func(h *statement.Header) { h.To = webhook.FormatTime(genesis + 12*32) },
	} {
		h := header(c)
		change(&h)
		var contradiction *statement.Contradiction
		if _, err := statement.Rebuild(t.Context(), io.Discard, h, c, nil, nil); !errors.As(err, &contradiction) ||
			!strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v", part, err)
		}
	}
	var contradiction *statement.Contradiction
	c.fails = errors.New("away")
	if _, err := statement.Rebuild(t.Context(), io.Discard, header(c), c, nil, nil); err == nil ||
		errors.As(err, &contradiction) {
		t.Errorf("a node that is down: %v", err)
	}
	c.fails, c.widest = nil, 0
	if _, err := statement.Rebuild(t.Context(), io.Discard, header(c), c, nil, nil); err == nil ||
		!strings.Contains(err.Error(), "logs of blocks 10 to 10") {
		t.Errorf("a node that returns no logs: %v", err)
	}
}

// A time range before the chain, and a statement without vaults, have no events.
func TestEmptyStatements(t *testing.T) {
	c := &fakeChain{id: 5, head: 40, widest: 100}
	c.emit(t, vaultB, 0, 0, deposit(7, 1, 1))
	for name, change := range map[string]func(*statement.Header){
		"before the chain": func(h *statement.Header) {
			h.From, h.To = "1970-01-01T00:00:00.000Z",
				"2001-01-01T00:00:00.000Z"
		},
		"between blocks": func(h *statement.Header) {
			h.From, h.To = webhook.FormatTime(genesis+121), webhook.FormatTime(genesis+131)
		},
		"without vaults": func(h *statement.Header) { h.Vaults = []statement.Vault{} },
	} {
		h := header(c)
		change(&h)
		var b bytes.Buffer
		if _, err := statement.Rebuild(t.Context(), &b, h, c, nil, nil); err != nil ||
			!bytes.Equal(b.Bytes(), write(t, h, nil)) {
			t.Errorf("%s: %v\n%s", name, err, b.Bytes())
		}
		// The root of no leaves is the hash of nothing (RFC 6962, 2.1).
		nothing := sha256.Sum256(nil)
		if !strings.Contains(b.String(), `"root":"0x`+hex.EncodeToString(nothing[:])+`"`) {
			t.Errorf("%s: %s", name, b.Bytes())
		}
	}
}

// TestRoot builds the tree of RFC 6962 as its definition does, by splitting at the
// largest power of two below the number of leaves.
func TestRoot(t *testing.T) {
	var root func(leaves [][]byte) []byte
	root = func(leaves [][]byte) []byte {
		if len(leaves) == 1 {
			h := sha256.Sum256(append([]byte{0}, leaves[0]...))
			return h[:]
		}
		k := 1
		for 2*k < len(leaves) {
			k *= 2
		}
		h := sha256.Sum256(slices.Concat([]byte{1}, root(leaves[:k]), root(leaves[k:])))
		return h[:]
	}
	c := &fakeChain{}
	for count := 1; count <= 17; count++ {
		var events []statement.Event
		for i := range count {
			events = append(events, delivered(vaultA, 20, uint(i), "5"))
		}
		text := write(t, header(c), key, events...)
		_, list, _ := strings.Cut(string(text), "\"events\":[\n")
		list, _, _ = strings.Cut(list, "\n],\n\"totals\"")
		var leaves [][]byte
		for _, l := range strings.Split(list, "\n") {
			leaves = append(leaves, []byte(strings.TrimSuffix(l, ",")))
		}
		if want := hex.EncodeToString(root(leaves)); len(leaves) != count ||
			!strings.Contains(string(text), `"root":"0x`+want+`"`) {
			t.Errorf("with %d events the root is not %s:\n%s", count, want, text)
		}
		if !json.Valid(text) {
			t.Errorf("with %d events it is not JSON", count)
		}
	}
}

// If any byte is changed, the signature is invalid, or the document is not a statement.
func TestSignature(t *testing.T) {
	c := &fakeChain{}
	text := write(t, header(c), key, delivered(vaultA, 20, 0, "5"), delivered(vaultB, 21, 0, "6"))
	for i := range text {
		for _, bit := range []byte{1, 'a' - 'A'} {
			changed := slices.Clone(text)
			changed[i] ^= bit
			if d, err := statement.Parse(changed); err == nil && d.Signed() {
				t.Fatalf("byte %d can be changed to %q", i, changed[i])
			}
		}
	}
	d, err := statement.Parse(text)
	if err != nil || !d.PublicKey.Equal(key.Public()) {
		t.Fatalf("%v, %x", err, d.PublicKey)
	}
	for part, broken := range map[string]string{
		"not a complete statement": string(text[:len(d.Body)]),
		"is truncated":             string(text[:len(text)-3]),
		"it is not JSON":           "," + string(text),
		"its public key has 2":     strings.Replace(string(text), base64.StdEncoding.EncodeToString(d.PublicKey), "AAA=", 1),
		`of version "navlog/2"`:    strings.Replace(string(text), "navlog/1", "navlog/2", 1),
	} {
		if _, err := statement.Parse([]byte(broken)); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v", part, err)
		}
	}
}

// Anything after the signed part is unsigned, and JSON readers take the last of two fields with the
// same name: so only key and signature are allowed there.
func TestUnsigned(t *testing.T) {
	text := string(write(t, header(&fakeChain{}), key, delivered(vaultA, 20, 0, "5")))
	forged := `"totals":[{"vaultAddress":"` + vaultA.Hex() + `","deposits":1,"assets":"5000000"}],"events":[]`
	at := strings.Index(text, `","signature":"`)
	for name, changed := range map[string]string{
		"after the signature":  strings.TrimSuffix(text, "}\n") + "," + forged + "}\n",
		"before the signature": text[:at] + `",` + forged + text[at+1:],
		"two signatures":       strings.TrimSuffix(text, "}\n") + text[at+1:],
		"a line of base64":     text[:at-4] + "\n" + text[at-4:],
		"an extra line":        text + "\n",
		"no final newline":     strings.TrimSuffix(text, "\n"),
		"a space":              strings.TrimSuffix(text, "}\n") + " }\n",
	} {
		if _, err := statement.Parse([]byte(changed)); err == nil ||
			!strings.Contains(err.Error(), "more after its signed part") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// After a second seal, everything before it counts as the signed part.
	_, seal, _ := strings.Cut(text, `,
"publicKey"`)
	if d, err := statement.Parse([]byte(strings.TrimSuffix(text,
		"}\n") + "," + forged + ",\n\"publicKey\"" + seal)); err == nil && d.Signed() {
		t.Error("the part between two signatures counts as signed")
	}
}

// Add rejects events that do not belong in the statement, and reports a full disk.
func TestWriterErrors(t *testing.T) {
	c := &fakeChain{}
	for part, e := range map[string]statement.Event{
		"which is not in the header":       delivered(alice, 20, 0, "5"),
		`has the amount "5.5"`:             delivered(vaultA, 20, 0, "5.5"),
		"neither a deposit nor a withdraw": {Data: 5},
	} {
		w := statement.NewWriter(io.Discard, header(c))
		if err := w.Add(e); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v", part, err)
		}
		if err := w.Finish(key); err == nil {
			t.Errorf("%q: a statement without the event was signed", part)
		}
	}
	w := statement.NewWriter(full{}, header(c))
	if err := w.Finish(key); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
	if _, err := statement.Key("short"); err == nil {
		t.Error("a key that does not have 32 bytes is accepted")
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

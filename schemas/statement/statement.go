// Package statement is the contract on statements, by which partners are paid: every event of a time range, their
// totals, and a signature. Anyone with a node of the chain can rebuild the same bytes, so the signer is trusted only
// for the list of vaults, their start blocks and mappings, and the attribution values that name the partner.
//
//	header   chain, partner, time range, vaults, and the final block at which it was made
//	events   in the order of the chain, one line each, with the webhook ids and the hashes of their blocks
//	totals   by vault
//	root     of the Merkle tree over the lines of the events (RFC 6962, SHA-256)
//	─────────────────────────────────────────────────────────────────── end of the signed part
//	signature, Ed25519, over Context and the SHA-256 of all the bytes above the line
//
// An event is in the time range if the time of its block is, both ends included. Events that
// the read models quarantine (webhook.FromReferral) are in no statement. A statement is
// written as it is computed: its size is not bounded, and its memory is one line.
package statement

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"

	"github.com/navlog/navlog/schemas/webhook"
)

// Version is the first field of a statement.
const Version = "navlog/1"

// Context precedes the signed digest, so that a signature is valid for statements only and
// not for other documents with the same bytes.
const Context = "navlog statement\n"

// Header identifies a statement.
type Header struct {
	Statement string  `json:"statement"` // Version
	ChainID   uint64  `json:"chainId"`
	PartnerID uint32  `json:"partnerId"`
	From      string  `json:"from"` // ISO 8601 in UTC with milliseconds, as To
	To        string  `json:"to"`
	Vaults    []Vault `json:"vaults"`
	// Block is a final block after To.
	Block Block `json:"block"`
}

// Vault is a vault of the statement with its first block.
type Vault struct {
	Address    string `json:"address"`
	StartBlock string `json:"startBlock"`
	// Sources and Mappings describe how the logs of a vault of another protocol than the reference are read.
	Sources  []Source  `json:"sources,omitempty"`
	Mappings []Mapping `json:"mappings,omitempty"`
	// Aliases are the attribution values by which logs of the vault name the partner, sorted.
	Aliases []common.Hash `json:"aliases,omitempty"`
}

// Block is a block of the chain.
type Block struct {
	Number    string `json:"number"`
	Hash      string `json:"hash"`
	Timestamp string `json:"timestamp"`
}

// Event is an event as in its webhook, with the hash of its block.
type Event struct {
	ID        uuid.UUID `json:"id"`
	Type      string    `json:"type"`
	BlockHash string    `json:"blockHash"`
	Data      any       `json:"data"` // webhook.DepositData or webhook.WithdrawalData
}

// Total is the sum of the events of a vault, in native units.
type Total struct {
	VaultAddress   string   `json:"vaultAddress"`
	Deposits       int64    `json:"deposits"`
	Assets         *big.Int `json:"-"`
	Withdrawals    int64    `json:"withdrawals"`
	AssetsEstimate *big.Int `json:"-"`
}

// MarshalJSON writes amounts as decimal strings.
func (t Total) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		VaultAddress   string `json:"vaultAddress"`
		Deposits       int64  `json:"deposits"`
		Assets         string `json:"assets"`
		Withdrawals    int64  `json:"withdrawals"`
		AssetsEstimate string `json:"assetsEstimate"`
	}{t.VaultAddress, t.Deposits, t.Assets.String(), t.Withdrawals, t.AssetsEstimate.String()})
}

// Writer writes a statement. It cannot be used after an error.
type Writer struct {
	out    io.Writer
	digest hash.Hash // of the signed part written so far
	tree   *compact.Range
	totals []Total // in the order of the header's vaults
	err    error
}

// NewWriter starts a statement with its header.
func NewWriter(out io.Writer, h Header) *Writer {
	factory := compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}
	w := &Writer{out: out, digest: sha256.New(), tree: factory.NewEmptyRange(0)}
	for _, v := range h.Vaults {
		w.totals = append(w.totals, Total{VaultAddress: v.Address, Assets: new(big.Int), AssetsEstimate: new(big.Int)})
	}
	h.Statement = Version
	w.write(`{"statement":`, line(h), `,"events":[`)
	return w
}

// Add writes the next event in the order of the chain. Its vault must be in the header.
func (w *Writer) Add(e Event) error {
	if w.err == nil {
		w.err = w.count(e)
	}
	text := line(e)
	if w.err == nil {
		w.err = w.tree.Append(rfc6962.DefaultHasher.HashLeaf([]byte(text)), nil)
	}
	separator := ",\n"
	if w.tree.End() == 1 {
		separator = "\n"
	}
	w.write(separator, text)
	return w.err
}

func (w *Writer) count(e Event) error {
	switch d := e.Data.(type) {
	case webhook.DepositData:
		t, amount, err := w.total(d.VaultAddress, d.Assets)
		if err != nil {
			return err
		}
		t.Deposits++
		t.Assets.Add(t.Assets, amount)
	case webhook.WithdrawalData:
		t, amount, err := w.total(d.VaultAddress, cmp.Or(d.AssetsEstimate, "0"))
		if err != nil {
			return err
		}
		t.Withdrawals++
		t.AssetsEstimate.Add(t.AssetsEstimate, amount)
	default:
		return fmt.Errorf("event %s of a statement is neither a deposit nor a withdrawal, but a %T", e.ID, e.Data)
	}
	return nil
}

func (w *Writer) total(vault, amount string) (*Total, *big.Int, error) {
	n, ok := new(big.Int).SetString(amount, 10)
	if !ok {
		return nil, nil, fmt.Errorf(
			"an event of vault %s in a statement has the amount %q, which is not a number", vault, amount,
		)
	}
	for i := range w.totals {
		if w.totals[i].VaultAddress == vault {
			return &w.totals[i], n, nil
		}
	}
	return nil, nil, fmt.Errorf("an event in a statement is of vault %s, which is not in the header", vault)
}

// Finish writes totals and root. With a key it also signs and completes the statement;
// without one it ends with the signed part.
func (w *Writer) Finish(key ed25519.PrivateKey) error {
	root, err := w.tree.GetRootHash(nil)
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("compute the root of a statement: %w", err)
	}
	if w.tree.End() == 0 {
		root = rfc6962.DefaultHasher.EmptyRoot()
	}
	if w.totals == nil {
		w.totals = []Total{}
	}
	w.write("\n],\n\"totals\":", line(w.totals), `,"root":"0x`, hex.EncodeToString(root), `"`)
	if key == nil || w.err != nil {
		return w.err
	}
	signature := ed25519.Sign(key, signed(w.digest.Sum(nil)))
	w.write(sealed(key.Public().(ed25519.PublicKey), signature))
	return w.err
}

// seal starts the unsigned part: the key and the signature.
const seal = ",\n\"publicKey\":\""

// sealed returns the unsigned part of a statement.
func sealed(key ed25519.PublicKey, signature []byte) string {
	encode := base64.StdEncoding.EncodeToString
	return seal + encode(key) + `","signature":"` + encode(signature) + "\"}\n"
}

// unseal parses the output of sealed and accepts no other byte, since anything else there
// would be in the document without being signed.
func unseal(text string) (ed25519.PublicKey, []byte, error) {
	left, right, _ := strings.Cut(strings.TrimPrefix(text, seal), `","signature":"`)
	key, _ := base64.StdEncoding.DecodeString(left)
	signature, _ := base64.StdEncoding.DecodeString(strings.TrimSuffix(right, "\"}\n"))
	if sealed(key, signature) != text {
		return nil, nil, errors.New("it is truncated, or has more after its signed part than publicKey and signature")
	}
	if len(key) != ed25519.PublicKeySize {
		return nil, nil, fmt.Errorf("its public key has %d bytes, want %d", len(key), ed25519.PublicKeySize)
	}
	return key, signature, nil
}

func (w *Writer) write(parts ...string) {
	for _, part := range parts {
		if w.err != nil {
			return
		}
		w.digest.Write([]byte(part))
		if _, err := io.WriteString(w.out, part); err != nil {
			w.err = fmt.Errorf("write a statement: %w", err)
		}
	}
}

// line encodes a value as JSON on one line, without escaping for HTML.
func line(v any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err) // every value in a statement can be encoded
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// signed returns the message that the signature of a statement signs.
func signed(digest []byte) []byte { return append([]byte(Context), digest...) }

// Document is a parsed statement. Everything except the key and the signature comes from Body.
type Document struct {
	Header Header `json:"statement"`
	Body   []byte `json:"-"` // the signed bytes
	Events []struct {
		ID        uuid.UUID       `json:"id"`
		Type      string          `json:"type"`
		BlockHash string          `json:"blockHash"`
		Data      json.RawMessage `json:"data"`
	} `json:"events"`
	Totals    json.RawMessage   `json:"totals"`
	PublicKey ed25519.PublicKey `json:"-"`
	Signature []byte            `json:"-"`
}

// Parse parses a statement. It rejects what Writer cannot have written, but verifies neither
// the signature nor the signed content.
func Parse(text []byte) (*Document, error) {
	at := bytes.LastIndex(text, []byte(seal))
	if at < 0 {
		return nil, errors.New("it has no publicKey on its own line: it is not a complete statement of navlog")
	}
	d := &Document{Body: text[:at]}
	var err error
	if d.PublicKey, d.Signature, err = unseal(string(text[at:])); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if d.Header.Statement != Version {
		return nil, fmt.Errorf("it is a statement of version %q, but this navlog supports %s", d.Header.Statement, Version)
	}
	return d, nil
}

// Signed reports whether the signature was made with the public key. The document does not prove whose key that is.
func (d *Document) Signed() bool {
	digest := sha256.Sum256(d.Body)
	return ed25519.Verify(d.PublicKey, signed(digest[:]), d.Signature)
}

// Key parses a signing key: 32 bytes in base64, the seed of RFC 8032.
func Key(text string) (ed25519.PrivateKey, error) {
	seed, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, errors.New("NAVLOG_HTTP_STATEMENT_KEY must be 32 random bytes in base64: create one with `openssl " +
			"rand -base64 32`")
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

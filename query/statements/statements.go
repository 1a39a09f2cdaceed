// Package statements makes the statements of account that a partner is paid by, and says
// by which key they are signed. What a statement is stands in schemas/statement.
//
//	final block of ingest ──▶ pin ──▶ header ──▶ events, some thousands at a time ──▶ signature
//
// It is of final blocks alone, and of facts alone: nothing that is written meanwhile can
// change what a question answers. The next events are asked for by the place of the last
// one, so that a statement of a million costs the memory of some thousands.
package statements

import (
	"context"
	"crypto/ed25519"
	_ "embed"
	"fmt"
	"io"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/blocks"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/schemas/statement"
	"github.com/navlog/navlog/schemas/webhook"
)

var (
	//go:embed block.sql
	sqlBlock string
	//go:embed events.sql
	sqlEvents string
)

// atOnce is how many events are asked for at once.
const atOnce = 5000

// Statements answers about statements. Without a key there are none.
type Statements struct{ Key ed25519.PrivateKey }

type keysJSON struct {
	Algorithm string   `json:"algorithm"`
	Keys      [][]byte `json:"publicKeys"`
}

// Keys are the public keys that statements are signed by.
func (s *Statements) Keys(*httpapi.Request) (*httpapi.Answer, error) {
	out := keysJSON{Algorithm: "Ed25519", Keys: [][]byte{}}
	if s.Key != nil {
		out.Keys = append(out.Keys, s.Key.Public().(ed25519.PublicKey))
	}
	return &httpapi.Answer{Data: out}, nil
}

// Get is the statement of the partner who asks about a span of time.
func (s *Statements) Get(r *httpapi.Request) (*httpapi.Answer, error) {
	span := r.Params.Span()
	for _, name := range []string{"from", "to"} {
		if r.Params.Get(name) == "" {
			r.Params.Fault(name, "must be given: a statement is of a span of time")
		}
	}
	for name, at := range map[string]int64{"from": span.From, "to": span.To} {
		if at < 0 {
			r.Params.Fault(name, "must not be before 1970: no block is")
		}
	}
	if s.Key == nil {
		return nil, httpapi.NotFound("Statements are not made here: the operator has given no key to sign them with.")
	}
	return r.PinnedToFinal(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		block, ok, err := pin.AskOne[blockRow](ctx, p, sqlBlock, nil)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, httpapi.Unavailable("No final block is indexed yet.", nil)
		}
		if span.To > int64(block.Time) {
			return nil, httpapi.InvalidParameter(httpapi.Fault{Field: "to",
				Reason: "must not be after " + httpapi.Time(uint64(block.Time)) + ", the time of the newest final block that is indexed"})
		}
		h := header(p, r.Partner.ID, span, &block)
		name := fmt.Sprintf("statement-%d-%d-%d-%d.json", p.ChainID, r.Partner.ID, span.From, span.To)
		return &httpapi.Answer{Name: name, Stream: func(ctx context.Context, out io.Writer) error { return s.write(ctx, out, p, h, span) }}, nil
	})
}

type blockRow struct {
	Block uint64 `ch:"block"`
	Hash  string `ch:"hash"`
	Time  uint32 `ch:"ts"`
}

func header(p *pin.Pin, partner uint32, span httpapi.Span, block *blockRow) statement.Header {
	h := statement.Header{
		ChainID: p.ChainID, PartnerID: partner, From: webhook.FormatTime(uint64(span.From)), To: webhook.FormatTime(uint64(span.To)),
		Vaults: []statement.Vault{},
		Block:  statement.Block{Number: httpapi.Decimal(block.Block), Hash: httpapi.ToHash(block.Hash), Timestamp: webhook.FormatTime(uint64(block.Time))},
	}
	for _, v := range p.Vaults {
		h.Vaults = append(h.Vaults, statement.Vault{Address: v.Written, StartBlock: httpapi.Decimal(v.StartBlock)})
	}
	return h
}

// event is a deposit or a withdrawal request.
type event struct {
	Seq          uint64   `ch:"seq"`
	Withdrawal   uint8    `ch:"withdrawal"`
	Vault        string   `ch:"vault"`
	User         string   `ch:"user"`
	Assets       *big.Int `ch:"assets"`
	Shares       *big.Int `ch:"shares"`
	RequestIndex uint64   `ch:"request_index"`
	Block        uint64   `ch:"block"`
	Time         uint32   `ch:"ts"`
	Tx           string   `ch:"tx"`
	LogIndex     uint32   `ch:"log_index"`
}

func (s *Statements) write(ctx context.Context, out io.Writer, p *pin.Pin, h statement.Header, span httpapi.Span) error {
	w := statement.NewWriter(out, h)
	args := pin.Args{"partner": h.PartnerID, "from": span.From, "to": span.To, "limit": uint64(atOnce), "at": uint64(0), "log": uint32(0)}
	for {
		rows, err := pin.Ask[event](ctx, p, sqlEvents, args)
		if err != nil {
			return err
		}
		hashes, err := blocks.Hashes(ctx, p, rows, (*event).log)
		if err != nil {
			return err
		}
		for i := range rows {
			if err := w.Add(rows[i].told(p, h.PartnerID, hashes[i])); err != nil {
				return err
			}
		}
		if len(rows) < atOnce {
			return w.Finish(s.Key)
		}
		last := &rows[len(rows)-1]
		args["at"], args["log"] = last.Block, last.LogIndex
	}
}

// log is the event as the spine names it.
func (e *event) log() blocks.Log { return blocks.Log{Seq: e.Seq, Block: e.Block} }

// told is the event as its webhook tells it, and the hash of its block.
func (e *event) told(p *pin.Pin, partner uint32, hash common.Hash) statement.Event {
	vault, _ := p.Written(httpapi.ToAddress(e.Vault))
	user, tx, at := httpapi.ToAddress(e.User).Hex(), httpapi.ToHash(e.Tx), webhook.FormatTime(uint64(e.Time))
	block := httpapi.Decimal(e.Block)
	out := statement.Event{Type: webhook.DepositReferral, Data: webhook.DepositData{
		VaultAddress: vault, UserAddress: user, Assets: e.Assets.String(), Shares: e.Shares.String(),
		TxHash: tx, BlockNumber: block, LogIndex: e.LogIndex, Timestamp: at,
	}}
	if e.Withdrawal == 1 {
		out = statement.Event{Type: webhook.WithdrawalReferral, Data: webhook.WithdrawalData{
			VaultAddress: vault, UserAddress: user, Shares: e.Shares.String(), AssetsEstimate: e.Assets.String(),
			RequestIndex: httpapi.Decimal(e.RequestIndex), TxHash: tx, BlockNumber: block, LogIndex: e.LogIndex, Timestamp: at,
		}}
	}
	out.BlockHash = hash.Hex()
	out.ID = webhook.EventID(p.ChainID, common.HexToHash(tx), e.LogIndex, out.Type, partner)
	return out
}

// Probe is where the keys are.
func (s *Statements) Probe() httpapi.Probe {
	return httpapi.Probe{Path: "/.well-known/navlog-statements", Limited: true, Get: s.Keys}
}

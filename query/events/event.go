package events

import (
	"context"
	_ "embed"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

var (
	//go:embed retractions.sql
	sqlRetractions string
	//go:embed deposits.sql
	sqlDeposits string
	//go:embed withdrawals.sql
	sqlWithdrawals string
	//go:embed navs.sql
	sqlNavs string
	//go:embed sweeps.sql
	sqlSweeps string
)

// row is a log as the spine has it.
type row struct {
	Seq         uint64 `ch:"seq"`
	Kind        string `ch:"kind"`
	Quarantined bool   `ch:"quarantined"`
	Vault       string `ch:"vault"`
	User        string `ch:"user"`
	Tx          string `ch:"tx"`
	Block       uint64 `ch:"block"`
	Time        uint32 `ch:"ts"`
	LogIndex    uint32 `ch:"log_index"`
	Payload     string `ch:"payload"`
}

// place is where the row stands in a list, of live logs or of all.
func (r *row) place(retracted bool) place {
	at := place{block: r.Block, index: uint64(r.LogIndex)}
	if retracted {
		at.seq = r.Seq
	}
	return at
}

// States of a log.
const (
	live        = "live"
	retracted   = "retracted"   // by a reorganisation
	quarantined = "quarantined" // names a number that is too large to be counted, or is not laid out as its kind
)

type eventJSON struct {
	ID             string  `json:"id"`
	Seq            string  `json:"seq"`
	Kind           string  `json:"kind"`
	VaultAddress   string  `json:"vaultAddress"`
	VaultName      string  `json:"vaultName"`
	BlockNumber    string  `json:"blockNumber"`
	Timestamp      string  `json:"timestamp"`
	TxHash         string  `json:"txHash"`
	LogIndex       uint32  `json:"logIndex"`
	UserAddress    *string `json:"userAddress"`
	PartnerID      *uint32 `json:"partnerId"`
	DepositID      *string `json:"depositId"`
	RequestIndex   *string `json:"requestIndex"`
	Assets         *string `json:"assets"`
	Shares         *string `json:"shares"`
	NavPerShare    *string `json:"navPerShare"`
	TotalAssets    *string `json:"totalAssets"`
	TotalSupply    *string `json:"totalSupply"`
	FromID         *string `json:"fromId"`
	ToID           *string `json:"toId"`
	State          string  `json:"state"`
	RetractedBySeq *string `json:"retractedBySeq"`
}

// describe makes the events of some rows, in their order. Whether they were taken back
// is looked up where they may have been.
func describe(ctx context.Context, p *pin.Pin, rows []row, mayBeGone bool) ([]eventJSON, error) {
	out := make([]eventJSON, len(rows))
	said := make(map[uint64]*eventJSON, len(rows))
	tables := make(map[string][]row)
	for i := range rows {
		r := &rows[i]
		out[i] = r.json(p)
		said[r.Seq] = &out[i]
		if table := tableOf(r.Kind); table != "" && !r.Quarantined {
			tables[table] = append(tables[table], *r)
		}
		if r.Kind == contracts.KindWithdrawalsSettled.String() && !r.Quarantined {
			if err := out[i].settled(r); err != nil {
				return nil, err
			}
		}
	}
	asking := []func() error{
		func() error { return deposited(ctx, p, tables[sqlDeposits], said) },
		func() error { return requested(ctx, p, tables[sqlWithdrawals], said) },
		func() error { return valued(ctx, p, tables[sqlNavs], said) },
		func() error { return swept(ctx, p, tables[sqlSweeps], said) },
	}
	if mayBeGone {
		asking = append(asking, func() error { return takenBack(ctx, p, rows, said) })
	}
	return out, pin.Together(asking...)
}

// tableOf is the question to the table that has what logs of a kind say; empty for none.
func tableOf(kind string) string {
	switch kind {
	case contracts.KindDepositAccepted.String():
		return sqlDeposits
	case contracts.KindWithdrawalRequested.String(), contracts.KindWithdrawalFunded.String(), contracts.KindWithdrawalClaimed.String(),
		contracts.KindWithdrawalCancelled.String(), contracts.KindWithdrawalExpired.String():
		return sqlWithdrawals
	case contracts.KindNavUpdated.String():
		return sqlNavs
	case contracts.KindDepositsSwept.String():
		return sqlSweeps
	}
	return ""
}

// json is the event without what only the table of its kind has.
func (r *row) json(p *pin.Pin) eventJSON {
	address, name := p.Written(httpapi.ToAddress(r.Vault))
	tx := httpapi.ToHash(r.Tx)
	out := eventJSON{
		ID: httpapi.LogID(tx, r.LogIndex), Seq: httpapi.Decimal(r.Seq), Kind: r.Kind, VaultAddress: address, VaultName: name,
		BlockNumber: httpapi.Decimal(r.Block), Timestamp: httpapi.Time(uint64(r.Time)), TxHash: tx, LogIndex: r.LogIndex, State: live,
	}
	if user := httpapi.ToAddress(r.User); user != (common.Address{}) {
		written := user.Hex()
		out.UserAddress = &written
	}
	if r.Quarantined {
		out.State = quarantined
	}
	return out
}

// settled adds what a log of the kind WithdrawalsSettled says, which the spine alone has.
func (e *eventJSON) settled(r *row) error {
	var record event.Record
	if err := proto.Unmarshal([]byte(r.Payload), &record); err != nil {
		return fmt.Errorf("decode the payload of record %d: %w; rebuild the generation with `navlog projection rebuild`", r.Seq, err)
	}
	var topics []common.Hash
	for _, topic := range record.GetLog().GetTopics() {
		topics = append(topics, common.BytesToHash(topic))
	}
	decoded, err := contracts.Decode(topics, record.GetLog().GetData())
	s, ok := decoded.(contracts.WithdrawalsSettled)
	if err != nil || !ok {
		return fmt.Errorf("the payload of record %d is no settlement (%v): rebuild the generation with `navlog projection rebuild`", r.Seq, err)
	}
	e.Assets, e.Shares, e.NavPerShare = amount(s.Assets), amount(s.Shares), amount(s.NavPerShare)
	return nil
}

func deposited(ctx context.Context, p *pin.Pin, rows []row, said map[uint64]*eventJSON) error {
	return add(ctx, p, sqlDeposits, rows, func(d struct {
		Seq     uint64   `ch:"seq"`
		Number  uint64   `ch:"deposit_id"`
		Partner uint32   `ch:"partner"`
		Assets  *big.Int `ch:"assets"`
		Shares  *big.Int `ch:"shares"`
	}) {
		e := said[d.Seq]
		e.DepositID, e.PartnerID = number(d.Number), httpapi.PartnerOrAbsent(d.Partner)
		e.Assets, e.Shares = amount(d.Assets), amount(d.Shares)
	})
}

func requested(ctx context.Context, p *pin.Pin, rows []row, said map[uint64]*eventJSON) error {
	return add(ctx, p, sqlWithdrawals, rows, func(w struct {
		Seq     uint64   `ch:"seq"`
		Index   uint64   `ch:"request_index"`
		Partner uint32   `ch:"partner"`
		Assets  *big.Int `ch:"assets"`
		Shares  *big.Int `ch:"shares"`
	}) {
		e := said[w.Seq]
		e.RequestIndex, e.PartnerID, e.Shares = number(w.Index), httpapi.PartnerOrAbsent(w.Partner), amount(w.Shares)
		if e.Kind != contracts.KindWithdrawalCancelled.String() && e.Kind != contracts.KindWithdrawalExpired.String() { // these name none
			e.Assets = amount(w.Assets)
		}
	})
}

func valued(ctx context.Context, p *pin.Pin, rows []row, said map[uint64]*eventJSON) error {
	return add(ctx, p, sqlNavs, rows, func(n struct {
		Seq         uint64   `ch:"seq"`
		NavPerShare *big.Int `ch:"nav_per_share"`
		TotalAssets *big.Int `ch:"total_assets"`
		TotalSupply *big.Int `ch:"total_supply"`
	}) {
		e := said[n.Seq]
		e.NavPerShare, e.TotalAssets, e.TotalSupply = amount(n.NavPerShare), amount(n.TotalAssets), amount(n.TotalSupply)
	})
}

func swept(ctx context.Context, p *pin.Pin, rows []row, said map[uint64]*eventJSON) error {
	return add(ctx, p, sqlSweeps, rows, func(s struct {
		Seq    uint64   `ch:"seq"`
		From   uint64   `ch:"from_id"`
		To     uint64   `ch:"to_id"`
		Assets *big.Int `ch:"assets"`
	}) {
		e := said[s.Seq]
		e.FromID, e.ToID, e.Assets = number(s.From), number(s.To), amount(s.Assets)
	})
}

func takenBack(ctx context.Context, p *pin.Pin, rows []row, said map[uint64]*eventJSON) error {
	return add(ctx, p, sqlRetractions, rows, func(r struct {
		Seq      uint64 `ch:"seq"`
		Retracts uint64 `ch:"retracts"`
	}) {
		e := said[r.Retracts]
		e.State, e.RetractedBySeq = retracted, number(r.Seq)
	})
}

// add puts a question about some rows of the spine, and gives each row of the answer to see.
func add[T any](ctx context.Context, p *pin.Pin, question string, rows []row, see func(T)) error {
	if len(rows) == 0 {
		return nil
	}
	var blocks, seqs pin.Keys
	for i, r := range rows { // those of a block stand together
		if i == 0 || r.Block != rows[i-1].Block {
			blocks.Number(r.Block)
		}
		seqs.Number(r.Seq)
	}
	answer, err := pin.Ask[T](ctx, p, question, pin.Args{"blocks": &blocks, "seqs": &seqs})
	if err != nil {
		return err
	}
	for _, a := range answer {
		see(a)
	}
	return nil
}

func number(n uint64) *string { s := httpapi.Decimal(n); return &s }

func amount(n *big.Int) *string { s := n.String(); return &s }

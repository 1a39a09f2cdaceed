package explain

import (
	"context"
	_ "embed"
	"maps"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
)

// The questions around some logs, which stand in them as {logs}.
var (
	//go:embed page.sql
	sqlPage string
	//go:embed page_retracted.sql
	sqlPageRetracted string
	//go:embed total.sql
	sqlTotal string
	//go:embed before.sql
	sqlBefore string
)

var (
	//go:embed user.sql
	sqlUser string
	//go:embed deposits.sql
	sqlDeposits string
	//go:embed withdrawals.sql
	sqlWithdrawals string
	//go:embed navs.sql
	sqlNavs string
)

// logs are those that make one number at one state.
type logs struct {
	pin       *pin.Pin
	number    *number
	retracted bool // shown too
	args      pin.Args
}

// of are those in one vault.
func (l *logs) of(vault common.Address) *logs {
	out := *l
	out.args = maps.Clone(l.args)
	out.args["vault"] = vault
	return &out
}

// around is a question with the logs in it: the one place where a question is put together out of two.
func (l *logs) around(question string) string {
	return strings.Replace(question, "{logs}", l.number.logs, 1)
}

// total is what logs come to.
type total struct {
	Live      int64    `ch:"live"`
	Retracted int64    `ch:"retracted"`
	Sum       *big.Int `ch:"sum"`
}

func (l *logs) total(ctx context.Context) (total, error) {
	made, _, err := pin.AskOne[total](ctx, l.pin, l.around(sqlTotal), l.args)
	return made, err
}

// entry is one log as the questions give it.
type entry struct {
	Seq         uint64   `ch:"seq"`
	Block       uint64   `ch:"block"`
	LogIndex    uint32   `ch:"log_index"`
	Event       string   `ch:"event"`
	Vault       string   `ch:"vault"`
	ID          uint64   `ch:"id"`
	Change      *big.Int `ch:"change"`
	RetractedBy uint64   `ch:"retracted_by"`
}

// page gives some of the logs, oldest first, with the sum after each.
func (l *logs) page(ctx context.Context, page httpapi.Page) ([]eventJSON, error) {
	question := sqlPage
	if l.retracted {
		question = sqlPageRetracted
	}
	args := maps.Clone(l.args)
	args["limit"], args["offset"] = uint64(page.Size), page.Offset()
	rows, err := pin.Ask[entry](ctx, l.pin, l.around(question), args)
	if err != nil || len(rows) == 0 {
		return []eventJSON{}, err
	}
	running := new(big.Int)
	var circumstances map[uint64]circumstance
	err = pin.Together(
		func() (err error) { circumstances, err = l.circumstancesOf(ctx, rows); return },
		func() (err error) {
			if page.Number > 1 {
				running, err = l.before(ctx, &rows[0])
			}
			return err
		},
	)
	if err != nil {
		return nil, err
	}
	out := make([]eventJSON, len(rows))
	for i := range rows {
		if rows[i].RetractedBy > 0 {
			rows[i].Change = new(big.Int)
		}
		running.Add(running, rows[i].Change)
		out[i] = l.json(&rows[i], circumstances[rows[i].Seq], running)
	}
	return out, nil
}

// before is what the logs before one come to.
func (l *logs) before(ctx context.Context, e *entry) (*big.Int, error) {
	type row struct {
		Sum *big.Int `ch:"sum"`
	}
	args := maps.Clone(l.args)
	args["before_block"], args["before_log"], args["before_seq"] = e.Block, e.LogIndex, e.Seq
	r, _, err := pin.AskOne[row](ctx, l.pin, l.around(sqlBefore), args)
	return r.Sum, err
}

// circumstance is what only the row of a fact itself knows.
type circumstance struct {
	Seq  uint64 `ch:"seq"`
	User string `ch:"user"`
	Time uint32 `ch:"ts"`
	Tx   string `ch:"tx"`
}

// facts are the tables that logs stand in, by their kind, each as the question that reads
// some of them by their names.
var facts = map[string]*string{
	"DepositAccepted": &sqlDeposits, "WithdrawalRequested": &sqlWithdrawals, "WithdrawalClaimed": &sqlWithdrawals, "NavUpdated": &sqlNavs,
}

// circumstancesOf gives those of some logs, by their seq.
func (l *logs) circumstancesOf(ctx context.Context, rows []entry) (map[uint64]circumstance, error) {
	names, seqs := map[*string]*pin.Keys{}, make([]uint64, len(rows))
	for i, e := range rows {
		question := facts[e.Event]
		if names[question] == nil {
			names[question] = new(pin.Keys)
		}
		names[question].Numbered(httpapi.ToAddress(e.Vault), e.ID)
		seqs[i] = e.Seq
	}
	out := make(map[uint64]circumstance, len(rows))
	for question, keys := range names {
		found, err := pin.Ask[circumstance](ctx, l.pin, *question, pin.Args{"names": keys, "seqs": seqs})
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			out[c.Seq] = c
		}
	}
	return out, nil
}

func (l *logs) json(e *entry, c circumstance, sum *big.Int) eventJSON {
	tx := httpapi.ToHash(c.Tx)
	vault, _ := l.pin.Written(httpapi.ToAddress(e.Vault))
	out := eventJSON{
		ID: httpapi.LogID(tx, e.LogIndex), Seq: httpapi.Decimal(e.Seq), Kind: e.Event, VaultAddress: vault, BlockNumber: httpapi.Decimal(e.Block),
		Timestamp: httpapi.Time(uint64(c.Time)), TxHash: tx, LogIndex: e.LogIndex,
		Change: *l.number.written(e.Change), Sum: *l.number.written(sum), State: "live",
	}
	if user := httpapi.ToAddress(c.User); e.Event != "NavUpdated" {
		written := user.Hex()
		out.UserAddress = &written
	}
	if e.RetractedBy > 0 {
		seq := httpapi.Decimal(e.RetractedBy)
		out.State, out.RetractedBySeq = "retracted", &seq
	}
	return out
}

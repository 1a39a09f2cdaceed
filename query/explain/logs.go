package explain

import (
	"context"
	"embed"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/readmodel"
)

//go:embed *.sql
var files embed.FS

// sql reads a query and inserts the queries that it contains, which are given as name and text: {gone} stands for
// gone.sql.
func sql(name string, contained ...string) string {
	return strings.NewReplacer(contained...).Replace(state.SQL(files, name))
}

// oneLine returns a query without its comments on one line, so that a condition ("-- if") can be about all of it.
func oneLine(sql string) string {
	var lines []string
	for line := range strings.Lines(sql) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

// questions are the queries about the logs that one .sql file selects.
type questions struct {
	page, retracted *ask.Question[ofPage, entry]
	total           *ask.Question[ofLogs, total]
	before          *ask.Question[beforeLog, amount]
}

// around returns the queries about the logs that the query with a name selects. Only here are queries made from others.
func around(name string) *questions {
	gone := oneLine(sql("gone"))
	logs := sql(name, "{gone}", gone, "{void}", oneLine(sql("void", "{gone}", gone)))
	in := func(question string) string { return sql(question, "{logs}", logs) }
	return &questions{
		page: ask.New[ofPage, entry](in("page")), retracted: ask.New[ofPage, entry](in("page_retracted")),
		total: ask.New[ofLogs, total](in("total")), before: ask.New[beforeLog, amount](in("before")),
	}
}

// ofLogs selects logs, and the value of each that counts.
type ofLogs struct {
	User      common.Address `ask:"user,optional"`
	Vault     common.Address `ask:"vault,optional"` // zero: all
	Partner   uint32         `ask:"partner,optional"`
	Measure   ask.Word       `ask:"measure,optional"`
	Unfunded  bool           `ask:"unfunded,optional"`
	Retracted bool           `ask:"retracted,optional"` // includes retracted logs
	Voids     bool           `ask:"voids,optional"`     // some deposits may have become void
}

type ofPage struct {
	ofLogs
	Limit  uint64 `ask:"limit"`
	Offset uint64 `ask:"offset"`
}

type beforeLog struct {
	ofLogs
	Block    uint64 `ask:"before_block"`
	LogIndex uint32 `ask:"before_log"`
	Sub      uint8  `ask:"before_sub"`
	Seq      uint64 `ask:"before_seq"`
}

// logs are the logs that make a number in the state of a pin.
type logs struct {
	pin    *ask.Pin
	number *number
	args   ofLogs
}

type total struct {
	Live      int64  `ch:"live"`
	Retracted int64  `ch:"retracted"`
	Sum       string `ch:"amount"`
}

type amount struct {
	Sum string `ch:"amount"`
}

type entry struct {
	Seq         uint64         `ch:"seq"`
	Sub         uint8          `ch:"sub"`
	Block       uint64         `ch:"block"`
	LogIndex    uint32         `ch:"log_index"`
	Event       string         `ch:"name"`
	Vault       common.Address `ch:"vault"`
	User        common.Address `ch:"user"`
	Time        uint32         `ch:"ts"`
	Tx          common.Hash    `ch:"tx"`
	Change      string         `ch:"amount"`
	RetractedBy uint64         `ch:"retracted_by"`
}

// page returns a page of the logs, oldest first, with the sum after each.
func (l *logs) page(ctx context.Context, page serve.Page) ([]eventJSON, error) {
	question := l.number.logs.page
	if l.args.Retracted {
		question = l.number.logs.retracted
	}
	rows, err := question.Rows(ctx, l.pin, ofPage{l.args, uint64(page.Size), page.Offset()})
	if err != nil || len(rows) == 0 {
		return []eventJSON{}, err
	}
	running := new(big.Int)
	if page.Number > 1 {
		first := &rows[0]
		before, _, err := l.number.logs.before.One(ctx, l.pin,
			beforeLog{l.args, first.Block, first.LogIndex, first.Sub, first.Seq})
		if err != nil {
			return nil, err
		}
		running = ask.Number(before.Sum)
	}
	out := make([]eventJSON, len(rows))
	for i := range rows {
		change := ask.Number(rows[i].Change)
		if rows[i].RetractedBy > 0 {
			change = new(big.Int)
		}
		running.Add(running, change)
		out[i] = l.json(&rows[i], change, running)
	}
	return out, nil
}

// live is the state of an event that was not retracted.
const live = "live"

func (l *logs) json(e *entry, change, sum *big.Int) eventJSON {
	vault, _ := l.pin.Written(e.Vault)
	out := eventJSON{
		ID: serve.SampleID(vault, e.Block), Seq: serve.Decimal(e.Seq), Kind: e.Event, VaultAddress: vault,
		BlockNumber: serve.Decimal(e.Block),
		Timestamp:   serve.Time(uint64(e.Time)),
		Change:      *l.number.written(change), Sum: *l.number.written(sum), State: live,
	}
	if e.LogIndex != readmodel.SampleIndex {
		tx := e.Tx.Hex()
		out.ID, out.TxHash, out.LogIndex = serve.EffectID(tx, e.LogIndex, e.Sub), &tx, &e.LogIndex
	}
	if e.User != (common.Address{}) {
		out.UserAddress = new(e.User.Hex())
	}
	if e.RetractedBy > 0 {
		out.State, out.RetractedBySeq = "retracted", new(serve.Decimal(e.RetractedBy))
	}
	return out
}

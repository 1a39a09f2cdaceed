package fold

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/projections/oracle/oracletest"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

var (
	plays = flag.Int("histories", 2, "how many random histories TestEffects plays")
	seed  = flag.Uint64("seed", 1, "seed of the first random history; 0: by the clock")
)

// vaults are of four kinds. The first has groups that are priced and funded, and its requests are claimed first in,
// first out. The second has requests with 32-byte ids. The third has requests that are claimed first in, first out
// and never funded. The fourth has groups of one request, and all its effects name only the request.
var vaults = []common.Address{common.HexToAddress("0xa1"), common.HexToAddress("0xa2"), common.HexToAddress("0xa3"),
	common.HexToAddress("0xa4")}

// owners are the users. The zero address is one too: a vault may have requests and deposits of it.
var owners = []common.Address{common.HexToAddress("0xb1"), common.HexToAddress("0xb2"), {}}

// chain generates facts with random effects, in units: blocks and reorganisations.
type chain struct {
	rng    *rand.Rand
	seq    uint64
	blocks [][]decode.Fact // live facts by block
	forks  byte
}

func (c *chain) number(n int) uint64 { return c.rng.Uint64N(uint64(n)) }

func (c *chain) amount(n int) (a readmodel.Amount) {
	if c.rng.IntN(12) == 0 { // a large one
		a.SetUint64(1 + c.number(n))
		a.Lsh(&a, uint(c.rng.IntN(180)))
		return a
	}
	a.SetUint64(c.number(n))
	return a
}

// effect returns a random effect that the vault can have. key is unique.
func (c *chain) effect(vault common.Address, key uint64) mapping.Effect {
	const owner, shares, assets = mapping.Owner, mapping.Shares, mapping.Assets
	e := mapping.Effect{Owner: owners[c.number(3)], Assets: c.amount(50), Shares: c.amount(50)}
	is := func(kind mapping.Kind, has mapping.Fields) {
		e.Kind, e.Has = kind, has
		for _, f := range []struct {
			field mapping.Fields
			clear func()
		}{{owner, func() { e.Owner = common.Address{} }}, {assets, func() { e.Assets = readmodel.Amount{} }},
			{shares, func() { e.Shares = readmodel.Amount{} }}} {
			if has&f.field == 0 {
				f.clear()
			}
		}
	}
	group := c.number(6)
	switch vault {
	case vaults[0]:
		switch c.rng.IntN(12) {
		case 0, 1:
			is(mapping.Deposit, mapping.ID|owner|assets|mapping.Group)
			e.ID, e.Group, e.Partner = key, group, uint32(c.number(2))
		case 2:
			is(mapping.Void, owner|mapping.Group)
			e.Group = group
		case 3:
			is(mapping.Void, mapping.ID)
			e.ID = c.number(int(key) + 1)
		case 4:
			is(mapping.Priced, mapping.SideField|mapping.GroupTo|assets|shares)
			e.Side, e.GroupTo = mapping.Side(1+c.number(2)), group
		case 5:
			is(mapping.Priced, mapping.SideField|mapping.Group|mapping.GroupTo|assets|shares)
			e.Side, e.Group, e.GroupTo = mapping.Side(1+c.number(2)), group, group+c.number(2)
		case 6, 7, 8:
			is(mapping.Requested, mapping.ID|owner|shares|mapping.Group|mapping.Fifo)
			e.ID, e.Group = key, group
			e.Shares.AddUint64(&e.Shares, 1)
		case 9:
			is(mapping.Funded, mapping.GroupTo)
			if e.GroupTo = group; c.rng.IntN(4) == 0 {
				is(mapping.Funded, mapping.ID|assets)
				e.ID = c.number(int(key) + 1)
			}
		case 10:
			is(mapping.Claimed, owner|assets|shares)
		case 11:
			is(mapping.Cancelled, owner|mapping.Group)
			e.Group = group
		}
	case vaults[1]:
		source := common.Hash{0: byte(c.number(2)) << 7, 31: byte(1 + c.number(20))}
		switch c.rng.IntN(12) {
		case 0, 1:
			is(mapping.Requested, mapping.ID|owner|shares|assets|mapping.SourceID|mapping.Matures)
			e.ID, e.SourceID, e.Matures, e.Partner = key, source, 7, uint32(c.number(2))
		case 2:
			is(mapping.Funded, mapping.SourceID)
			e.SourceID = source
		case 3:
			is([]mapping.Kind{mapping.Cancelled, mapping.Expired}[c.number(2)], mapping.SourceID)
			e.SourceID = source
		case 4:
			is(mapping.Claimed, mapping.SourceID|owner)
			if e.SourceID = source; c.rng.IntN(3) == 0 {
				e.Has, e.SourceID, e.ID = mapping.ID|owner, common.Hash{}, c.number(int(key)+1)
			}
			if c.rng.IntN(2) == 0 { // the owner of the request
				e.Has, e.Owner = e.Has&^owner, common.Address{}
			}
		case 5:
			is(mapping.Instant, owner|assets|shares)
		case 6, 10, 11:
			is(mapping.Supply, shares)
			switch c.rng.IntN(4) {
			case 0, 1: // the sum of two is no valid amount
				e.Shares.SetFromBig(new(big.Int).Sub(readmodel.MaxAmount, big.NewInt(1)))
			case 2:
				e.Shares.Neg(&e.Shares)
			}
		case 7:
			is(mapping.Valuation, []mapping.Fields{assets, assets | shares}[c.number(2)])
			if c.rng.IntN(3) == 0 {
				is(mapping.Valuation, mapping.Nav|[]mapping.Fields{0, assets, shares}[c.number(3)])
				e.Nav = c.amount(1e18)
			}
			e.NavDigits = uint8(18 + 12*c.number(2))
		case 8:
			is(mapping.Deposit, mapping.ID|owner|assets|shares)
			e.ID = key
		case 9: // many reach no further than an earlier one
			is(mapping.Sweep, mapping.To|assets)
			e.To = c.number(int(key) + 1)
		}
	case vaults[3]:
		id := c.number(int(min(key/64, 30))) // few numbers, so that each gets many effects
		switch c.rng.IntN(8) {
		case 0, 1, 2, 3:
			is(mapping.Requested, mapping.ID|owner|shares|mapping.Group)
			e.ID, e.Group = id, id
		case 4:
			is(mapping.Priced, mapping.SideField|mapping.Group|assets|shares)
			e.Side, e.Group = mapping.RedeemSide, id
		case 5:
			is(mapping.Funded, mapping.ID|[]mapping.Fields{0, assets}[c.number(2)])
			e.ID = id
		case 6:
			is(mapping.Claimed, mapping.ID|[]mapping.Fields{0, assets}[c.number(2)])
			e.ID = id
		case 7:
			is(mapping.Cancelled, mapping.ID)
			e.ID = id
		}
	default:
		switch c.rng.IntN(4) {
		case 3:
			is(mapping.Cancelled, owner|shares)
		case 0, 1:
			is(mapping.Requested, mapping.ID|owner|shares|mapping.Fifo|mapping.Unfunded)
			e.ID = key
			e.Shares.AddUint64(&e.Shares, 1)
		case 2:
			is(mapping.Claimed, owner|assets|shares)
		}
	}
	return e
}

// mine adds a block of random logs. Some have several effects.
func (c *chain) mine() (facts []decode.Fact) {
	block := uint64(len(c.blocks)) + 1
	at := decode.Log{Block: block, Time: uint32(block/2) + uint32(c.forks)} // some blocks have the time of their parent
	hash := common.Hash{0: c.forks, 31: byte(block)}
	for i := range c.rng.IntN(7) {
		vault := vaults[c.number(len(vaults))]
		l := at
		l.Vault, l.Index, l.Tx = vault, uint32(i), common.Hash{0: c.forks, 1: byte(i), 31: byte(block)}
		f := decode.Fact{Sign: 1, Kind: readmodel.LogRecord, Log: l, Hash: hash}
		for j := range 1 + c.rng.IntN(2)*c.rng.IntN(3) {
			f.Effects = append(f.Effects, c.effect(vault, block*64+uint64(i)*8+uint64(j)))
		}
		if vault == vaults[1] && c.rng.IntN(2) == 0 { // one log values the vault twice and sweeps it
			twice := mapping.Effect{Kind: mapping.Valuation, Has: mapping.Assets | mapping.Shares, Assets: c.amount(50),
				Shares: c.amount(50), NavDigits: 18}
			f.Effects = []mapping.Effect{twice, twice, {Kind: mapping.Sweep, Has: mapping.To, To: c.number(int(block) * 64)}}
			f.Effects[1].Assets.AddUint64(&twice.Assets, 1)
		}
		if vault == vaults[0] && c.rng.IntN(6) == 0 { // one log deposits and withdraws before the price
			lost := mapping.Effect{Kind: mapping.Deposit, Has: mapping.ID | mapping.Owner | mapping.Assets | mapping.Group,
				ID: block*64 + uint64(i)*8, Owner: owners[c.number(3)], Assets: c.amount(50), Group: c.number(6),
				Partner: uint32(c.number(2))}
			f.Effects = []mapping.Effect{lost, {Kind: mapping.Void, Has: mapping.ID, ID: lost.ID}}
		}
		if vault == vaults[3] && c.rng.IntN(3) == 0 { // one log prices, funds and pays a request, which it may also make
			id, n := c.number(int(min(block, 30))), c.amount(50)
			f.Effects = nil
			if c.rng.IntN(2) == 0 {
				id = 31 + block
				f.Effects = append(f.Effects,
					mapping.Effect{Kind: mapping.Requested, Has: mapping.ID | mapping.Owner | mapping.Shares | mapping.Group,
						ID: id, Group: id, Owner: owners[c.number(3)], Shares: c.amount(50)})
			}
			f.Effects = append(f.Effects,
				mapping.Effect{Kind: mapping.Priced, Has: mapping.SideField | mapping.Group | mapping.Assets | mapping.Shares,
					Side: mapping.RedeemSide, Group: id, Assets: n, Shares: c.amount(50)},
				mapping.Effect{Kind: mapping.Funded, Has: mapping.ID, ID: id},
				mapping.Effect{Kind: mapping.Claimed, Has: mapping.ID, ID: id})
		}
		facts = append(facts, f)
	}
	if c.rng.IntN(3) == 0 { // after all logs of its block
		l := at
		l.Vault, l.Index = vaults[1], readmodel.SampleIndex
		measured := mapping.Effect{Kind: mapping.Sample, Has: mapping.Nav, Nav: c.amount(1e18),
			NavDigits: uint8(18 + 12*c.number(2))}
		facts = append(facts, decode.Fact{Sign: 1, Kind: readmodel.SampleRecord, Log: l, Hash: hash,
			Effects: []mapping.Effect{measured}})
	}
	facts = append(facts, decode.Fact{Sign: 1, Kind: readmodel.BlockRecord, Log: at, Hash: hash})
	for i := range facts {
		c.seq++
		facts[i].Seq = c.seq
	}
	c.blocks = append(c.blocks, facts)
	return facts
}

// unit returns a block, or a reorganisation that retracts some blocks, newest first, and adds others.
func (c *chain) unit() (facts []decode.Fact) {
	blocks := 1
	if n := len(c.blocks); n > 3 && c.rng.IntN(5) == 0 {
		c.forks++
		deep := 1 + c.rng.IntN(min(n, 8))
		for range deep {
			last := c.blocks[len(c.blocks)-1]
			c.blocks = c.blocks[:len(c.blocks)-1]
			for _, f := range slices.Backward(last) {
				c.seq++
				f.Seq, f.Retracts, f.Sign, f.Boundary = c.seq, f.Seq, -1, false
				facts = append(facts, f)
			}
		}
		blocks = c.rng.IntN(deep + 2)
	}
	for range blocks {
		facts = append(facts, c.mine()...)
	}
	facts[len(facts)-1].Boundary = true
	return facts
}

var generations atomic.Int64

// oracle returns the rows that the plain fold of the live logs expects, in the format of lines.
func (c *chain) oracle() (out []string) {
	var logs []oracle.Log
	for _, block := range c.blocks {
		for _, f := range block {
			for i, e := range f.Effects {
				logs = append(logs, oracle.Log{Seq: f.Seq, Vault: f.Log.Vault, Block: f.Log.Block, Time: uint64(f.Log.Time),
					Tx: f.Log.Tx, Index: f.Log.Index, Sub: uint8(i), Effect: e})
			}
		}
	}
	for _, row := range oracle.OfLogs(logs) {
		out = append(out, readmodel.ListsTable.Line(&row, "sign", "writer"))
	}
	return out
}

// generation creates a database with the two tables.
func generation(t *testing.T) (conn, session driver.Conn) {
	t.Helper()
	config := readmodel.DefaultConfig()
	config.Addr, config.Prefix = enginetest.ClickHouse(t), fmt.Sprintf("effects%d_%d", os.Getpid(), generations.Add(1))
	server, err := config.OpenPatient("")
	must(t, err)
	database := config.Database(1)
	draft := readmodel.ListsTable.DDL(database + ".draft")
	for _, sql := range []string{"DROP DATABASE IF EXISTS " + database, "CREATE DATABASE " + database + " ENGINE = Atomic",
		readmodel.EventsTable.DDL(database + ".events"), readmodel.ListsTable.DDL(database + ".lists"), draft} {
		must(t, server.Exec(t.Context(), sql))
	}
	conn, err = config.OpenPatient(database)
	must(t, err)
	session, err = config.OpenSession(database)
	must(t, err)
	must(t, config.CreateViews(t.Context(), server, database))
	t.Cleanup(func() {
		conn.Close()
		session.Close()
		must(t, server.Exec(context.Background(), "DROP DATABASE "+database))
		server.Close()
	})
	return conn, session
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func send[T any](t *testing.T, conn driver.Conn, table *readmodel.Table[T], rows *readmodel.Rows[T]) {
	t.Helper()
	batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO "+table.Name+" ("+table.Names()+")")
	must(t, err)
	must(t, rows.Fill(batch.Columns()))
	must(t, batch.Send())
}

// listed returns the live rows of lists, and those of draft, which has no others.
func listed(t *testing.T, conn driver.Conn) (lists, draft []string) {
	t.Helper()
	draft = oracletest.Lines(t, conn, "SELECT "+readmodel.ListsTable.LineSQL("sign", "writer")+" FROM draft", nil)
	return slices.Collect(maps.Keys(oracletest.Live(t, conn))), draft
}

// withdrawals returns the rows of the view of withdrawals for which a condition is true.
func withdrawals(t *testing.T, conn driver.Conn, condition string) []string {
	t.Helper()
	return oracletest.Lines(t, conn,
		"SELECT concatWithSeparator(' ', event, toString(block), toString(log_index), vault, user, "+
			"toString(shares), toString(assets)) FROM withdrawal_events WHERE "+condition, nil)
}

// TestBusyUser: the running totals of users need little memory although one user, such as a contract that deposits for
// others, has most deposits of a vault, and they continue from one bucket of blocks to the next. Without buckets, these
// deposits needed more than 60 MB.
func TestBusyUser(t *testing.T) {
	t.Parallel()
	conn, session := generation(t)
	const deposits, each = 400_000, 30 // in all, and in each block
	must(t, session.Exec(t.Context(),
		fmt.Sprintf(`INSERT INTO events (seq, sign, record, effect, effects, boundary, block, ts, vault, user,
		id, shares, assets, log_index) SELECT number + 1, 1, 'log', 'deposit', 1, number %% %[2]d = %[2]d - 1, intDiv(number, %[2]d) + 1,
		intDiv(number, %[2]d) + 1, %[3]s, if(number %% 1000 = 7, %[4]s, %[5]s), number + 1, 1, number, number %% %[2]d FROM numbers(%[1]d)`,
			deposits, each, quoted(vaults[1]), quoted(owners[0]), quoted(owners[1]))))
	must(t, readmodel.Derive(t.Context(), session, deposits))
	var totals string
	for _, d := range readmodel.Definitions {
		if d.Name == "user_totals" {
			totals = d.SQL()
		}
	}
	line := "SELECT concatWithSeparator(' ', hex(%s), toString(block), toString(ts), toString(%s), toString(%s), " +
		"toString(%s), toString(%s)) "
	want := oracletest.Lines(t, conn,
		fmt.Sprintf(line, "user", "until", "if(until = {never:UInt64}, 0, until)", "deposits", "assets")+`FROM (
		SELECT user, block, ts, sum(n) OVER so_far AS deposits, sum(a) OVER so_far AS assets,
			leadInFrame(block, 1, {never:UInt64}) OVER (PARTITION BY user ORDER BY block ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS until
		FROM (SELECT user, block, any(ts) AS ts, count() AS n, sum(assets) AS a FROM events GROUP BY user, block)
		WINDOW so_far AS (PARTITION BY user ORDER BY block ROWS UNBOUNDED PRECEDING))`, nil)
	got := oracletest.Lines(t, session,
		fmt.Sprintf(line, "owner", "key", "closed_ts", "deposits", "deposited")+"FROM (\n"+totals+
			") SETTINGS max_memory_usage = 60000000", nil)
	oracletest.Same(t, "running totals of users", got, want)
}

// TestBusyOwner: the line of an owner with many requests and claims needs little memory, and continues from one bucket
// to the next. In one window, it needed more than these 400 MB.
func TestBusyOwner(t *testing.T) {
	t.Parallel()
	conn, session := generation(t)
	// in all, and in each block; every tenth is a request, and on average they equal the claims
	const rows, each = 200_000, 30
	must(t, session.Exec(t.Context(),
		fmt.Sprintf(`INSERT INTO events (seq, sign, record, effect, effects, boundary, block, ts, vault, user,
		id, shares, log_index, by) SELECT number + 1, 1, 'log', if(number %% 10 = 0, 'requested', 'claimed'), 1, number %% %[2]d = %[2]d - 1,
		intDiv(number, %[2]d) + 1, intDiv(number, %[2]d) + 1, %[3]s, %[4]s, number + 1,
		if(number %% 10 = 0, 1 + cityHash64(number) %% 1800, cityHash64(number) %% 200), number %% %[2]d,
		if(number %% 10 = 0, 'fifo_unfunded', 'owner') FROM numbers(%[1]d)`, rows, each, quoted(vaults[2]),
			quoted(owners[0]))))
	type request struct{ id, cumTo, closed uint64 }
	var requests []request
	var funded, taken, exceeding uint64
	oldest := 0 // of the open requests
	events, err := conn.Query(t.Context(),
		"SELECT seq, block, effect = 'claimed', toUInt64(shares) FROM events ORDER BY seq")
	must(t, err)
	for events.Next() {
		var seq, block, shares uint64
		var claim uint8
		must(t, events.Scan(&seq, &block, &claim, &shares))
		if claim == 0 {
			funded += shares
			requests = append(requests, request{seq, funded, never})
			continue
		}
		if taken+shares > funded {
			exceeding++
		}
		taken = min(taken+shares, funded)
		for ; oldest < len(requests) && requests[oldest].cumTo <= taken; oldest++ {
			requests[oldest].closed = block
		}
	}
	must(t, events.Err())
	if exceeding == 0 || oldest < len(requests)/2 || oldest == len(requests) {
		t.Errorf("%d claims exceed the funded shares, and %d of %d requests are closed, so the test is incomplete",
			exceeding, oldest, len(requests))
	}
	var want []string
	for _, q := range requests {
		want = append(want, fmt.Sprint(q.id, " ", q.cumTo, " ", q.closed))
	}
	limited := clickhouse.Context(t.Context(),
		clickhouse.WithSettings(clickhouse.Settings{"max_memory_usage": 400_000_000}))
	must(t, readmodel.Derive(limited, session, rows))
	oracletest.Same(t, "requests", oracletest.Lines(t, session,
		"SELECT concatWithSeparator(' ', toString(id), toString(cum_to), toString(closed_block)) FROM request", nil), want)
	var claimed, claims, amounts uint64
	must(t, session.QueryRow(t.Context(),
		"SELECT toUInt64(max(amount)), count(), uniqExact(amount) FROM change WHERE what = 9").
		Scan(&claimed, &claims, &amounts))
	if claimed != taken || claims != amounts {
		t.Errorf("%d shares are claimed, want %d; %d claims raise the sum, to %d amounts", claimed, taken, claims, amounts)
	}
}

// TestLongLine: of an owner's line, a unit reads only the requests that its claims can reach, and a reorganisation also
// those that the retracted claims had reached.
func TestLongLine(t *testing.T) {
	t.Parallel()
	conn, _ := generation(t)
	var cursor readmodel.ListsCursor
	var seq uint64
	unit := func(facts ...decode.Fact) *Change {
		t.Helper()
		for i := range facts {
			seq++
			facts[i].Seq, facts[i].Kind, facts[i].Boundary = seq, readmodel.LogRecord, i == len(facts)-1
		}
		change, err := Lists(t.Context(), conn, cursor, decode.Batch{facts}.Units(), 1, vaults)
		must(t, err)
		rows := readmodel.ListsTable.NewRows()
		change.Rows(rows)
		send(t, conn, readmodel.ListsTable, rows)
		cursor = change.Cursor
		return change
	}
	effect := func(kind mapping.Kind, has mapping.Fields, block, id, shares uint64) decode.Fact {
		e := mapping.Effect{Kind: kind, Has: has | mapping.Owner | mapping.Shares, ID: id, Owner: owners[0]}
		e.Shares.SetUint64(shares)
		return decode.Fact{Sign: 1, Log: decode.Log{Vault: vaults[2], Block: block, Index: uint32(id)},
			Effects: []mapping.Effect{e}}
	}
	requested := func(c *Change) (n int) {
		for k := range c.entries {
			if k == requestKey(k.vault, k.id) {
				n++
			}
		}
		return n
	}
	var requests []decode.Fact
	for id := range uint64(1000) {
		requests = append(requests, effect(mapping.Requested, mapping.ID|mapping.Fifo|mapping.Unfunded, 1, id, 1))
	}
	unit(requests...)
	claim := effect(mapping.Claimed, mapping.Assets, 2, 0, 5)
	read := requested(unit(claim))
	gone := claim
	gone.Sign = -1
	again := unit(gone, effect(mapping.Claimed, mapping.Assets, 2, 0, 3))
	if read != 5 || requested(again) != 8 {
		t.Errorf("a claim of 5 shares reads %d requests, and its replacement by one of 3 reads %d", read,
			requested(again))
	}
	open := oracletest.Lines(t, conn,
		"SELECT toString(count()) FROM lists FINAL WHERE list = 'fifo' AND closed_block = {never:UInt64}", nil)
	oracletest.Same(t, "open requests", open, []string{"997"})
}

// sumsOfViews compares the sums of the views with the totals of lists.
func sumsOfViews(t *testing.T, conn driver.Conn) {
	t.Helper()
	line := "SELECT concatWithSeparator(' ', %s) FROM "
	totals := "concat('0x', lower(hex(scope))), toString(deposits), toString(deposited)"
	newest := "lists FINAL WHERE list = 'totals' AND key = {never:UInt64} AND deposits > 0 AND owner "
	for _, c := range []struct{ what, got, want string }{
		{"deposits by vault", fmt.Sprintf(line,
			"vault, toString(count()), toString(sum(assets))") + "deposits GROUP BY vault",
			fmt.Sprintf(line, totals) + newest + "= scope"},
		{"deposits by partner and vault",
			fmt.Sprintf(line, "toString(partner), vault, toString(count()), toString(sum(assets))") +
				"deposits WHERE partner > 0 GROUP BY partner, vault",
			fmt.Sprintf(line, "toString(reinterpretAsUInt32(reverse(owner))), "+totals) + newest + "!= scope"},
		{"withdrawals by user", fmt.Sprintf(line, "user, toString(sum(assets))") +
			"withdrawal_events WHERE event IN ('claimed', 'instant') GROUP BY user",
			fmt.Sprintf(line, "user, toString(withdrawn)") + "users"},
	} {
		want := oracletest.Lines(t, conn, c.want, nil)
		if len(want) == 0 {
			t.Errorf("no %s, so the test is incomplete", c.what)
		}
		oracletest.Same(t, c.what, oracletest.Lines(t, conn, c.got, nil), want)
	}
}

// TestEffects: after random effects of every kind, in units with reorganisations, the lists equal their definitions in
// SQL and the oracle, and every list has rows. The view of withdrawals has the payments of lists, and does not change
// before lists does. The sums of the views of deposits and withdrawals are the totals of lists.
func TestEffects(t *testing.T) {
	t.Parallel()
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	count := *plays
	if testing.Short() {
		count = min(count, 1)
	}
	for i := range uint64(count) {
		t.Run(fmt.Sprintf("seed=%d", first+i), func(t *testing.T) {
			c := &chain{rng: rand.New(rand.NewPCG(first+i, 7))}
			conn, session := generation(t)
			var cursor readmodel.ListsCursor
			seen := map[string]int{}
			for round := range 90 {
				batch := decode.Batch{c.unit()}
				if round%7 == 0 && !batch.Units()[0].Rewrites {
					more := slices.Clone(c.mine()) // two units at once
					more[len(more)-1].Boundary = true
					batch = append(batch, more)
				}
				events := readmodel.EventsTable.NewRows()
				for f := range batch.All() {
					Events(f, 1, func(row *readmodel.EventRow) { events.Add(row); seen["effect "+row.Effect.String()]++ })
				}
				if round%5 == 4 {
					before := withdrawals(t, conn, "1")
					send(t, conn, readmodel.EventsTable, events)
					oracletest.Same(t, "the view of withdrawals while events is ahead of lists", withdrawals(t, conn, "1"), before)
				} else {
					send(t, conn, readmodel.EventsTable, events)
				}
				change, err := Lists(t.Context(), conn, cursor, batch.Units(), 1, vaults)
				must(t, err)
				rows := readmodel.ListsTable.NewRows()
				change.Rows(rows)
				send(t, conn, readmodel.ListsTable, rows)
				cursor = change.Cursor
				if round%45 != 44 {
					continue
				}
				must(t, readmodel.BuildLists(t.Context(), session, "draft", c.seq, 1))
				got, want := listed(t, conn)
				for _, line := range want {
					seen["list "+strings.Fields(line)[0]]++
				}
				oracletest.Same(t, fmt.Sprintf("lists at seq %d, by their definitions", c.seq), got, want)
				got = slices.DeleteFunc(got, func(line string) bool { // not computed by the oracle
					return strings.HasPrefix(line, "blocks ") || strings.HasPrefix(line, "cursor")
				})
				oracletest.Same(t, fmt.Sprintf("lists at seq %d, by the oracle", c.seq), got, c.oracle())
				paid := withdrawals(t, conn, "event IN ('claimed', 'instant')")
				oracletest.Same(t, "payments in the view of withdrawals", paid, oracletest.Lines(t, conn,
					"SELECT concatWithSeparator(' ', toString(kind), toString(block), toString(log_index), concat('0x', "+
						"lower(hex(vault))), concat('0x', lower(hex(user))), toString(shares), toString(assets)) FROM draft "+
						"WHERE list = 'user_events' AND kind IN ('claimed', 'instant')", nil))
				sumsOfViews(t, conn)
			}
			for kind := readmodel.Deposit; kind <= readmodel.Instant; kind++ {
				if kind != readmodel.Settled && seen["effect "+kind.String()] == 0 {
					t.Errorf("no effect %s, so the test is incomplete", kind)
				}
			}
			var paid uint64
			must(t, conn.QueryRow(t.Context(),
				"SELECT count() FROM draft WHERE list = 'user_events' AND kind = 'claimed' AND vault = "+
					quoted(vaults[3])+" AND user != toFixedString('', 20) AND assets > 0").Scan(&paid))
			if paid == 0 {
				t.Error("no claim pays the owner of a request that it names, so the test is incomplete")
			}
			var void uint64
			must(t, conn.QueryRow(t.Context(),
				"SELECT count() FROM draft WHERE list = 'vault_events' AND closed_by = 'void' AND partner > 0").Scan(&void))
			if void == 0 {
				t.Error("no deposit of a partner is void, so the test is incomplete")
			}
			var over, wrong uint64
			must(t, conn.QueryRow(t.Context(), "SELECT countIf(valuations > 0 AND supply >= limit), countIf(shares >= limit) "+
				"FROM (SELECT *, toInt256('"+readmodel.MaxAmount.String()+
				"') AS limit FROM draft WHERE list = 'totals')").Scan(&over, &wrong))
			if over == 0 || wrong > 0 {
				t.Errorf("%d totals have a supply above all valid amounts, so the test is incomplete if none; %d valuations use "+
					"one", over, wrong)
			}
			for _, list := range []string{"groups", "request_sources", "fifo"} {
				if seen["list "+list] == 0 {
					t.Errorf("the list %s is empty, so the test is incomplete", list)
				}
			}
		})
	}
}

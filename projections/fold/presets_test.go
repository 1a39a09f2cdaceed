package fold

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/projections/oracle/oracletest"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

// world is the vault of a preset on a development chain, and the indexed part of the chain.
type world struct {
	t       *testing.T
	play    *devchain.Play
	node    *ethclient.Client
	roles   map[common.Address]uint8
	mapping *mapping.Vault
	conn    driver.Conn
	vault   common.Address

	blocks [][]decode.Fact // live facts by block, from block 1 on
	hashes []common.Hash
	seq    uint64
	cursor readmodel.ListsCursor
	events map[string]int // number of effects by event
}

// facts returns the facts of a block of the chain.
func (w *world) facts(number uint64) (facts []decode.Fact, hash common.Hash) {
	header, err := w.node.HeaderByNumber(w.t.Context(), new(big.Int).SetUint64(number))
	must(w.t, err)
	hash = header.Hash()
	logs, err := w.node.FilterLogs(w.t.Context(), ethereum.FilterQuery{BlockHash: &hash})
	must(w.t, err)
	at := decode.Log{Vault: w.vault, Block: number, Time: uint32(header.Time)}
	var tx []mapping.Log
	var of []decode.Fact
	whole := func() {
		effects, err := w.mapping.Map(tx, nil)
		must(w.t, err)
		for _, e := range effects {
			of[e.Log].Effects = append(of[e.Log].Effects, e)
		}
		facts = append(facts, of...)
		tx, of = nil, nil
	}
	for _, l := range logs {
		role, ours := w.roles[l.Address]
		if !ours {
			continue
		}
		if len(of) > 0 && of[0].Log.Tx != l.TxHash {
			whole()
		}
		log := mapping.Log{Role: role, Place: mapping.Place(number, uint32(l.Index)), Time: header.Time, Topics: l.Topics,
			Data: l.Data}
		event := w.mapping.Event(&log)
		if event == nil {
			w.t.Fatalf("the preset has no event for the log %+v", l)
		}
		w.events[event.Name]++
		f := decode.Fact{Sign: 1, Kind: readmodel.LogRecord, Log: at, Hash: hash}
		f.Log.Tx, f.Log.Index = l.TxHash, uint32(l.Index)
		tx, of = append(tx, log), append(of, f)
	}
	whole()
	return append(facts, decode.Fact{Sign: 1, Kind: readmodel.BlockRecord, Log: at, Hash: hash}), hash
}

// follow indexes the new blocks of the chain, and first retracts those that were reorganised.
func (w *world) follow() {
	head, err := w.node.BlockNumber(w.t.Context())
	must(w.t, err)
	var unit []decode.Fact
	for n := len(w.blocks); n > 0; n-- {
		if uint64(n) <= head {
			header, err := w.node.HeaderByNumber(w.t.Context(), big.NewInt(int64(n)))
			must(w.t, err)
			if header.Hash() == w.hashes[n-1] {
				break
			}
		}
		for _, f := range slices.Backward(w.blocks[n-1]) {
			w.seq++
			f.Seq, f.Retracts, f.Sign, f.Boundary = w.seq, f.Seq, -1, false
			unit = append(unit, f)
		}
		w.blocks, w.hashes = w.blocks[:n-1], w.hashes[:n-1]
	}
	reorganised := len(unit) > 0
	for n := uint64(len(w.blocks)) + 1; n <= head; n++ {
		facts, hash := w.facts(n)
		for i := range facts {
			w.seq++
			facts[i].Seq = w.seq
		}
		w.blocks, w.hashes = append(w.blocks, facts), append(w.hashes, hash)
		if unit = append(unit, facts...); !reorganised {
			w.write(unit)
			unit = nil
		}
	}
	if len(unit) > 0 {
		w.write(unit)
	}
}

func (w *world) write(unit []decode.Fact) {
	unit = slices.Clone(unit)
	unit[len(unit)-1].Boundary = true
	batch := decode.Batch{unit}
	events := readmodel.EventsTable.NewRows()
	for f := range batch.All() {
		Events(f, 1, events.Add)
	}
	send(w.t, w.conn, readmodel.EventsTable, events)
	change, err := Lists(w.t.Context(), w.conn, w.cursor,
		batch.Units(), 1, []common.Address{w.vault})
	must(w.t, err)
	if len(change.Impossible) > 0 {
		w.t.Errorf("the contracts emitted impossible events: %q", change.Impossible)
	}
	rows := readmodel.ListsTable.NewRows()
	change.Rows(rows)
	send(w.t, w.conn, readmodel.ListsTable, rows)
	w.cursor = change.Cursor
}

// sum is a sum over live rows of lists.
func (w *world) sum(what, where string) *big.Int {
	var sum big.Int
	must(w.t, w.conn.QueryRow(w.t.Context(), "SELECT toInt256(sum(sign * ("+what+"))) FROM lists WHERE "+where).Scan(&sum))
	return &sum
}

const open = "key = 18446744073709551615"

// of returns a user's value in a list.
func (w *world) of(user common.Address, list, what string) *big.Int {
	return w.sum(what, fmt.Sprintf("list = '%s' AND owner = %s AND scope = %s AND %s", list, quoted(user), quoted(w.vault),
		open))
}

// inLine returns the funded and unclaimed shares of a user's requests.
func (w *world) inLine(user common.Address) *big.Int {
	return w.of(user, "user_totals", "funded_shares - claimed_shares")
}

// agree compares the lists with the contracts' own views.
func (w *world) agree() {
	ctx := w.t.Context()
	same := func(what string, got, want *big.Int) {
		if got.Cmp(want) != 0 {
			w.t.Errorf("%s is %s, and the contract returns %s", what, got, want)
		}
	}
	number := func(method string, of common.Address) *big.Int {
		n, err := w.play.Number(ctx, method, of)
		must(w.t, err)
		return n
	}
	supply, err := w.play.Supply(ctx)
	must(w.t, err)
	same("the supply", w.sum("supply", fmt.Sprintf("list = 'totals' AND owner = %s AND %s", quoted(w.vault), open)),
		supply)
	queued := w.sum("shares", "list = 'queue' AND "+open)
	switch w.play.Preset {
	case "veda":
		same("what is queued", queued, number("balanceOf", w.play.Sources["queue"]))
	case "erc4626":
		same("what is queued", queued, new(big.Int))
	}
	for _, u := range w.play.Users() {
		switch w.play.Preset {
		case "lagoon-v0.6":
			same("the pending deposits", w.of(u, "groups", "if(kind = 'deposit', assets, 0)"),
				number("pendingDepositRequest", u))
			same("the pending redemptions", w.of(u, "groups", "if(kind = 'requested', shares, 0)"),
				number("pendingRedeemRequest", u))
			same("what can be claimed", w.inLine(u), number("claimableRedeemRequest", u))
		case "yo":
			same("what is owed", w.inLine(u), number("owedShares", u))
			same("what was paid", w.of(u, "user_totals", "claimed"), number("paid", u))
		case "veda":
			same("what was deposited", w.of(u, "user_totals", "deposited"), number("entered", u))
		case "midas":
			of := func(list, kind, what string) *big.Int {
				return w.sum(what, fmt.Sprintf("list = '%s' AND owner = %s AND kind = '%s'", list, quoted(u), kind))
			}
			same("the pending deposits", w.of(u, "groups", "if(kind = 'deposit', assets, 0)"), number("pendingDeposits", u))
			same("the pending redemptions", w.of(u, "groups", "if(kind = 'requested', shares, 0)"), number("pendingShares", u))
			same("what was minted", of("user_events", "deposit", "shares"), number("minted", u))
			same("what was paid", w.of(u, "user_totals", "claimed"), number("paid", u))
			same("what was paid, one by one",
				new(big.Int).Add(of("user_events", "claimed", "assets"), of("user_events", "instant", "assets")), number("paid", u))
		case "erc7540":
			same("what is requested", w.inLine(u), new(big.Int).Add(number("pending", u), number("claimable", u)))
		}
	}
}

// TestPresets: the lists equal the views of each preset's contracts, after a realistic scenario and after
// reorganisations, and they equal their definitions. Every event of the scenario is known, and none is impossible.
func TestPresets(t *testing.T) {
	t.Parallel()
	expected := map[string][]string{
		"erc4626": {"Deposit", "Withdraw"},
		"erc7540": {"Deposit", "RedeemRequest", "Withdraw"},
		"lagoon-v0.6": {"DepositRequest", "DepositRequestCanceled", "Referral", "SettleDeposit", "RedeemRequest",
			"RedeemRequestCanceled", "SettleRedeem", "Withdraw", "DepositSync", "WithdrawSync"},
		"yo": {"Deposit", "YoGatewayDeposit", "YoGatewayRedeem", "RedeemRequest", "Withdraw", "RequestFulfilled",
			"RequestCancelled"},
		"midas": {"DepositInstant", "DepositInstantWithCustomRecipient", "DepositRequest",
			"DepositRequestWithCustomRecipient", "RedeemInstant", "RedeemRequest", "RedeemRequestWithCustomRecipient",
			"ApproveRequest", "SafeApproveRequest",
			"RejectRequest", "AnswerUpdated"},
		"veda": {"Deposit", "BulkDeposit", "Withdraw", "OnChainWithdrawRequested", "OnChainWithdrawCancelled",
			"OnChainWithdrawSolved", "ExchangeRateUpdated"},
	}
	for preset, events := range expected {
		if testing.Short() && preset != "lagoon-v0.6" { // it has groups, cancellations and claims
			continue
		}
		t.Run(preset, func(t *testing.T) {
			url := enginetest.Anvil(t, engines.AnvilOptions{}).URL
			play, err := devchain.DeployProtocol(t.Context(), url, preset, 5)
			must(t, err)
			defer play.Close()
			node, err := ethclient.DialContext(t.Context(), url)
			must(t, err)
			defer node.Close()
			m, err := mapping.Preset(preset)
			must(t, err)
			conn, session := generation(t)
			w := &world{t: t, play: play, node: node, roles: map[common.Address]uint8{}, mapping: m.Compile(), conn: conn,
				vault: play.Sources["vault"], events: map[string]int{}}
			for name, address := range play.Sources {
				role, ok := m.Role(name)
				if !ok {
					t.Fatalf("the preset has no source %s", name)
				}
				w.roles[address] = role
			}
			for range 3 {
				must(t, play.Steps(t.Context(), 30))
				w.follow()
				w.agree()
				must(t, devchain.Reorg(t.Context(), url, 7))
				w.follow()
				w.agree()
			}
			for _, event := range events {
				if w.events[event] == 0 {
					t.Errorf("the scenario has no %s, so the test is incomplete", event)
				}
			}
			must(t, readmodel.BuildLists(context.WithoutCancel(t.Context()), session, "draft", w.seq, 1))
			got, want := listed(t, w.conn)
			oracletest.Same(t, "lists, by their definitions", got, want)
		})
	}
}

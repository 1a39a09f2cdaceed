package query

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
)

// A ledger stands in for the log and for project: facts are appended and
// retracted as ingest does it, and rows are written by the rules of the read
// model. It derives every state anew from the list of live facts, in chain
// order, so that it shares nothing with the code under test, nor with
// projections.
type ledger struct {
	chainID      uint64
	records      []entry // records[i] has seq i+1
	rows         map[string][][]any
	partnerUsers map[string]int // live deposits by partner and user
}

type kind string

const (
	aBlock   kind = "block"
	aVault   kind = "vault"
	aDeposit kind = "deposit"
	aRequest kind = "request"
	aFunding kind = "funding"
	aClaim   kind = "claim"
	aCancel  kind = "cancel"
	anExpiry kind = "expiry"
	aNav     kind = "nav"
	aSweep   kind = "sweep"
)

// eventNames are what the contracts call what their logs say.
var eventNames = map[kind]string{
	aDeposit: "DepositAccepted", aRequest: "WithdrawalRequested", aFunding: "WithdrawalFunded", aClaim: "WithdrawalClaimed",
	aCancel: "WithdrawalCancelled", anExpiry: "WithdrawalExpired", aNav: "NavUpdated", aSweep: "DepositsSwept",
}

// fact is what a log, a block or a vault record says; only the fields of its
// kind are set.
type fact struct {
	kind           kind
	vault          common.Address
	user, other    common.Address // owner; sender or receiver
	partner        uint32
	id, to         uint64 // deposit id, request index, first of a sweep; last of a sweep
	assets, shares int64
	price, supply  int64 // of a NAV
	expires        uint64
	block          uint64
	index          uint32
	tx             common.Hash
	meta           *event.Vault
}

type entry struct {
	fact
	seq, retracts uint64
	boundary      bool
}

func blockTime(block uint64) uint32 { return uint32(1_700_000_000 + 12*block) }

func newLedger(chainID uint64) *ledger {
	return &ledger{chainID: chainID, rows: map[string][][]any{}, partnerUsers: map[string]int{}}
}

func (l *ledger) seq() uint64 { return uint64(len(l.records)) }

// append adds facts; the last record becomes a boundary.
func (l *ledger) append(facts ...fact) {
	for _, f := range facts {
		l.add(f, 0)
	}
	l.records[len(l.records)-1].boundary = true
}

// retract takes back, newest first, every live fact of blocks above fork, but
// no boundary follows: the new branch belongs to the same unit.
func (l *ledger) retract(fork uint64) []fact {
	var gone []fact
	live := l.live(l.seq(), 1<<62)
	for _, e := range slices.Backward(live) {
		if e.block > fork && e.kind != aVault {
			l.add(e.fact, e.seq)
			gone = append(gone, e.fact)
		}
	}
	slices.Reverse(gone)
	return gone
}

// live are the facts that count at seq and block, in the order of the log.
func (l *ledger) live(seq, block uint64) []entry {
	taken := map[uint64]bool{}
	for _, e := range l.records[:seq] {
		if e.retracts != 0 {
			taken[e.retracts] = true
		}
	}
	var out []entry
	for _, e := range l.records[:seq] {
		if e.retracts == 0 && !taken[e.seq] && e.block <= block {
			out = append(out, e)
		}
	}
	return out
}

func (l *ledger) add(f fact, retracts uint64) {
	seq := l.seq() + 1
	before := l.statesOf(f)
	l.records = append(l.records, entry{fact: f, seq: seq, retracts: retracts})
	after := l.statesOf(f)
	sign := int8(1)
	if retracts != 0 {
		sign = -1
	}
	l.writeFact(f, seq, sign, retracts, before, after)
	l.writeFlow(f, seq, sign, before, after)
	l.writePlaces(f, seq, sign, before, after)
	l.writeRequest(f, seq, sign, retracts, before, after)
}

// states are the things that one fact may change.
type states struct {
	user         [3]*big.Int // places in the lists, nil when there is none
	request      request
	firstInVault uint32
}

func (l *ledger) statesOf(f fact) states {
	var out states
	live := l.live(l.seq(), 1<<62)
	switch f.kind {
	case aDeposit, aRequest, aClaim:
		out.user = places(live, f.user)
		out.firstInVault = firstSeen(live, f.user, &f.vault)
	}
	switch f.kind {
	case aRequest, aFunding, aClaim, aCancel, anExpiry:
		out.request = foldRequest(live, f.vault, f.id)
	}
	return out
}

// firstSeen is the time of the first deposit or request of a user; 0 for none.
func firstSeen(live []entry, user common.Address, vault *common.Address) uint32 {
	var first uint32
	for _, e := range live {
		if (e.kind == aDeposit || e.kind == aRequest) && e.user == user && (vault == nil || e.vault == *vault) {
			if t := blockTime(e.block); first == 0 || t < first {
				first = t
			}
		}
	}
	return first
}

func places(live []entry, user common.Address) [3]*big.Int {
	first := firstSeen(live, user, nil)
	if first == 0 {
		return [3]*big.Int{}
	}
	deposited, withdrawn := int64(0), int64(0)
	for _, e := range live {
		switch {
		case e.user != user:
		case e.kind == aDeposit:
			deposited += e.assets
		case e.kind == aClaim:
			withdrawn += e.assets
		}
	}
	return [3]*big.Int{big.NewInt(int64(first)), big.NewInt(deposited), big.NewInt(withdrawn)}
}

// request is the state of one withdrawal request.
type request struct {
	user, receiver                                 common.Address
	partner                                        uint32
	shares, estimate                               int64
	expires                                        uint64
	tx                                             common.Hash
	block                                          uint64
	index                                          uint32
	requested, funded, claimed, cancelled, expired uint32
	requestedTS, fundedTS, claimedTS               uint32
	cancelledTS, expiredTS                         uint32
	fundedAssets, claimedAssets                    int64
}

func foldRequest(live []entry, vault common.Address, index uint64) request {
	var r request
	count := func(n, ts *uint32, e entry) bool {
		*n++
		if *n == 1 {
			*ts = blockTime(e.block)
		}
		return *n == 1
	}
	for _, e := range live {
		if e.vault != vault || e.id != index {
			continue
		}
		switch e.kind {
		case aRequest:
			if count(&r.requested, &r.requestedTS, e) {
				r.user, r.receiver, r.partner, r.shares, r.estimate = e.user, e.other, e.partner, e.shares, e.assets
				r.expires, r.tx, r.block, r.index = e.expires, e.tx, e.block, e.fact.index
			}
		case aFunding:
			if count(&r.funded, &r.fundedTS, e) {
				r.fundedAssets = e.assets
			}
		case aClaim:
			count(&r.claimed, &r.claimedTS, e)
			r.claimedAssets += e.assets
		case aCancel:
			count(&r.cancelled, &r.cancelledTS, e)
		case anExpiry:
			count(&r.expired, &r.expiredTS, e)
		}
	}
	return r
}

// inQueue tells whether a request is in the queue, and whether it waits for its money.
func (r *request) inQueue() (open, waiting bool) {
	open = r.requested > 0 && r.claimed == 0 && r.cancelled == 0
	if r.funded > 0 {
		return open, false
	}
	open = open && r.expired == 0
	return open, open
}

const writer = uint64(1)

func (l *ledger) row(table string, values ...any) { l.rows[table] = append(l.rows[table], values) }

func (l *ledger) writeFact(f fact, seq uint64, sign int8, retracts uint64, before, after states) {
	ts := blockTime(f.block)
	var payload []byte
	recordKind, name := "log", eventNames[f.kind]
	switch f.kind {
	case aBlock:
		recordKind = "block"
	case aVault:
		recordKind, ts = "vault", 0
		record := &event.Record{Seq: seq, Retracts: retracts, ChainId: l.chainID, Fact: &event.Record_Vault{Vault: f.meta}}
		payload, _ = proto.Marshal(record)
	case aDeposit:
		l.row("deposits", seq, uint8(0), sign, retracts, writer, f.vault.Bytes(), f.id, f.user.Bytes(), f.other.Bytes(), f.partner,
			big.NewInt(f.assets), big.NewInt(f.shares), l.partnerUser(f, sign), f.block, ts, f.tx.Bytes(), f.index)
	case aNav:
		l.row("navs", seq, uint8(0), sign, retracts, writer, f.vault.Bytes(), big.NewInt(f.price), big.NewInt(f.assets), big.NewInt(f.supply),
			f.block, ts, f.tx.Bytes(), f.index)
	case aSweep:
		l.row("sweeps", seq, uint8(0), sign, retracts, writer, f.vault.Bytes(), f.id, f.to, big.NewInt(f.assets), f.block, ts, f.tx.Bytes(), f.index)
	}
	// boundary is only known when the unit is closed, see insert.
	did := l.effect(f, before, after)
	l.row("records", append([]any{seq, uint8(0), sign, retracts, writer, recordKind, name, false, false, f.block, make([]byte, 32), ts,
		f.index, string(payload)}, did...)...)
}

// effect is what a record says of what its log did: to the queue, to the users of
// the vault and to the lists.
func (l *ledger) effect(f fact, before, after states) []any {
	var vault common.Address
	var id uint64
	open, waiting, of := queueEffect(before.request, after.request)
	if open != 0 || waiting != 0 {
		id = f.id
	}
	vaultUser, _ := vaultUserEffect(before, after)
	moves := make([]any, 0, 6)
	for i, list := range []string{"first", "deposited", "withdrawn"} {
		left, joined := uint32(0), uint32(0)
		if from := before.user[i]; from != nil {
			left = bucketOf(list, from, f.user) + 1
		}
		if to := after.user[i]; to != nil {
			joined = bucketOf(list, to, f.user) + 1
		}
		if left == joined {
			left, joined = 0, 0
		}
		moves = append(moves, left, joined)
	}
	if f.kind != aBlock && f.kind != aVault {
		vault = f.vault
	}
	return append([]any{vault.Bytes(), id, open, waiting, big.NewInt(of.estimate), of.expires, vaultUser}, moves...)
}

// queueEffect is whether a request came into the queue or left it, and the part of
// it that waits for money: then it is the one that is given too.
func queueEffect(before, after request) (open, waiting int8, of request) {
	difference := func(was, is bool) (n int8) {
		if is {
			n++
		}
		if was {
			n--
		}
		return n
	}
	wasOpen, wasWaiting := before.inQueue()
	isOpen, isWaiting := after.inQueue()
	open, waiting = difference(wasOpen, isOpen), difference(wasWaiting, isWaiting)
	if waiting > 0 {
		of = after
	} else if waiting < 0 {
		of = before
	}
	return open, waiting, of
}

// vaultUserEffect is whether a user is one of the vault now or no longer, and the
// time of the first deposit or request there that is added or taken away.
func vaultUserEffect(before, after states) (vaultUser int8, first int64) {
	switch {
	case before.firstInVault == 0 && after.firstInVault != 0:
		return 1, int64(after.firstInVault)
	case before.firstInVault != 0 && after.firstInVault == 0:
		return -1, -int64(before.firstInVault)
	}
	return 0, 0
}

// partnerUser is +1 when a deposit makes its owner a user of the partner, and -1
// when the last one is taken back.
func (l *ledger) partnerUser(f fact, sign int8) int8 {
	if f.partner == 0 {
		return 0
	}
	name := fmt.Sprint(f.partner, f.user)
	was := l.partnerUsers[name]
	l.partnerUsers[name] = was + int(sign)
	if was == 0 || was+int(sign) == 0 {
		return sign
	}
	return 0
}

func (l *ledger) writeFlow(f fact, seq uint64, sign int8, before, after states) {
	var deposits, requests int8
	var deposited, estimated, withdrawn int64
	switch f.kind {
	case aDeposit:
		deposits, deposited = sign, int64(sign)*f.assets
	case aRequest:
		requests, estimated = sign, int64(sign)*f.assets
	case aClaim:
		withdrawn = int64(sign) * f.assets
	default:
		return
	}
	vaultUser, first := vaultUserEffect(before, after)
	l.row("flows", seq, uint8(0), sign, writer, f.vault.Bytes(), f.user.Bytes(), deposits, big.NewInt(deposited), requests, big.NewInt(estimated),
		big.NewInt(withdrawn), vaultUser, first, f.block)
}

// writePlaces writes the place that a user leaves in each list with users -1,
// and the one taken with users +1. What is shown there beside the key is taken
// away and put down with them; where the place stays the same, both in one row.
func (l *ledger) writePlaces(f fact, seq uint64, sign int8, before, after states) {
	for i, list := range []string{"first", "deposited", "withdrawn"} {
		write := func(row int, users int8, key *big.Int, shown ...[3]*big.Int) {
			var sums [3]*big.Int // of first, deposited and withdrawn
			for k := range sums {
				sums[k] = new(big.Int)
				for _, s := range shown {
					if k != i {
						sums[k].Add(sums[k], s[k])
					}
				}
			}
			l.row("rankings", seq, uint8(row+i), sign, writer, list, bucketOf(list, key, f.user), key, f.user.Bytes(), users, sums[0].Int64(), sums[1], sums[2])
		}
		from, to := before.user[i], after.user[i]
		if from != nil && to != nil && from.Cmp(to) == 0 {
			write(30, 0, from, negative(before.user), after.user)
			continue
		}
		if from != nil {
			write(10, -1, from, negative(before.user))
		}
		if to != nil {
			write(20, 1, to, after.user)
		}
	}
}

func negative(shown [3]*big.Int) (out [3]*big.Int) {
	for i, v := range shown {
		out[i] = new(big.Int).Neg(v)
	}
	return out
}

// bucketOf is the bucket of a place, told from how the key is written in binary.
func bucketOf(list string, key *big.Int, user common.Address) uint32 {
	digits := key.Text(2)
	lead, _ := strconv.ParseUint(digits[:min(len(digits), 8)], 2, 32)
	switch {
	case list == "first":
		return 2048 + uint32(key.Uint64()/2048)
	case key.Sign() == 0:
		return (uint32(user[0])*256 + uint32(user[1])) / 32
	}
	return 2048 + uint32(lead) + 128*uint32(max(len(digits), 8)-8)
}

var steps = map[kind]string{aRequest: "requested", aFunding: "funded", aClaim: "claimed", aCancel: "cancelled", anExpiry: "expired"}

// writeRequest writes what a fact says of a request, and what it does to the queue.
func (l *ledger) writeRequest(f fact, seq uint64, sign int8, retracts uint64, before, after states) {
	step, ok := steps[f.kind]
	if !ok {
		return
	}
	open, waiting, _ := queueEffect(before.request, after.request)
	var user, receiver common.Address
	var partner uint32
	var shares, assets, estimate int64
	var expires uint64
	switch f.kind {
	case aRequest:
		receiver, partner, shares, estimate, expires = f.other, f.partner, f.shares, f.assets, f.expires
		if before.request.requested+after.request.requested == 1 { // another of the same index is in nobody's list
			user = f.user
		}
	case aFunding, aClaim:
		assets = f.assets
	}
	for _, r := range []request{before.request, after.request} {
		if waiting != 0 && r.requested > 0 {
			estimate, expires = r.estimate, r.expires
		}
	}
	l.row("requests", seq, uint8(0), sign, retracts, writer, f.vault.Bytes(), f.id, step, user.Bytes(), receiver.Bytes(), partner, big.NewInt(shares),
		big.NewInt(assets), big.NewInt(estimate), expires, open, waiting, f.block, blockTime(f.block), f.tx.Bytes(), f.index)
}

var columns = map[string]string{
	"records":  "seq, row, sign, retracts, writer, kind, event, boundary, quarantined, block, hash, ts, log_index, payload, vault, request_index, open, waiting, estimate, expires_ts, vault_user, first_left, first_joined, deposited_left, deposited_joined, withdrawn_left, withdrawn_joined",
	"deposits": "seq, row, sign, retracts, writer, vault, deposit_id, user, sender, partner, assets, shares, partner_user, block, ts, tx, log_index",
	"flows":    "seq, row, sign, writer, vault, user, deposits, deposited, requests, estimated, withdrawn, vault_user, first_ts, block",
	"rankings": "seq, row, sign, writer, list, bucket, key, user, users, first, deposited, withdrawn",
	"requests": "seq, row, sign, retracts, writer, vault, request_index, kind, user, receiver, partner, shares, assets, estimate, expires_ts, open, waiting, block, ts, tx, log_index",
	"navs":     "seq, row, sign, retracts, writer, vault, nav_per_share, total_assets, total_supply, block, ts, tx, log_index",
	"sweeps":   "seq, row, sign, retracts, writer, vault, from_id, to_id, assets, block, ts, tx, log_index",
}

// insert writes every row that is not written yet, in parts of several blocks,
// and a progress row into each table.
func (l *ledger) insert(t testing.TB, conn driver.Conn, database string) {
	t.Helper()
	for _, values := range l.rows["records"] {
		values[7] = l.records[values[0].(uint64)-1].boundary
	}
	for table, names := range columns {
		rows := l.rows[table]
		for part := range slices.Chunk(rows, max(1, (len(rows)+4)/5)) {
			insertRows(t, conn, fmt.Sprintf("INSERT INTO %s.%s (%s)", database, table, names), part)
		}
		if table != "records" {
			insertRows(t, conn, fmt.Sprintf("INSERT INTO %s.%s (seq, row, sign, writer)", database, table), [][]any{{l.seq(), uint8(255), int8(0), writer}})
		}
	}
	l.rows = map[string][][]any{}
}

// insertPlaces writes places in lists, and records that tell the same, in a block.
func (w *world) insertPlaces(t testing.TB, rows [][]any) {
	t.Helper()
	insertRows(t, w.writer, fmt.Sprintf("INSERT INTO %s.rankings (%s)", w.database(), columns["rankings"]), rows)
	for _, list := range []string{"first", "deposited", "withdrawn"} {
		for users, did := range map[int8]string{1: "joined", -1: "left"} {
			var records [][]any
			for _, r := range rows {
				if r[4] == list && r[8] == users {
					records = append(records, []any{r[0], r[1], r[2], writer, "log", 2 + r[0].(uint64)/10, r[5].(uint32) + 1})
				}
			}
			if len(records) > 0 {
				insertRows(t, w.writer, fmt.Sprintf("INSERT INTO %s.records (seq, row, sign, writer, kind, block, %s_%s)", w.database(), list, did), records)
			}
		}
	}
}

func insertRows(t testing.TB, conn driver.Conn, statement string, rows [][]any) {
	t.Helper()
	batch, err := conn.PrepareBatch(context.Background(), statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	defer batch.Close()
	for _, row := range rows {
		if err := batch.Append(row...); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

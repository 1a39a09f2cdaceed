package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/readtest"
)

// eventNames are the event names of the kinds of facts.
var eventNames = map[readtest.Kind]string{
	readtest.Deposit: "DepositAccepted", readtest.Request: "WithdrawalRequested", readtest.Funding: "WithdrawalFunded",
	readtest.Claim:  "WithdrawalClaimed",
	readtest.Cancel: "WithdrawalCancelled", readtest.Expiry: "WithdrawalExpired", readtest.Nav: "NavUpdated",
	readtest.Sweep:      "DepositsSwept",
	readtest.Settlement: "WithdrawalsSettled",
}

// effectNames are the effects of the kinds of facts in the mapping language.
var effectNames = map[readtest.Kind]string{
	readtest.Deposit: "deposit", readtest.Request: "requested", readtest.Funding: "funded", readtest.Claim: "claimed",
	readtest.Cancel: "cancelled", readtest.Expiry: "expired", readtest.Nav: "valuation", readtest.Sweep: "sweep",
	readtest.Settlement: "settled",
}

// events returns the effects of logs that match keep, newest first: of those of the chain or, with all, of those that
// were ever recorded.
func (o *Oracle) events(keep func(readtest.Entry) bool, all bool) []any {
	logs := slices.Clone(o.logs)
	slices.SortFunc(logs, func(a, b readtest.Entry) int { return cmp.Or(inChain(b, a), cmp.Compare(b.Seq, a.Seq)) })
	out := []any{}
	for _, log := range logs {
		for _, e := range slices.Backward(log.Effects()) {
			if (keep == nil || keep(e)) && (all || o.gone[e.Seq] == 0) {
				out = append(out, o.event(e))
			}
		}
	}
	return out
}

// names reports whether an effect names a user.
func names(e readtest.Entry, user common.Address) bool {
	withoutUser := []readtest.Kind{readtest.Nav, readtest.Sweep, readtest.Settlement}
	return !e.Quarantined && e.User == user && (e.Cancels || !slices.Contains(withoutUser, e.Kind))
}

// id returns the id of an effect, or of a log's own effect, in every response.
func id(e readtest.Entry) string {
	out, sub := fmt.Sprintf("%s-%d", e.Tx.Hex(), e.Index), int(e.Sub)
	if e.Late && !e.Cancels {
		sub = len(e.Also)
	}
	if sub > 0 {
		out += fmt.Sprintf(".%d", sub)
	}
	return out
}

func (o *Oracle) event(e readtest.Entry) object {
	out := object{
		"id": id(e), "seq": dec(e.Seq), "kind": eventNames[e.Kind], "vaultAddress": e.Fact.Vault.Hex(),
		"vaultName":   o.name(e.Fact.Vault),
		"blockNumber": dec(e.Block), "timestamp": iso(readtest.BlockTime(e.Block)), "txHash": e.Tx.Hex(), "logIndex": e.Index,
		"userAddress": nil, "partnerId": nil, "depositId": nil, "requestIndex": nil, "assets": nil, "shares": nil,
		"navPerShare": nil, "totalAssets": nil, "totalSupply": nil, "fromId": nil, "toId": nil, "state": "live",
		"retractedBySeq": nil,
		"effect":         effectNames[e.Kind],
	}
	switch {
	case e.Quarantined:
		out["state"], out["effect"] = "quarantined", nil
	case e.Cancels:
		out["userAddress"], out["requestIndex"], out["shares"] = e.User.Hex(), dec(uint64(readtest.NoRequest)), "0"
		out["effect"] = "cancelled"
	case e.Kind == readtest.Nav:
		out["navPerShare"], out["totalAssets"], out["totalSupply"] = dec(e.Price), dec(e.Assets), dec(e.Supply)
	case e.Kind == readtest.Sweep:
		out["fromId"], out["toId"], out["assets"] = dec(e.ID), dec(e.To), dec(e.Assets)
	case e.Kind == readtest.Settlement:
		out["assets"], out["shares"], out["navPerShare"] = dec(e.Assets), dec(e.Shares), dec(e.Price)
	default:
		out["userAddress"], out["shares"] = e.User.Hex(), dec(e.Shares)
		if e.Kind != readtest.Cancel && e.Kind != readtest.Expiry {
			out["assets"] = dec(e.Assets)
		}
		if e.Kind == readtest.Deposit {
			out["depositId"] = dec(e.ID)
		} else {
			out["requestIndex"] = dec(e.ID)
		}
		if e.Partner != 0 && (e.Kind == readtest.Deposit || e.Kind == readtest.Request) {
			out["partnerId"] = e.Partner
		}
	}
	if by := o.gone[e.Seq]; by != 0 {
		out["state"], out["retractedBySeq"] = "retracted", dec(by)
	}
	return out
}

// walkEvents reads a list of events to its end, in pages that begin and end anywhere.
func (a *asked) walkEvents(path, pinned string, want []any) {
	a.t.Helper()
	path = withQuery(path, pinned)
	for size, next := 3, ""; ; size = min(8*size-1, 100) {
		page := withQuery(path, fmt.Sprintf("pageSize=%d&before=%s", size, next))
		got := a.Get(page).JSON(a.t)
		n := min(size, len(want))
		same(a.t, page, got["data"], want[:n])
		want = want[n:]
		meta := got["meta"].(object)
		same(a.t, page+" has another page", []any{meta["hasNextPage"], meta["next"] != nil, meta["pageSize"]},
			[]any{len(want) > 0, len(want) > 0, size})
		if len(want) == 0 {
			return
		}
		next = meta["next"].(string)
	}
}

// TestEventsByFilters: each filter, by itself and combined with others, in a history with reorganisations.
func TestEventsByFilters(t *testing.T) {
	if testing.Short() {
		t.Skip("sends one query after the other")
	}
	s := randomScenario(3, func(*scenario) {})
	if !s.hasReorganisation() {
		t.Fatal("the scenario has no reorganisation")
	}
	a := startAPI(t, s.Log)
	for pinned, o := range a.twice(s.head - 9) {
		a.compareEvents(o, pinned)
	}
}

// compareEvents requests events with each filter.
func (a *asked) compareEvents(o *Oracle, pinned string) {
	a.t.Helper()
	a.walkEvents("/api/v1/events", pinned, o.events(nil, false))
	for _, path := range o.vaults(a.t) {
		a.walkEvents(path+"/events", pinned, o.events(inVault(vaultOf(path)), false))
	}
	for _, u := range []common.Address{readtest.Alice, readtest.Bob} {
		of := func(e readtest.Entry) bool { return names(e, u) }
		a.walkEvents("/api/v1/events?user="+u.Hex(), pinned, o.events(of, false))
		a.walkEvents("/api/v1/events?retracted=true&user="+u.Hex(), pinned, o.events(of, true))
		a.walkEvents("/api/v1/events?kind=DepositAccepted,WithdrawalRequested&vault="+readtest.VaultB.Hex()+"&user="+u.Hex(),
			pinned, o.events(func(e readtest.Entry) bool {
				return of(e) && e.Fact.Vault == readtest.VaultB && (e.Kind == readtest.Deposit || e.Kind == readtest.Request)
			}, false))
	}
	for kind, name := range eventNames {
		a.walkEvents("/api/v1/events?retracted=true&kind="+name, pinned,
			o.events(func(e readtest.Entry) bool { return e.Kind == kind }, true))
	}
	for i := 0; i < len(o.logs); i += 1 + len(o.logs)/4 {
		at := o.logs[i]
		a.walkEvents("/api/v1/events?retracted=true&tx="+at.Tx.Hex(), pinned,
			o.events(func(e readtest.Entry) bool { return e.Tx == at.Tx }, true))
		from := readtest.BlockTime(at.Block)
		a.walkEvents(fmt.Sprintf("/api/v1/events?from=%d&to=%d", from, from+60), pinned,
			o.events(func(e readtest.Entry) bool {
				return readtest.BlockTime(e.Block) >= from && readtest.BlockTime(e.Block) <= from+60
			}, false))
	}
}

// TestEventsThereAndBack: a log that was retracted and appended again is two events, the first of them retracted, and
// so is the log that replaced it in between.
func TestEventsThereAndBack(t *testing.T) {
	l := readtest.NewLog(readtest.ChainID)
	deposit := func(user common.Address, tx byte) readtest.Fact {
		return readtest.Fact{Kind: readtest.Deposit, Vault: readtest.VaultA, User: user, Other: user, Partner: 7, ID: 1,
			Assets: 5, Shares: 4, Block: 3, Tx: readtest.Tx(tx)}
	}
	nav := readtest.Fact{Kind: readtest.Nav, Vault: readtest.VaultA, Price: 1, Assets: 2, Supply: 3, Block: 3,
		Tx: readtest.Tx(2)}
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(2))
	l.Append(deposit(readtest.Alice, 1), readtest.BlockRecord(3)) // A
	l.Retract(2)
	l.Append(nav, readtest.BlockRecord(3)) // B
	l.Retract(2)
	l.Append(deposit(readtest.Alice, 1), readtest.BlockRecord(3)) // A again
	a := startAPI(t, l)
	o := newest(t, l)
	for _, query := range []string{"", "user=" + readtest.Alice.Hex(), "tx=" + readtest.Tx(1).Hex(),
		"kind=DepositAccepted"} {
		a.walkEvents(withQuery("/api/v1/events", query), "", []any{o.event(l.Entries[10])})
	}
	a.walkEvents("/api/v1/events?kind=NavUpdated", "", []any{})
	a.walkEvents("/api/v1/events?retracted=true", "",
		[]any{o.event(l.Entries[10]), o.event(l.Entries[6]), o.event(l.Entries[2])})
	a.walkEvents("/api/v1/events", "asOfBlock=2", []any{})
	same(t, "the records that retracted them",
		[]any{o.event(l.Entries[6])["retractedBySeq"], o.event(l.Entries[2])["retractedBySeq"]}, []any{"10", "6"})
}

// TestIDsOfSeveralEffects: an effect that is not the first one of its log has the same id in every response that shows
// it.
func TestIDsOfSeveralEffects(t *testing.T) {
	l := readtest.NewLog(readtest.ChainID)
	late := func(f readtest.Fact) readtest.Fact {
		f.Vault, f.Block, f.Tx, f.Also, f.Late = readtest.VaultA, 2, readtest.Tx(1+byte(f.Index)), people[:2], true
		return f
	}
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1))
	l.Append(late(readtest.Fact{Kind: readtest.Nav, Price: 1, Assets: 2, Supply: 3}),
		late(readtest.Fact{Kind: readtest.Deposit, User: readtest.Alice, Other: readtest.Bob, Partner: 7, ID: 1, Assets: 9,
			Shares: 8, Index: 1}),
		late(readtest.Fact{Kind: readtest.Request, User: readtest.Alice, Other: readtest.Bob, Partner: 7, ID: 1, Assets: 5,
			Shares: 4, Index: 2}),
		readtest.BlockRecord(2))
	a := startAPI(t, l)
	o := newest(t, l)
	a.walkEvents("/api/v1/events", "", o.events(nil, false))
	for index, list := range []string{"nav", "deposits", "withdrawals"} {
		path := "/api/v1/vaults/" + readtest.VaultA.Hex() + "/" + list
		want := o.list(t, path)
		want[0].(object)["id"] = fmt.Sprintf("%s-%d.2", readtest.Tx(byte(1+index)).Hex(), index)
		a.expect(path, "", want)
	}
	if numbers, events := a.explain(o, "", 2); numbers == 0 || events == 0 {
		t.Errorf("%d numbers with %d events are explained", numbers, events)
	}
}

// TestPagesOfSeveralEffects: pages and the reads of files lose no effect of a log, wherever they end. After a place
// without the number of an effect, as older versions wrote it, the list continues with the next log.
func TestPagesOfSeveralEffects(t *testing.T) {
	l := readtest.NewLog(readtest.ChainID)
	settled := func(block uint64, tx byte) readtest.Fact {
		return readtest.Fact{Kind: readtest.Settlement, Vault: readtest.VaultA, Assets: 3, Shares: 2, Price: 1, Block: block,
			Index: 2, Tx: readtest.Tx(tx), Also: people}
	}
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1))
	l.Append(settled(2, 1), readtest.BlockRecord(2))
	l.Append(settled(3, 2), readtest.BlockRecord(3))
	l.Retract(2)
	l.Append(settled(3, 3), readtest.BlockRecord(3)) // at the same place
	a := startAPI(t, l)
	o := newest(t, l)
	for path, want := range map[string][]any{
		"/api/v1/events?retracted=false": o.events(nil, false), "/api/v1/events?retracted=true": o.events(nil, true),
		"/api/v1/events?retracted=true&user=" + people[1].Hex(): o.events(func(e readtest.Entry) bool {
			return names(e,
				people[1])
		}, true),
	} {
		for size := 1; size <= len(want); size++ {
			var got []any
			for next, more := "", true; more; {
				page := a.Get(fmt.Sprintf("%s&pageSize=%d&before=%s", path, size, next)).JSON(t)
				got = append(got, page["data"].([]any)...)
				next, more = page["meta"].(object)["next"].(string)
			}
			same(t, fmt.Sprintf("%s in pages of %d", path, size), got, want)
			a.Server.FileRows = size
			a.sameFile(path, eventColumns, want)
		}
	}
	older := o.events(func(e readtest.Entry) bool { return e.Block < 3 }, false)
	same(t, "after the log of block 3", a.Get("/api/v1/events?before=AwIA").Data(t), older)
}

// TestWrongQuestionsForEvents: invalid parameters are rejected, and filters that match nothing return an empty list.
func TestWrongQuestionsForEvents(t *testing.T) {
	a := startAPI(t, readtest.SmallChain())
	for _, query := range []string{
		"kind=1", "kind=NavUpdated,", "kind=NavUpdated,NavUpdated", "kind=Nav%20Updated", "retracted=yes", "tx=0x12",
		"tx=" + readtest.Tx(1).Hex()[2:] + "00",
		"before=x", "before=AAAA!", "before=AAAAAA", "before=AAA=", "before=gAAAAA", "before=____________________",
		"before=CwAa", "before=AAAArAI",
		"pageSize=0", "pageSize=101", "from=x",
	} {
		a.Get("/api/v1/events?"+query).Failed(t, 400, "INVALID_PARAMETER")
	}
	for _, query := range []string{"user=0x12", "vault=0x12"} {
		a.Get("/api/v1/events?"+query).Failed(t, 400, "INVALID_ADDRESS")
	}
	a.Get("/api/v1/vaults/"+readtest.Unknown.Hex()+"/events").Failed(t, 404, "NOT_FOUND")
	a.Get("/api/v1/events?retracted=true&before=CwAa").Data(t) // a place in this list
	zero := common.Hash{}.Hex()
	for _, query := range []string{"user=" + zero[:42], "tx=" + zero, "kind=Deposit", "vault=" + readtest.Unknown.Hex(),
		"vault=" + zero[:42], "user=" + readtest.Router.Hex(), "before=AAAA"} {
		same(t, query, a.Get("/api/v1/events?"+query).Data(t), []any{})
	}
}

// compareReorganisations requests reorganisations with several widths of block buckets.
func (a *asked) compareReorganisations(o *Oracle, pinned string) {
	a.t.Helper()
	for _, width := range []uint64{1, 3, 1 << 40} {
		got := a.Get(withQuery(fmt.Sprintf("/api/v1/reorganisations?width=%d", width), pinned)).JSON(a.t)
		same(a.t, fmt.Sprintf("reorganisations by %d blocks, %s", width, pinned), []any{got["data"], got["meta"]},
			[]any{o.reorganisations(width), object{"total": len(o.reorgs)}})
	}
}

// TestReorganisations: every reorganisation of a history is listed, at any block.
func TestReorganisations(t *testing.T) {
	s := randomScenario(3, func(*scenario) {})
	a := startAPI(t, s.Log)
	o := newest(t, s.Log)
	if len(o.reorgs) < 3 {
		t.Fatalf("the scenario has the reorganisations %v", o.reorgs)
	}
	a.compareReorganisations(o, "")
	for block := s.head - 12; block < s.head; block += 3 {
		a.compareReorganisations(At(t, s.Log, s.Seq(), block), fmt.Sprintf("asOfBlock=%d", block))
	}
}

// TestReorganisationsByHand: two reorganisations that began with the same block count as two; one that an operator
// made in two units counts as one.
func TestReorganisationsByHand(t *testing.T) {
	l := readtest.NewLog(readtest.ChainID)
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(2))
	for range 2 {
		l.Append(readtest.BlockRecord(3))
		l.Retract(2)
	}
	l.Append(readtest.BlockRecord(3))
	l.Append(readtest.Fact{Kind: readtest.Nav, Vault: readtest.VaultA, Price: 1, Assets: 2, Supply: 3, Block: 4,
		Tx: readtest.Tx(2)}, readtest.BlockRecord(4))
	l.Append(readtest.BlockRecord(5))
	l.Retract(3)
	l.Entries[len(l.Entries)-3].Boundary = true // block 5 is retracted in one unit, and block 4 with its NAV in another
	l.Append(readtest.BlockRecord(4))
	a := startAPI(t, l)
	want := []any{
		object{"fromBlock": "4", "toBlock": "5", "count": 1, "logs": 1, "seq": "13"},
		object{"fromBlock": "3", "toBlock": "3", "count": 2, "logs": 0, "seq": "6"},
	}
	same(t, "by hand", a.Get("/api/v1/reorganisations").JSON(t)["data"], want)
	same(t, "as of block 3", a.Get("/api/v1/reorganisations?asOfBlock=3").JSON(t)["data"], want[1:])
	same(t, "together", a.Get("/api/v1/reorganisations?width=1000").JSON(t)["data"],
		[]any{object{"fromBlock": "3", "toBlock": "5", "count": 3, "logs": 1, "seq": "13"}})
	a.compareReorganisations(newest(t, l), "")
	for _, query := range []string{"width=0", "width=x", "width=9223372036854775808"} {
		a.Get("/api/v1/reorganisations?"+query).Failed(t, 400, "INVALID_PARAMETER")
	}
}

// reorganisation is the blocks and logs that a reorganisation retracted.
type reorganisation struct {
	from, to, seq uint64
	logs          int
}

// reorganisationsOf finds the reorganisations in a log: consecutive retracting records are one reorganisation.
func reorganisationsOf(log []readtest.Entry, block uint64) (out []reorganisation) {
	var now *reorganisation
	for _, e := range log {
		if e.Retracts == 0 {
			now = nil
			continue
		}
		if now == nil {
			out = append(out, reorganisation{from: e.Block})
			now = &out[len(out)-1]
		}
		now.from, now.to, now.seq = min(now.from, e.Block), max(now.to, e.Block), e.Seq
		if eventNames[e.Kind] != "" && !e.Passed {
			now.logs++
		}
	}
	return slices.DeleteFunc(out, func(r reorganisation) bool { return r.from > block })
}

// reorganisations returns the reorganisations by block buckets, newest first.
func (o *Oracle) reorganisations(width uint64) []any {
	type section struct {
		reorganisation
		count int
	}
	sections := map[uint64]*section{}
	for _, r := range o.reorgs {
		s := sections[r.from/width]
		if s == nil {
			s = &section{reorganisation: reorganisation{from: r.from}}
			sections[r.from/width] = s
		}
		s.from, s.to, s.seq, s.logs, s.count = min(s.from, r.from), max(s.to, r.to), max(s.seq, r.seq), s.logs+r.logs,
			s.count+1
	}
	list := slices.SortedFunc(maps.Values(sections), func(a, b *section) int { return cmp.Compare(b.from, a.from) })
	out := []any{}
	for _, s := range list {
		out = append(out, object{"fromBlock": dec(s.from), "toBlock": dec(s.to), "count": s.count, "logs": s.logs,
			"seq": dec(s.seq)})
	}
	return out
}

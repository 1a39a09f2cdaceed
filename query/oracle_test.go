package query

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// An oracle answers the API's questions from the list of live facts, with
// loops over Go values: no SQL, and none of the types of the code under test.
type oracle struct {
	live   []entry // in the order of the log
	now    uint32  // time of the newest block
	vaults []oracleVault
}

type oracleVault struct {
	address common.Address
	name    string
	start   uint64
}

type object = map[string]any

// at gives the oracle of a state, which must have an indexed block.
func (l *ledger) at(seq, block uint64) *oracle {
	o := &oracle{live: l.live(seq, block)}
	for _, e := range o.live {
		switch e.kind {
		case aBlock:
			o.now = max(o.now, blockTime(e.block))
		case aVault:
			o.vaults = append(o.vaults, oracleVault{common.BytesToAddress(e.meta.Address), e.meta.Name, e.meta.StartBlock})
		}
	}
	slices.SortStableFunc(o.vaults, func(a, b oracleVault) int {
		return cmp.Or(cmp.Compare(a.start, b.start), a.address.Cmp(b.address))
	})
	return o
}

func iso(ts uint32) string {
	return time.Unix(int64(ts), 0).UTC().Format("2006-01-02T15:04:05") + ".000Z"
}

func isoIf(count, ts uint32) any {
	if count == 0 {
		return nil
	}
	return iso(ts)
}

func dec[T ~int64 | ~uint64](n T) string { return fmt.Sprint(n) }

func (o *oracle) name(vault common.Address) string {
	for _, v := range o.vaults {
		if v.address == vault {
			return v.name
		}
	}
	return ""
}

// of gives the live facts of a kind, oldest first on the chain.
func (o *oracle) of(k kind, keep func(entry) bool) []entry {
	var out []entry
	for _, e := range o.live {
		if e.kind == k && (keep == nil || keep(e)) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.block, b.block), cmp.Compare(a.fact.index, b.fact.index))
	})
	return out
}

func inVault(v common.Address) func(entry) bool { return func(e entry) bool { return e.vault == v } }
func ofUser(u common.Address) func(entry) bool  { return func(e entry) bool { return e.user == u } }

func (o *oracle) vaultList() []any {
	out := []any{}
	for _, v := range o.vaults {
		out = append(out, o.vault(v))
	}
	return out
}

func (o *oracle) vault(v oracleVault) object {
	out := object{
		"address": v.address.Hex(), "name": v.name, "symbol": "nv" + v.name, "chainId": testChain, "decimals": 18,
		"asset":       object{"address": "0x5555555555555555555555555555555555555555", "symbol": "USDX", "decimals": 6},
		"totalAssets": nil, "totalSupply": nil, "navPerShare": nil, "navUpdatedAt": nil, "startBlock": dec(v.start),
	}
	if navs := o.of(aNav, inVault(v.address)); len(navs) > 0 {
		n := navs[len(navs)-1]
		out["totalAssets"], out["totalSupply"], out["navPerShare"], out["navUpdatedAt"] = dec(n.assets), dec(n.supply), dec(n.price), iso(blockTime(n.block))
	}
	return out
}

func (o *oracle) vaultDetail(v oracleVault) object {
	out, users, pending := o.vault(v), map[common.Address]bool{}, 0
	for _, e := range o.live {
		if e.vault == v.address && (e.kind == aDeposit || e.kind == aRequest) {
			users[e.user] = true
		}
	}
	for _, r := range o.requests(inVault(v.address)) {
		if r["status"] == "queued" {
			pending++
		}
	}
	stats := object{"userCount": len(users), "pendingWithdrawals": pending, "lastSweepAt": nil, "lastNavAt": nil}
	for field, k := range map[string]kind{"lastSweepAt": aSweep, "lastNavAt": aNav} {
		if all := o.of(k, inVault(v.address)); len(all) > 0 {
			stats[field] = iso(blockTime(all[len(all)-1].block))
		}
	}
	out["stats"] = stats
	return out
}

func (o *oracle) navs(v oracleVault) []any {
	out := []any{}
	for _, n := range slices.Backward(o.of(aNav, inVault(v.address))) {
		out = append(out, object{
			"id": fmt.Sprintf("%s-%d", n.tx.Hex(), n.fact.index), "vaultAddress": v.address.Hex(), "vaultName": v.name,
			"navPerShare": dec(n.price), "totalAssets": dec(n.assets), "totalSupply": dec(n.supply), "timestamp": iso(blockTime(n.block)),
			"blockNumber": dec(n.block), "txHash": n.tx.Hex(), "logIndex": n.fact.index,
		})
	}
	return out
}

func (o *oracle) deposit(d entry) object {
	out := object{
		"id": fmt.Sprintf("%s-%d", d.tx.Hex(), d.fact.index), "vaultAddress": d.vault.Hex(), "vaultName": o.name(d.vault),
		"userAddress": d.user.Hex(), "senderAddress": d.other.Hex(), "assetAmount": dec(d.assets), "shares": dec(d.shares),
		"sweptAt": nil, "txHash": d.tx.Hex(), "blockNumber": dec(d.block), "logIndex": d.fact.index, "timestamp": iso(blockTime(d.block)),
	}
	if d.partner != 0 {
		out["partnerId"] = d.partner
	}
	for _, s := range o.of(aSweep, inVault(d.vault)) {
		if s.id <= d.id && d.id <= s.to {
			out["sweptAt"] = iso(blockTime(s.block))
			break
		}
	}
	return out
}

func (o *oracle) depositsNewestFirst(keep func(entry) bool) []any {
	out := []any{}
	for _, d := range slices.Backward(o.of(aDeposit, keep)) {
		out = append(out, o.deposit(d))
	}
	return out
}

// requests are the requests that keep lets through, oldest first.
func (o *oracle) requests(keep func(entry) bool) []object {
	var out []object
	for _, e := range o.of(aRequest, keep) {
		r := foldRequest(o.live, e.vault, e.id)
		status, claimable, expiredAt := "queued", false, isoIf(r.expired, r.expiredTS)
		switch {
		case r.claimed > 0:
			status = "claimed"
		case r.cancelled > 0:
			status = "cancelled"
		case r.funded > 0:
			claimable = true
		case r.expired > 0:
			status = "expired"
		case r.expires != 0 && uint64(o.now) >= r.expires:
			status, expiredAt = "expired", iso(uint32(r.expires))
		}
		w := object{
			"id": fmt.Sprintf("%s-%d", r.tx.Hex(), r.index), "vaultAddress": e.vault.Hex(), "vaultName": o.name(e.vault),
			"userAddress": r.user.Hex(), "receiverAddress": r.receiver.Hex(), "requestIndex": dec(e.id), "shares": dec(r.shares),
			"assetsEstimate": dec(r.estimate), "status": status, "claimable": claimable, "assetsClaimable": "0", "assetsClaimed": dec(r.claimedAssets),
			"requestedAt": iso(r.requestedTS), "expiresAt": nil, "fundedAt": isoIf(r.funded, r.fundedTS), "claimedAt": isoIf(r.claimed, r.claimedTS),
			"cancelledAt": isoIf(r.cancelled, r.cancelledTS), "expiredAt": expiredAt, "txHash": r.tx.Hex(), "blockNumber": dec(r.block),
			"logIndex": r.index, "timestamp": iso(r.requestedTS),
		}
		if claimable {
			w["assetsClaimable"] = dec(r.fundedAssets)
		}
		if r.partner != 0 {
			w["partnerId"] = r.partner
		}
		if r.expires != 0 {
			w["expiresAt"] = iso(uint32(r.expires))
		}
		out = append(out, w)
	}
	return out
}

func (o *oracle) withStatus(status string, keep func(entry) bool, newestFirst bool) []any {
	out := []any{}
	for _, r := range o.requests(keep) {
		if status == "" || r["status"] == status {
			out = append(out, any(r))
		}
	}
	if newestFirst {
		slices.Reverse(out)
	}
	return out
}

// swept is the highest deposit id that a sweep of the vault reached.
func (o *oracle) swept(v common.Address) uint64 {
	var last uint64
	for _, s := range o.of(aSweep, inVault(v)) {
		last = max(last, s.to)
	}
	return last
}

func (o *oracle) unswept(v common.Address) []entry {
	return o.of(aDeposit, func(e entry) bool { return e.vault == v && e.id > o.swept(v) })
}

func (o *oracle) depositQueue(vaults ...oracleVault) []any {
	out := []any{}
	for _, v := range vaults {
		deposits := []any{}
		for _, d := range o.unswept(v.address) {
			deposits = append(deposits, o.deposit(d))
		}
		if len(deposits) > 0 {
			out = append(out, object{"vaultAddress": v.address.Hex(), "vaultName": v.name, "deposits": deposits, "count": len(deposits)})
		}
	}
	return out
}

func (o *oracle) settlement() []any {
	out := []any{}
	for _, v := range o.vaults {
		var sweep, fund, waiting int64
		for _, d := range o.unswept(v.address) {
			sweep += d.assets
		}
		for _, r := range o.requests(inVault(v.address)) {
			if r["status"] == "queued" && r["claimable"] == false {
				n, _ := strconv.ParseInt(r["assetsEstimate"].(string), 10, 64)
				fund += n
				waiting++
			}
		}
		out = append(out, object{"vaultAddress": v.address.Hex(), "vaultName": v.name,
			"depositsToSweep":   object{"count": len(o.unswept(v.address)), "totalAmount": dec(sweep)},
			"withdrawalsToFund": object{"count": waiting, "totalAmount": dec(fund)}})
	}
	return out
}

// users are sorted by field, ties by address.
func (o *oracle) users(field string, descending bool) []any {
	type user struct {
		address common.Address
		key     *big.Int
		json    object
	}
	var all []user
	for _, address := range o.userAddresses() {
		json := o.user(address)
		key, ok := new(big.Int).SetString(fmt.Sprint(json[field]), 10)
		if !ok { // a time sorts as its text
			key = new(big.Int).SetBytes([]byte(json[field].(string)))
		}
		delete(json, "holdings")
		all = append(all, user{address, key, json})
	}
	slices.SortFunc(all, func(a, b user) int {
		order := a.key.Cmp(b.key)
		if descending {
			order = -order
		}
		return cmp.Or(order, a.address.Cmp(b.address))
	})
	out := []any{}
	for _, u := range all {
		out = append(out, u.json)
	}
	return out
}

func (o *oracle) userAddresses() []common.Address {
	seen := map[common.Address]bool{}
	var out []common.Address
	for _, e := range o.live {
		if (e.kind == aDeposit || e.kind == aRequest) && !seen[e.user] {
			seen[e.user] = true
			out = append(out, e.user)
		}
	}
	return out
}

func (o *oracle) user(address common.Address) object {
	var deposited, withdrawn int64
	deposits, withdrawals := []any{}, []any{}
	for _, v := range o.vaults {
		var sum, estimate int64
		mine := func(e entry) bool { return e.vault == v.address && e.user == address }
		ds, rs := o.of(aDeposit, mine), o.of(aRequest, mine)
		for _, d := range ds {
			sum += d.assets
		}
		for _, r := range rs {
			estimate += r.assets
		}
		for _, c := range o.of(aClaim, mine) {
			withdrawn += c.assets
		}
		deposited += sum
		if len(ds) > 0 {
			deposits = append(deposits, object{"vaultAddress": v.address.Hex(), "_sum": object{"assetAmount": dec(sum)}, "_count": len(ds)})
		}
		if len(rs) > 0 {
			withdrawals = append(withdrawals, object{"vaultAddress": v.address.Hex(), "_sum": object{"assetsEstimate": dec(estimate)}, "_count": len(rs)})
		}
	}
	return object{
		"address": address.Hex(), "firstSeen": iso(firstSeen(o.live, address, nil)), "totalDeposited": dec(deposited), "totalWithdrawn": dec(withdrawn),
		"holdings": object{"deposits": deposits, "withdrawals": withdrawals},
	}
}

func (o *oracle) partnerStats(id uint32, name string) object {
	var volume int64
	count, users, byVault := 0, map[common.Address]bool{}, []any{}
	for _, v := range o.vaults {
		var sum int64
		mine := o.of(aDeposit, func(e entry) bool { return e.partner == id && e.vault == v.address })
		for _, d := range mine {
			sum += d.assets
			users[d.user] = true
		}
		volume += sum
		count += len(mine)
		if len(mine) > 0 {
			byVault = append(byVault, object{"vaultAddress": v.address.Hex(), "depositCount": len(mine), "totalVolume": dec(sum)})
		}
	}
	return object{"partnerId": id, "partnerName": name, "totalDeposits": count, "totalVolume": dec(volume), "uniqueUsers": len(users), "byVault": byVault}
}

// same compares an answer with what the oracle says, by their JSON.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	g, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	w, err := json.MarshalIndent(want, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if string(g) != string(w) {
		t.Fatalf("%s\n got %s\nwant %s", what, g, w)
	}
}

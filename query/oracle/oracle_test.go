// Package oracle computes the API's responses from the list of live facts, with loops over Go values: without SQL,
// and without the types of the code under test. Its tests compare every response about random histories with it.
package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/readtest"
)

var same = readtest.Same

// Oracle computes responses about one state.
type Oracle struct {
	live   []readtest.Entry  // facts that are not retracted, in the order of the log
	logs   []readtest.Entry  // all facts up to the block, also retracted ones, in the order of the log
	gone   map[uint64]uint64 // which of them were retracted, and by which record
	reorgs []reorganisation  // the reorganisations of blocks up to the block, oldest first
	now    uint32            // time of the newest block
	vaults []vault
}

type vault struct {
	address common.Address
	name    string
	start   uint64
}

// At returns the oracle of a log's state at a seq and up to a block; one of the blocks up to it must be indexed.
func At(l *readtest.Log, seq, block uint64) *Oracle {
	o := &Oracle{gone: map[uint64]uint64{}}
	for _, e := range l.Live(seq, block) {
		if !e.Quarantined {
			o.live = append(o.live, e)
		}
	}
	newest := uint64(0)
	for _, e := range l.Live(seq, 1<<62) {
		if e.Kind == readtest.Block {
			newest = max(newest, e.Block)
		}
	}
	for _, e := range l.Entries[:seq] {
		switch {
		case e.Retracts != 0:
			o.gone[e.Retracts] = e.Seq
		case e.Block <= min(block, newest) && e.Kind != readtest.Block && e.Kind != readtest.Vault:
			o.logs = append(o.logs, e)
		}
	}
	o.reorgs = reorganisationsOf(l.Entries[:seq], min(block, newest))
	clock := uint64(0)
	for _, e := range o.live {
		if e.Kind == readtest.Block && e.Block >= clock {
			clock, o.now = e.Block, e.At()
		}
	}
	for _, e := range l.Live(seq, 1<<62) { // a vault's properties do not depend on the block
		if e.Kind == readtest.Vault {
			o.vaults = append(o.vaults, vault{common.BytesToAddress(e.Meta.Address), e.Meta.Name, e.Meta.StartBlock})
		}
	}
	slices.SortStableFunc(o.vaults, func(a, b vault) int {
		return cmp.Or(cmp.Compare(a.start, b.start), a.address.Cmp(b.address))
	})
	return o
}

type object = map[string]any

func iso(ts uint32) string {
	return time.Unix(int64(ts), 0).UTC().Format("2006-01-02T15:04:05") + ".000Z"
}

// at returns the time of a fact, or null if there is none.
func at(e *readtest.Entry) any {
	if e == nil {
		return nil
	}
	return iso(e.At())
}

func dec[T ~int64 | ~uint64](n T) string { return fmt.Sprint(n) }

func (o *Oracle) name(vault common.Address) string {
	for _, v := range o.vaults {
		if v.address == vault {
			return v.name
		}
	}
	return ""
}

// of returns the live facts of a kind, in chain order.
func (o *Oracle) of(k readtest.Kind, keep func(readtest.Entry) bool) []readtest.Entry {
	var out []readtest.Entry
	for _, e := range o.live {
		if e.Kind == k && (keep == nil || keep(e)) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, inChain)
	return out
}

// inChain compares by chain order.
func inChain(a, b readtest.Entry) int {
	return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Index, b.Index))
}

func inVault(v common.Address) func(readtest.Entry) bool {
	return func(e readtest.Entry) bool { return e.Fact.Vault == v }
}
func ofUser(u common.Address) func(readtest.Entry) bool {
	return func(e readtest.Entry) bool { return e.User == u }
}

func (o *Oracle) vaultList() []any {
	out := []any{}
	for _, v := range o.vaults {
		out = append(out, o.vault(v))
	}
	return out
}

func (o *Oracle) vault(v vault) object {
	out := object{
		"address": v.address.Hex(), "name": v.name, "symbol": "nv" + v.name, "chainId": readtest.ChainID, "decimals": 18,
		"asset":       object{"address": "0x5555555555555555555555555555555555555555", "symbol": "USDX", "decimals": 6},
		"totalAssets": nil, "totalSupply": nil, "navPerShare": nil, "navUpdatedAt": nil, "startBlock": dec(v.start),
		"capabilities": object{"deposits": true, "expiry": true, "nav": true, "partners": true, "queue": true, "settlement": true, "sweeps": true},
		"kinds": []any{
			"DepositAccepted", "WithdrawalRequested", "WithdrawalFunded", "WithdrawalClaimed", "WithdrawalCancelled",
			"WithdrawalExpired", "NavUpdated", "DepositsSwept", "WithdrawalsSettled",
		},
	}
	if navs := o.of(readtest.Nav, inVault(v.address)); len(navs) > 0 {
		n := navs[len(navs)-1]
		out["totalAssets"], out["totalSupply"], out["navPerShare"], out["navUpdatedAt"] = dec(n.Assets), dec(n.Supply), dec(n.Price), iso(n.At())
	}
	return out
}

func (o *Oracle) vaultDetail(v vault) object {
	out, users, pending := o.vault(v), map[common.Address]bool{}, 0
	for _, e := range o.live {
		if e.Fact.Vault == v.address && (e.Kind == readtest.Deposit || e.Kind == readtest.Request) {
			users[e.User] = true
		}
	}
	for _, r := range o.requests(inVault(v.address)) {
		if r["status"] == "queued" {
			pending++
		}
	}
	stats := object{"userCount": len(users), "pendingWithdrawals": pending, "lastSweepAt": nil, "lastNavAt": nil}
	for field, k := range map[string]readtest.Kind{"lastSweepAt": readtest.Sweep, "lastNavAt": readtest.Nav} {
		if all := o.of(k, inVault(v.address)); len(all) > 0 {
			stats[field] = iso(all[len(all)-1].At())
		}
	}
	out["stats"] = stats
	for _, field := range []string{"description", "managementFee", "performanceFee", "link"} {
		out[field] = nil // the operator says nothing
	}
	return out
}

func (o *Oracle) navs(v vault) []any {
	out := []any{}
	for _, n := range slices.Backward(o.of(readtest.Nav, inVault(v.address))) {
		out = append(out, object{
			"id": id(n), "vaultAddress": v.address.Hex(), "vaultName": v.name,
			"navPerShare": dec(n.Price), "totalAssets": dec(n.Assets), "totalSupply": dec(n.Supply), "timestamp": iso(n.At()),
			"blockNumber": dec(n.Block), "txHash": n.Tx.Hex(), "logIndex": n.Index,
		})
	}
	return out
}

func (o *Oracle) deposit(d readtest.Entry) object {
	out := object{
		"id": id(d), "vaultAddress": d.Fact.Vault.Hex(), "vaultName": o.name(d.Fact.Vault),
		"userAddress": d.User.Hex(), "senderAddress": d.Other.Hex(), "assetAmount": dec(d.Assets), "shares": dec(d.Shares),
		"sweptAt": nil, "txHash": d.Tx.Hex(), "blockNumber": dec(d.Block), "logIndex": d.Index, "timestamp": iso(d.At()),
	}
	if d.Partner != 0 {
		out["partnerId"] = d.Partner
	}
	if swept := o.sweptBy(d); swept != nil {
		out["sweptAt"] = iso(swept.At())
	}
	return out
}

// sweptBy returns the log that swept a deposit: the first sweep whose last number is at least the deposit's, or the
// deposit itself if it came after that sweep; nil if it is not swept.
func (o *Oracle) sweptBy(d readtest.Entry) *readtest.Entry {
	for _, s := range o.of(readtest.Sweep, inVault(d.Fact.Vault)) {
		if d.ID > s.To {
			continue
		}
		if inChain(s, d) < 0 {
			return &d
		}
		return &s
	}
	return nil
}

func (o *Oracle) depositsNewestFirst(keep func(readtest.Entry) bool) []any {
	out := []any{}
	for _, d := range slices.Backward(o.of(readtest.Deposit, keep)) {
		out = append(out, o.deposit(d))
	}
	return out
}

// requests returns the requests that match keep, oldest first. The first request of an index counts; the first claim,
// cancellation or expiry after it ends it; logs before it or after its end have no effect.
func (o *Oracle) requests(keep func(readtest.Entry) bool) []object {
	var out []object
	for _, asked := range o.firstRequests(keep) {
		var funded, end *readtest.Entry
		for _, e := range o.after(asked) {
			if end == nil && e.Kind == readtest.Funding && funded == nil {
				funded = &e
			} else if end == nil && e.Kind != readtest.Funding {
				end = &e
			}
		}
		out = append(out, o.request(asked, funded, end))
	}
	return out
}

// firstRequests returns the logs of the requests that match keep: the first of each index.
func (o *Oracle) firstRequests(keep func(readtest.Entry) bool) (out []readtest.Entry) {
	type index struct {
		vault common.Address
		id    uint64
	}
	seen := map[index]bool{}
	for _, asked := range o.of(readtest.Request, nil) {
		named := index{asked.Fact.Vault, asked.ID}
		if !seen[named] && (keep == nil || keep(asked)) {
			out = append(out, asked)
		}
		seen[named] = true
	}
	return out
}

// after returns the later logs about a request.
func (o *Oracle) after(asked readtest.Entry) []readtest.Entry {
	var out []readtest.Entry
	for _, e := range o.live {
		switch e.Kind {
		case readtest.Funding, readtest.Claim, readtest.Cancel, readtest.Expiry:
			later := e.Block > asked.Block || e.Block == asked.Block && e.Index > asked.Index
			if later && e.Fact.Vault == asked.Fact.Vault && e.ID == asked.ID {
				out = append(out, e)
			}
		}
	}
	slices.SortFunc(out, inChain)
	return out
}

func (o *Oracle) request(r readtest.Entry, funded, end *readtest.Entry) object {
	w := object{
		"id": id(r), "vaultAddress": r.Fact.Vault.Hex(), "vaultName": o.name(r.Fact.Vault),
		"userAddress": r.User.Hex(), "receiverAddress": r.Other.Hex(), "requestIndex": dec(r.ID), "shares": dec(r.Shares),
		"assetsEstimate": dec(r.Assets), "status": "queued", "claimable": false, "assetsClaimable": "0", "assetsClaimed": "0",
		"requestedAt": at(&r), "expiresAt": nil, "fundedAt": at(funded), "claimedAt": nil, "cancelledAt": nil, "expiredAt": nil,
		"txHash": r.Tx.Hex(), "blockNumber": dec(r.Block), "logIndex": r.Index, "timestamp": at(&r),
	}
	if r.Partner != 0 {
		w["partnerId"] = r.Partner
	}
	if r.Expires != 0 {
		w["expiresAt"] = iso(uint32(r.Expires))
	}
	switch {
	case end != nil && end.Kind == readtest.Claim:
		w["status"], w["claimedAt"], w["assetsClaimed"] = "claimed", at(end), dec(end.Assets)
	case end != nil && end.Kind == readtest.Cancel:
		w["status"], w["cancelledAt"] = "cancelled", at(end)
	case end != nil:
		w["status"], w["expiredAt"] = "expired", at(end)
	case funded != nil:
		w["claimable"], w["assetsClaimable"] = true, dec(funded.Assets)
	case r.Expires != 0 && r.Expires <= uint64(o.now):
		w["status"], w["expiredAt"] = "expired", w["expiresAt"]
	}
	return w
}

func (o *Oracle) withStatus(status string, keep func(readtest.Entry) bool, newestFirst bool) []any {
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

// swept returns the highest deposit id that a sweep of the vault reached.
func (o *Oracle) swept(v common.Address) uint64 {
	var last uint64
	for _, s := range o.of(readtest.Sweep, inVault(v)) {
		last = max(last, s.To)
	}
	return last
}

func (o *Oracle) unswept(v common.Address) []readtest.Entry {
	return o.of(readtest.Deposit, func(e readtest.Entry) bool { return e.Fact.Vault == v && e.ID > o.swept(v) })
}

func (o *Oracle) depositQueue(vaults ...vault) []any {
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

func (o *Oracle) settlement() []any {
	out := []any{}
	for _, v := range o.vaults {
		var sweep, fund, waiting int64
		for _, d := range o.unswept(v.address) {
			sweep += d.Assets
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

// usersIn returns the users of a vault with their totals there.
func (o *Oracle) usersIn(vault common.Address, field string, descending bool) []any {
	there := *o
	there.live = nil
	for _, e := range o.live {
		if e.Fact.Vault == vault {
			there.live = append(there.live, e)
		}
	}
	return there.users(field, descending)
}

// users returns the users, sorted by the block of their first deposit or request, or by what they deposited or
// withdrew. Ties are sorted by address, in the same direction.
func (o *Oracle) users(field string, descending bool) []any {
	type user struct {
		address common.Address
		key     int64
		json    object
	}
	var all []user
	for _, address := range o.userAddresses() {
		u := user{address: address, json: o.user(address)}
		if field == "firstSeen" {
			u.key = int64(o.firstSeen(address).Block)
		} else {
			u.key, _ = strconv.ParseInt(u.json[field].(string), 10, 64)
		}
		delete(u.json, "holdings")
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b user) int { return cmp.Or(cmp.Compare(a.key, b.key), a.address.Cmp(b.address)) })
	if descending {
		slices.Reverse(all)
	}
	out := []any{}
	for _, u := range all {
		out = append(out, u.json)
	}
	return out
}

// firstSeen returns the first deposit or request of a user.
func (o *Oracle) firstSeen(user common.Address) readtest.Entry {
	all := append(o.of(readtest.Deposit, ofUser(user)), o.of(readtest.Request, ofUser(user))...)
	return slices.MinFunc(all, inChain)
}

func (o *Oracle) userAddresses() []common.Address {
	seen := map[common.Address]bool{}
	var out []common.Address
	for _, e := range o.live {
		if (e.Kind == readtest.Deposit || e.Kind == readtest.Request) && !seen[e.User] {
			seen[e.User] = true
			out = append(out, e.User)
		}
	}
	return out
}

// user returns a user with holdings, or nil for an address that is not a user.
func (o *Oracle) user(address common.Address) object {
	if !slices.Contains(o.userAddresses(), address) {
		return nil
	}
	var deposited, withdrawn int64
	deposits, withdrawals := []any{}, []any{}
	for _, v := range o.vaults {
		var sum, estimate int64
		mine := func(e readtest.Entry) bool { return e.Fact.Vault == v.address && e.User == address }
		ds, rs := o.of(readtest.Deposit, mine), o.firstRequests(mine)
		for _, d := range ds {
			sum += d.Assets
		}
		for _, r := range rs {
			estimate += r.Assets
		}
		var claimed int64
		claims := o.of(readtest.Claim, mine)
		for _, c := range claims {
			claimed += c.Assets
		}
		withdrawn += claimed
		deposited += sum
		if len(ds) > 0 {
			deposits = append(deposits, object{"vaultAddress": v.address.Hex(), "_sum": object{"assetAmount": dec(sum)}, "_count": len(ds)})
		}
		if len(rs) > 0 || len(claims) > 0 { // a claim may pay a user without a request of its own
			withdrawals = append(withdrawals, object{"vaultAddress": v.address.Hex(), "_sum": object{"assetsEstimate": dec(estimate), "assetsClaimed": dec(claimed)}, "_count": len(rs)})
		}
	}
	return object{
		"address": address.Hex(), "firstSeen": iso(o.firstSeen(address).At()), "totalDeposited": dec(deposited), "totalWithdrawn": dec(withdrawn),
		"holdings": object{"deposits": deposits, "withdrawals": withdrawals},
	}
}

func (o *Oracle) partnerStats(id uint32, name string) object {
	var volume int64
	count, users, byVault := 0, map[common.Address]bool{}, []any{}
	for _, v := range o.vaults {
		var sum int64
		mine := o.of(readtest.Deposit, func(e readtest.Entry) bool { return e.Partner == id && e.Fact.Vault == v.address })
		for _, d := range mine {
			sum += d.Assets
			users[d.User] = true
		}
		volume += sum
		count += len(mine)
		if len(mine) > 0 {
			byVault = append(byVault, object{"vaultAddress": v.address.Hex(), "depositCount": len(mine), "totalVolume": dec(sum)})
		}
	}
	return object{"partnerId": id, "partnerName": name, "totalDeposits": count, "totalVolume": dec(volume), "uniqueUsers": len(users), "byVault": byVault}
}

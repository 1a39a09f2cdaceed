package oracle

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// What the API must say about a state, as trees for Diff. A JSON number is a json.Number here; the decimal strings of
// amounts and blocks are strings.

type Object = map[string]any

func integer[N int | uint | uint8 | uint32 | uint64](n N) json.Number {
	return json.Number(fmt.Sprint(n))
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// instant formats a time. The format has no year after 9999: later times become the last second that it has.
func instant(unixSeconds uint64) string {
	const last = 253_402_300_799
	return time.Unix(int64(min(unixSeconds, last)), 0).UTC().Format("2006-01-02T15:04:05.000Z")
}

// instantOrNull returns null for something that never happened.
func instantOrNull(unixSeconds uint64) any {
	if unixSeconds == 0 {
		return nil
	}
	return instant(unixSeconds)
}

func sum[T any](of []T, amount func(T) *big.Int) *big.Int {
	total := new(big.Int)
	for _, item := range of {
		total.Add(total, amount(item))
	}
	return total
}

// items renders a list. An empty one is [] instead of null.
func items[T any](of []T, render func(T) Object) []any {
	list := make([]any, 0, len(of))
	for _, item := range of {
		list = append(list, render(item))
	}
	return list
}

// place returns what every item of a list says about its log.
func (f Fact) place(s *State) Object {
	return Object{
		"id":           fmt.Sprintf("%s-%d", f.Tx.Hex(), f.Index),
		"vaultAddress": f.Vault.Hex(),
		"vaultName":    s.vaults[f.Vault].name,
		"txHash":       f.Tx.Hex(),
		"blockNumber":  decimal(f.Block),
		"logIndex":     integer(f.Index),
		"timestamp":    instant(f.Time),
	}
}

// ordered returns the vaults in the order of the API.
func (s *State) ordered() []*vaultState {
	var all []*vaultState
	for _, v := range s.history.vaults {
		all = append(all, s.vaults[v.address])
	}
	slices.SortFunc(all, func(a, b *vaultState) int {
		if a.startBlock != b.startBlock {
			return int(a.startBlock) - int(b.startBlock)
		}
		return a.address.Cmp(b.address)
	})
	return all
}

func (s *State) vaultJSON(v *vaultState) Object {
	o := Object{
		"address":  v.address.Hex(),
		"name":     v.name,
		"symbol":   v.symbol,
		"chainId":  integer(s.history.chainID),
		"decimals": integer(v.decimals),
		"asset": Object{
			"address":  v.asset.address.Hex(),
			"symbol":   v.asset.symbol,
			"decimals": integer(v.asset.decimals),
		},
		"totalAssets":  nil,
		"totalSupply":  nil,
		"navPerShare":  nil,
		"navUpdatedAt": nil,
		"startBlock":   decimal(v.startBlock),
		// The reference contracts emit all events.
		"capabilities": Object{"deposits": true, "expiry": true, "nav": true, "partners": true, "queue": true,
			"settlement": true, "sweeps": true},
		"kinds": []any{
			"DepositAccepted", "WithdrawalRequested", "WithdrawalFunded", "WithdrawalClaimed", "WithdrawalCancelled",
			"WithdrawalExpired", "NavUpdated", "DepositsSwept", "WithdrawalsSettled",
		},
	}
	if v.preset != "" {
		o["capabilities"] = Object{"deposits": true, "expiry": false, "nav": true, "partners": false,
			"queue": v.preset == erc7540, "settlement": false, "sweeps": false}
		o["kinds"] = []any{"Deposit", "Withdraw", "Transfer"}
	}
	if v.preset == erc7540 {
		o["kinds"] = []any{"Deposit", "RedeemRequest", "Withdraw", "Transfer"}
	}
	if n := v.lastNav; n != nil {
		o["totalAssets"] = n.TotalAssets.String()
		o["totalSupply"] = n.TotalSupply.String()
		o["navPerShare"] = n.NavPerShare.String()
		o["navUpdatedAt"] = instant(n.Time)
	}
	return o
}

func (s *State) vaultDetailJSON(v *vaultState) Object {
	o := s.vaultJSON(v)
	pending := 0
	for _, r := range v.requests {
		if s.status(r) == "queued" {
			pending++
		}
	}
	stats := Object{
		"userCount":          integer(len(v.users)),
		"pendingWithdrawals": integer(pending),
		"lastSweepAt":        instantOrNull(v.lastSweep),
		"lastNavAt":          nil,
	}
	if v.preset == erc4626 {
		stats["pendingWithdrawals"] = nil
	}
	if v.lastNav != nil {
		stats["lastNavAt"] = instant(v.lastNav.Time)
	}
	o["stats"] = stats
	for _, field := range []string{"description", "managementFee", "performanceFee", "link"} {
		o[field] = nil // an operator's setting, which no check has
	}
	return o
}

func (s *State) navJSON(n navState) Object {
	o := n.place(s)
	if n.Index == sampleIndex {
		o["id"], o["txHash"], o["logIndex"] = fmt.Sprintf("%s-%d", n.Vault.Hex(), n.Block), nil, nil
	}
	o["navPerShare"] = n.NavPerShare.String()
	o["totalAssets"] = n.TotalAssets.String()
	o["totalSupply"] = n.TotalSupply.String()
	return o
}

func (s *State) depositJSON(d *depositState) Object {
	o := d.place(s)
	o["userAddress"] = d.Owner.Hex()
	o["senderAddress"] = d.Sender.Hex()
	o["assetAmount"] = d.Assets.String()
	o["shares"] = d.Shares.String()
	o["sweptAt"] = instantOrNull(d.sweptAt)
	if d.PartnerID != 0 {
		o["partnerId"] = integer(d.PartnerID)
	}
	return o
}

func (s *State) requestJSON(r *requestState) Object {
	o := r.place(s)
	o["userAddress"] = r.Owner.Hex()
	o["receiverAddress"] = r.Receiver.Hex()
	o["requestIndex"] = r.RequestIndex.String()
	o["shares"] = r.Shares.String()
	o["assetsEstimate"] = r.AssetsEstimate.String()
	o["status"] = s.status(r)
	o["claimable"] = s.claimable(r)
	o["assetsClaimable"] = "0"
	if s.claimable(r) {
		o["assetsClaimable"] = r.fundedAssets.String()
	}
	o["assetsClaimed"] = "0"
	if r.claimedAt != 0 && r.until == nil {
		o["assetsClaimed"] = r.claimedAssets.String()
	}
	if r.PartnerID != 0 {
		o["partnerId"] = integer(r.PartnerID)
	}
	o["requestedAt"] = instant(r.Time)
	o["expiresAt"] = instantOrNull(r.ExpiresAt)
	o["fundedAt"] = instantOrNull(r.fundedAt)
	o["claimedAt"] = instantOrNull(r.claimedAt)
	o["cancelledAt"] = instantOrNull(r.cancelledAt)
	o["expiredAt"] = instantOrNull(r.expiredAt)
	if s.status(r) == "expired" && r.expiredAt == 0 {
		o["expiredAt"] = instant(r.ExpiresAt)
	}
	if r.until != nil { // no log says who is paid, what the shares are worth, and what a claim paid for which request
		o["assetsEstimate"], o["receiverAddress"] = nil, nil
		if r.claimedAt != 0 {
			o["assetsClaimed"] = nil
		}
	}
	return o
}

func (s *State) userJSON(u *userState) Object {
	return Object{
		"address":        u.address.Hex(),
		"firstSeen":      instant(u.firstSeen),
		"totalDeposited": u.deposited.String(),
		"totalWithdrawn": u.withdrawn.String(),
	}
}

// userWithHoldingsJSON lists the vaults in which the user has something.
func (s *State) userWithHoldingsJSON(u *userState) Object {
	o := s.userJSON(u)
	deposits, withdrawals := []any{}, []any{}
	for _, v := range s.ordered() {
		if of := filter(s.deposits,
			func(d *depositState) bool { return d.Owner == u.address && d.Vault == v.address }); len(of) > 0 {
			assets := sum(of, func(d *depositState) *big.Int { return d.Assets })
			deposits = append(deposits, Object{
				"vaultAddress": v.address.Hex(), "_sum": Object{"assetAmount": assets.String()}, "_count": integer(len(of)),
			})
		}
		of := filter(s.requests, func(r *requestState) bool { return r.Owner == u.address && r.Vault == v.address })
		claims := filter(s.claims, func(c claimState) bool { return c.owner == u.address && c.Fact.Vault == v.address })
		if len(of) > 0 || len(claims) > 0 { // a claim may be of a user without a request
			paid := s.paidIn(v.address, u.address)
			estimate := sum(of, func(r *requestState) *big.Int { return r.AssetsEstimate })
			withdrawals = append(withdrawals, Object{
				"vaultAddress": v.address.Hex(),
				"_sum":         Object{"assetsEstimate": estimate.String(), "assetsClaimed": paid.String()},
				"_count":       integer(len(of)),
			})
		}
	}
	o["holdings"] = Object{"deposits": deposits, "withdrawals": withdrawals}
	return o
}

// queueGroupJSON renders a vault in GET /queues/deposits.
func (s *State) queueGroupJSON(v *vaultState) Object {
	return Object{
		"vaultAddress": v.address.Hex(),
		"vaultName":    v.name,
		"deposits":     items(v.unswept(), s.depositJSON),
		"count":        integer(len(v.unswept())),
	}
}

func (s *State) settlementJSON(v *vaultState) Object {
	toFund := filter(s.requests, func(r *requestState) bool {
		return r.Vault == v.address && s.status(r) == "queued" && r.fundedAt == 0
	})
	if v.preset != "" {
		none := Object{"count": nil, "totalAmount": nil}
		unfunded := none
		if v.preset == erc7540 { // no log says what they are worth
			unfunded = Object{"count": integer(len(toFund)), "totalAmount": nil}
		}
		return Object{"vaultAddress": v.address.Hex(), "vaultName": v.name, "depositsToSweep": none,
			"withdrawalsToFund": unfunded}
	}
	return Object{
		"vaultAddress": v.address.Hex(),
		"vaultName":    v.name,
		"depositsToSweep": Object{
			"count":       integer(len(v.unswept())),
			"totalAmount": sum(v.unswept(), func(d *depositState) *big.Int { return d.Assets }).String(),
		},
		"withdrawalsToFund": Object{
			"count":       integer(len(toFund)),
			"totalAmount": sum(toFund, func(r *requestState) *big.Int { return r.AssetsEstimate }).String(),
		},
	}
}

// partnerStatsJSON lists the vaults in which the partner has deposits.
func (s *State) partnerStatsJSON(p Partner) Object {
	all := filter(s.deposits, func(d *depositState) bool { return d.PartnerID == p.ID })
	users := map[common.Address]bool{}
	for _, d := range all {
		users[d.Owner] = true
	}
	byVault := []any{}
	for _, v := range s.ordered() {
		if of := filter(s.deposits,
			func(d *depositState) bool { return d.PartnerID == p.ID && d.Vault == v.address }); len(of) > 0 {
			byVault = append(byVault, Object{
				"vaultAddress": v.address.Hex(),
				"depositCount": integer(len(of)),
				"totalVolume":  sum(of, func(d *depositState) *big.Int { return d.Assets }).String(),
			})
		}
	}
	return Object{
		"partnerId":     integer(p.ID),
		"partnerName":   p.Name,
		"totalDeposits": integer(len(all)),
		"totalVolume":   sum(all, func(d *depositState) *big.Int { return d.Assets }).String(),
		"uniqueUsers":   integer(len(users)),
		"byVault":       byVault,
	}
}

// filter returns the elements that pass the filter, in the same order.
func filter[T any](all []T, pass func(T) bool) []T {
	var kept []T
	for _, item := range all {
		if pass(item) {
			kept = append(kept, item)
		}
	}
	return kept
}

// newestFirst reverses a list that is in chain order.
func newestFirst[T any](of []T) []T {
	of = slices.Clone(of)
	slices.Reverse(of)
	return of
}

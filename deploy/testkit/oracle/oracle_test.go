package oracle

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi/bind"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/contracts"
)

// Addresses of digits only look the same with a checksum.
var (
	vaultA = common.HexToAddress("0x1000000000000000000000000000000000000001")
	vaultB = common.HexToAddress("0x2000000000000000000000000000000000000002")
	anna   = common.HexToAddress("0x3000000000000000000000000000000000000003")
	bert   = common.HexToAddress("0x4000000000000000000000000000000000000004")
	router = common.HexToAddress("0x5000000000000000000000000000000000000005")
)

// blockTime returns the time of a block of the hand-written history: one block per minute from 2026-01-01T00:00:00Z.
func blockTime(block uint64) uint64 { return 1767225600 + 60*block }

// written is a history of ten blocks. The tests below contain figures for it that were calculated by hand.
func written() *History {
	h := &History{chainID: 7, router: router, Final: 6}
	for block := range uint64(11) {
		h.Times = append(h.Times, blockTime(block))
	}
	for i, address := range []common.Address{vaultA, vaultB} {
		v := vault{address: address, startBlock: uint64(2 - i), name: []string{"A vault", "B vault"}[i],
			symbol: []string{"vA", "vB"}[i], decimals: 6}
		v.asset.address, v.asset.symbol, v.asset.decimals = router, "USD", 18
		h.vaults = append(h.vaults, v)
	}
	n := big.NewInt
	add := func(v common.Address, block uint64, index uint, event any) {
		h.Facts = append(h.Facts, Fact{v, block, blockTime(block), common.BigToHash(n(int64(block))), index, event})
	}
	add(vaultA, 2, 1, contracts.DepositAccepted{DepositID: n(1), Owner: anna, Sender: anna, Assets: n(100), Shares: n(90)})
	add(vaultA, 3, 0, contracts.DepositAccepted{DepositID: n(2), Owner: bert, PartnerID: 1, Sender: router, Assets: n(50),
		Shares: n(45)})
	add(vaultB, 3, 4, contracts.DepositAccepted{DepositID: n(1), Owner: bert, PartnerID: 1, Sender: bert, Assets: n(7),
		Shares: n(7)})
	add(vaultA, 4, 0, contracts.NavUpdated{NavID: n(1), NavPerShare: n(11), TotalAssets: n(12), TotalSupply: n(13)})
	add(vaultA, 4, 1, contracts.DepositsSwept{SweepID: n(1), FromDepositID: n(1), ToDepositID: n(1), Assets: n(100)})
	add(vaultA, 5, 0, contracts.WithdrawalRequested{RequestIndex: n(0), Owner: anna, PartnerID: 2, Receiver: bert,
		Shares: n(10), AssetsEstimate: n(11)})
	add(vaultA, 5, 1, contracts.WithdrawalRequested{RequestIndex: n(1), Owner: anna, Receiver: anna, Shares: n(20),
		AssetsEstimate: n(22), ExpiresAt: blockTime(7)})
	add(vaultA, 5, 2, contracts.WithdrawalRequested{RequestIndex: n(2), Owner: bert, Receiver: bert, Shares: n(5),
		AssetsEstimate: n(6)})
	add(vaultA, 6, 0, contracts.WithdrawalFunded{RequestIndex: n(0), Owner: anna, SettlementID: n(1), Shares: n(10),
		Assets: n(12)})
	add(vaultA, 8, 0, contracts.WithdrawalClaimed{RequestIndex: n(0), Owner: anna, Receiver: bert, Shares: n(10),
		Assets: n(12)})
	add(vaultA, 9, 0, contracts.WithdrawalExpired{RequestIndex: n(1), Owner: anna, Shares: n(20)})
	add(vaultA, 10, 0, contracts.WithdrawalCancelled{RequestIndex: n(2), Owner: bert, Shares: n(5)})
	return h
}

func mustAt(t *testing.T, h *History, block uint64) *State {
	t.Helper()
	s, err := h.at(block)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wantJSON compares a tree of the oracle with hand-written JSON.
func wantJSON(t *testing.T, what string, got any, want string) {
	t.Helper()
	for _, line := range Diff(mustTree(t, want), got) {
		t.Errorf("%s: %s", what, line)
	}
}

const place5 = `"vaultAddress":"0x1000000000000000000000000000000000000001","vaultName":"A vault",` +
	`"txHash":"0x0000000000000000000000000000000000000000000000000000000000000005","blockNumber":"5","timestamp":"2026-01-01T00:05:00.000Z","requestedAt":"2026-01-01T00:05:00.000Z"`

func TestOracleOnAVault(t *testing.T) {
	s := mustAt(t, written(), 10)
	list := s.ordered()
	if list[0].address != vaultB || list[1].address != vaultA {
		t.Errorf("the vaults come as %s, %s", list[0].address, list[1].address)
	}
	wantJSON(t, "vault A", s.vaultDetailJSON(s.vaults[vaultA]), `{
		"address":"0x1000000000000000000000000000000000000001","name":"A vault","symbol":"vA","chainId":7,"decimals":6,
		"asset":{"address":"0x5000000000000000000000000000000000000005","symbol":"USD","decimals":18},
		"totalAssets":"12","totalSupply":"13","navPerShare":"11","navUpdatedAt":"2026-01-01T00:04:00.000Z","startBlock":"2","capabilities":{"deposits":true,"expiry":true,"nav":true,"partners":true,"queue":true,"settlement":true,"sweeps":true},
		"kinds":["DepositAccepted","WithdrawalRequested","WithdrawalFunded","WithdrawalClaimed","WithdrawalCancelled","WithdrawalExpired","NavUpdated","DepositsSwept","WithdrawalsSettled"],
		"stats":{"userCount":2,"pendingWithdrawals":0,"lastSweepAt":"2026-01-01T00:04:00.000Z","lastNavAt":"2026-01-01T00:04:00.000Z"},
		"description":null,"managementFee":null,"performanceFee":null,"link":null}`)
	wantJSON(t, "vault B", s.vaultDetailJSON(s.vaults[vaultB]), `{
		"address":"0x2000000000000000000000000000000000000002","name":"B vault","symbol":"vB","chainId":7,"decimals":6,
		"asset":{"address":"0x5000000000000000000000000000000000000005","symbol":"USD","decimals":18},
		"totalAssets":null,"totalSupply":null,"navPerShare":null,"navUpdatedAt":null,"startBlock":"1","capabilities":{"deposits":true,"expiry":true,"nav":true,"partners":true,"queue":true,"settlement":true,"sweeps":true},
		"kinds":["DepositAccepted","WithdrawalRequested","WithdrawalFunded","WithdrawalClaimed","WithdrawalCancelled","WithdrawalExpired","NavUpdated","DepositsSwept","WithdrawalsSettled"],
		"stats":{"userCount":1,"pendingWithdrawals":0,"lastSweepAt":null,"lastNavAt":null},
		"description":null,"managementFee":null,"performanceFee":null,"link":null}`)
	wantJSON(t, "NAV history", items(s.navs, s.navJSON), `[{
		"id":"0x0000000000000000000000000000000000000000000000000000000000000004-0",
		"vaultAddress":"0x1000000000000000000000000000000000000001","vaultName":"A vault","navPerShare":"11","totalAssets":"12","totalSupply":"13",
		"timestamp":"2026-01-01T00:04:00.000Z","blockNumber":"4","txHash":"0x0000000000000000000000000000000000000000000000000000000000000004","logIndex":0}]`)
}

func TestOracleOnDeposits(t *testing.T) {
	s := mustAt(t, written(), 10)
	wantJSON(t, "anna's deposit", s.depositJSON(s.deposits[0]), `{
		"id":"0x0000000000000000000000000000000000000000000000000000000000000002-1",
		"vaultAddress":"0x1000000000000000000000000000000000000001","vaultName":"A vault",
		"userAddress":"0x3000000000000000000000000000000000000003","senderAddress":"0x3000000000000000000000000000000000000003",
		"assetAmount":"100","shares":"90","sweptAt":"2026-01-01T00:04:00.000Z","txHash":"0x0000000000000000000000000000000000000000000000000000000000000002",
		"blockNumber":"2","logIndex":1,"timestamp":"2026-01-01T00:02:00.000Z"}`)
	wantJSON(t, "bert's deposits",
		items(newestFirst(filter(s.deposits, func(d *depositState) bool { return d.Owner == bert })), s.depositJSON), `[{
		"id":"0x0000000000000000000000000000000000000000000000000000000000000003-4",
		"vaultAddress":"0x2000000000000000000000000000000000000002","vaultName":"B vault",
		"userAddress":"0x4000000000000000000000000000000000000004","senderAddress":"0x4000000000000000000000000000000000000004",
		"assetAmount":"7","shares":"7","partnerId":1,"sweptAt":null,"txHash":"0x0000000000000000000000000000000000000000000000000000000000000003",
		"blockNumber":"3","logIndex":4,"timestamp":"2026-01-01T00:03:00.000Z"},{
		"id":"0x0000000000000000000000000000000000000000000000000000000000000003-0",
		"vaultAddress":"0x1000000000000000000000000000000000000001","vaultName":"A vault",
		"userAddress":"0x4000000000000000000000000000000000000004","senderAddress":"0x5000000000000000000000000000000000000005",
		"assetAmount":"50","shares":"45","partnerId":1,"sweptAt":null,"txHash":"0x0000000000000000000000000000000000000000000000000000000000000003",
		"blockNumber":"3","logIndex":0,"timestamp":"2026-01-01T00:03:00.000Z"}]`)
	wantJSON(t, "anna's deposit before the sweep", mustAt(t, written(), 3).deposits[0].sweptAt == 0, `true`)
}

func TestOracleOnUsers(t *testing.T) {
	s := mustAt(t, written(), 10)
	wantJSON(t, "anna", s.userWithHoldingsJSON(s.users[anna]), `{
		"address":"0x3000000000000000000000000000000000000003","firstSeen":"2026-01-01T00:02:00.000Z","totalDeposited":"100","totalWithdrawn":"12",
		"holdings":{
			"deposits":[{"vaultAddress":"0x1000000000000000000000000000000000000001","_sum":{"assetAmount":"100"},"_count":1}],
			"withdrawals":[{"vaultAddress":"0x1000000000000000000000000000000000000001","_sum":{"assetsEstimate":"33","assetsClaimed":"12"},"_count":2}]}}`)
	wantJSON(t, "bert", s.userWithHoldingsJSON(s.users[bert]), `{
		"address":"0x4000000000000000000000000000000000000004","firstSeen":"2026-01-01T00:03:00.000Z","totalDeposited":"57","totalWithdrawn":"0",
		"holdings":{
			"deposits":[
				{"vaultAddress":"0x2000000000000000000000000000000000000002","_sum":{"assetAmount":"7"},"_count":1},
				{"vaultAddress":"0x1000000000000000000000000000000000000001","_sum":{"assetAmount":"50"},"_count":1}],
			"withdrawals":[{"vaultAddress":"0x1000000000000000000000000000000000000001","_sum":{"assetsEstimate":"6","assetsClaimed":"0"},"_count":1}]}}`)
	for _, try := range []struct {
		block     uint64
		by, order string
		want      []common.Address
	}{
		{1, "firstSeen", "desc", nil},
		{2, "firstSeen", "desc", []common.Address{anna}},
		{10, "firstSeen", "desc", []common.Address{bert, anna}},
		{10, "firstSeen", "asc", []common.Address{anna, bert}},
		{10, "totalDeposited", "desc", []common.Address{anna, bert}},
		{10, "totalDeposited", "asc", []common.Address{bert, anna}},
		{10, "totalWithdrawn", "desc", []common.Address{anna, bert}},
		// no withdrawals yet: ties by address, in the direction of the order
		{7, "totalWithdrawn", "desc", []common.Address{bert, anna}},
		{7, "totalWithdrawn", "asc", []common.Address{anna, bert}},
	} {
		var got []common.Address
		for _, u := range sorted(mustAt(t, written(), try.block).users, try.by, try.order) {
			got = append(got, u.address)
		}
		if !reflect.DeepEqual(got, try.want) {
			t.Errorf("block %d by %s %s: %s, want %s", try.block, try.by, try.order, got, try.want)
		}
	}
}

// answerOf returns a field of each entry of a list, joined.
func answerOf(t *testing.T, s *State, target, field string) string {
	t.Helper()
	data, err := s.Answer(target, Partner{})
	if err != nil {
		t.Fatal(err)
	}
	list, _ := data.([]any)
	var values []string
	for _, one := range list {
		values = append(values, fmt.Sprint(one.(Object)[field]))
	}
	return strings.Join(values, " ")
}

func TestOracleOnListsOfAVault(t *testing.T) {
	h := written()
	n := big.NewInt
	// Vault B's deposit 2 comes before deposit 1 of another block, and bert claims there without a request.
	h.Facts = append(h.Facts,
		Fact{vaultB, 10, blockTime(10), common.BigToHash(n(10)), 7,
			contracts.DepositAccepted{DepositID: n(0), Owner: anna, Sender: anna, Assets: n(9), Shares: n(9)}},
		Fact{vaultB, 10, blockTime(10), common.BigToHash(n(10)), 8,
			contracts.WithdrawalClaimed{RequestIndex: n(5), Owner: bert, Receiver: bert, Shares: n(1), Assets: n(4)}})
	h.contradictory = true
	s := mustAt(t, h, 10)
	a, b := api+"/vaults/"+vaultA.Hex(), api+"/vaults/"+vaultB.Hex()
	for _, try := range []struct{ target, field, want string }{
		{a + "/deposits", "assetAmount", "50 100"},
		{b + "/deposits", "assetAmount", "7 9"}, // by number
		{a + "/deposits?from=" + decimal(blockTime(3)), "assetAmount", "50"},
		{a + "/deposits?to=" + decimal(blockTime(2)), "assetAmount", "100"},
		{a + "/withdrawals", "requestIndex", "2 1 0"},
		{b + "/withdrawals", "requestIndex", ""},
		{b + "/users", "address", anna.Hex() + " " + bert.Hex()},
		{b + "/users?sortOrder=asc", "totalDeposited", "7 9"},
		{b + "/users?sortBy=totalWithdrawn", "totalWithdrawn", "4 0"},
		{a + "/users?sortBy=totalWithdrawn", "totalWithdrawn", "12 0"},
		{api + "/users?sortBy=totalDeposited", "totalDeposited", "109 57"},
		{api + "/users/" + anna.Hex() + "/withdrawals?status=claimed", "requestIndex", "0"},
		{api + "/users/" + anna.Hex() + "/deposits?vault=" + vaultB.Hex(), "assetAmount", "9"},
	} {
		if got := answerOf(t, s, try.target, try.field); got != try.want {
			t.Errorf("%s: %s is %q, want %q", try.target, try.field, got, try.want)
		}
	}
	for _, unknown := range []string{"/vaults/" + anna.Hex(), "/vaults/" + anna.Hex() + "/users",
		"/users/" + vaultA.Hex()} {
		if data, err := s.Answer(api+unknown, Partner{}); data != nil || err != nil {
			t.Errorf("%s: %v, %v", unknown, data, err)
		}
	}
	if data, err := s.Answer(a+"/nav?from=yesterday", Partner{}); err == nil {
		t.Errorf("a time that is not in Unix seconds gives %v", data)
	}
}

func TestOracleOnASeries(t *testing.T) {
	h := written()
	n := big.NewInt
	for block, at := range map[uint64]uint64{4: 1767225600 - 86400, 10: 1767225600 + 86400 + 60} {
		// a NAV on the day before, and the head on the day after
		h.Times[block] = at
		for i := range h.Facts {
			if h.Facts[i].Block == block {
				h.Facts[i].Time = at
			}
		}
	}
	h.Facts = append(h.Facts,
		Fact{vaultA, 10, h.Times[10], common.BigToHash(n(10)), 1,
			contracts.NavUpdated{NavID: n(2), NavPerShare: n(10), TotalAssets: n(14), TotalSupply: n(15)}})
	data, err := mustAt(t, h, 10).Answer(api+"/vaults/"+vaultA.Hex()+"/series", Partner{})
	if err != nil {
		t.Fatal(err)
	}
	series := data.(Object)
	const none = `{"count":0,"assets":"0"}`
	wantJSON(t, "points", series["points"], `[
		{"start":"2025-12-31T00:00:00.000Z","end":"2026-01-01T00:00:00.000Z","complete":true,"nav":{"open":"11","high":"11","low":"11","close":"11","updates":1},
			"totalAssets":"12","totalSupply":"13","deposits":`+none+`,"requested":`+none+`,"claimed":`+none+
		`,"newUsers":0,"users":0},
		{"start":"2026-01-01T00:00:00.000Z","end":"2026-01-02T00:00:00.000Z","complete":true,"nav":{"open":"11","high":"11","low":"11","close":"11","updates":0},
			"totalAssets":"12","totalSupply":"13","deposits":{"count":2,"assets":"150"},"requested":{"count":3,"assets":"39"},"claimed":{"count":1,"assets":"12"},"newUsers":2,"users":2},
		{"start":"2026-01-02T00:00:00.000Z","end":"2026-01-03T00:00:00.000Z","complete":false,"nav":{"open":"11","high":"11","low":"10","close":"10","updates":1},
			"totalAssets":"14","totalSupply":"15","deposits":`+none+`,"requested":`+none+`,"claimed":`+none+
		`,"newUsers":0,"users":2}]`)
	var yields []string
	for _, one := range append(series["yields"].([]any), series["sinceFirst"]) {
		y := one.(Object)
		yields = append(yields, fmt.Sprint(y["days"], " ", y["numerator"], "/", y["denominator"], " ", y["percent"], " ",
			y["annualPercent"]))
	}
	// -1/11 is -9.09090909...%, rounded down; over 1 day 365 times that, and over 172860 seconds 31536000/172860 times.
	if got := strings.Join(yields, ", "); got != "1 -1/11 -9.090910 -3318.181819, 2 -1/11 -9.090910 -1658.515036" {
		t.Errorf("the yields are %s", got)
	}
}

func TestOracleOnRequests(t *testing.T) {
	render := func(block uint64) []any {
		s := mustAt(t, written(), block)
		return items(s.requests, s.requestJSON)
	}
	const zero = `"id":"0x0000000000000000000000000000000000000000000000000000000000000005-0","logIndex":0,` + place5 + `,
		"userAddress":"0x3000000000000000000000000000000000000003","receiverAddress":"0x4000000000000000000000000000000000000004",
		"requestIndex":"0","shares":"10","assetsEstimate":"11","partnerId":2,"expiresAt":null,"cancelledAt":null,"expiredAt":null`
	const one = `"id":"0x0000000000000000000000000000000000000000000000000000000000000005-1","logIndex":1,` + place5 + `,
		"userAddress":"0x3000000000000000000000000000000000000003","receiverAddress":"0x3000000000000000000000000000000000000003",
		"requestIndex":"1","shares":"20","assetsEstimate":"22","expiresAt":"2026-01-01T00:07:00.000Z",
		"claimable":false,"assetsClaimable":"0","assetsClaimed":"0","fundedAt":null,"claimedAt":null,"cancelledAt":null`
	const two = `"id":"0x0000000000000000000000000000000000000000000000000000000000000005-2","logIndex":2,` + place5 + `,
		"userAddress":"0x4000000000000000000000000000000000000004","receiverAddress":"0x4000000000000000000000000000000000000004",
		"requestIndex":"2","shares":"5","assetsEstimate":"6","expiresAt":null,
		"claimable":false,"assetsClaimable":"0","assetsClaimed":"0","fundedAt":null,"claimedAt":null,"expiredAt":null`
	wantJSON(t, "the requests at block 5", render(5), `[
		{`+zero+`,"status":"queued","claimable":false,"assetsClaimable":"0","assetsClaimed":"0","fundedAt":null,"claimedAt":null},
		{`+one+`,"status":"queued","expiredAt":null},
		{`+two+`,"status":"queued","cancelledAt":null}]`)
	wantJSON(t, "the requests at block 6, the first one funded", render(6), `[
		{`+zero+`,"status":"queued","claimable":true,"assetsClaimable":"12","assetsClaimed":"0","fundedAt":"2026-01-01T00:06:00.000Z","claimedAt":null},
		{`+one+`,"status":"queued","expiredAt":null},
		{`+two+`,"status":"queued","cancelledAt":null}]`)
	wantJSON(t, "the requests at block 7, the second one expired by time", render(7), `[
		{`+zero+`,"status":"queued","claimable":true,"assetsClaimable":"12","assetsClaimed":"0","fundedAt":"2026-01-01T00:06:00.000Z","claimedAt":null},
		{`+one+`,"status":"expired","expiredAt":"2026-01-01T00:07:00.000Z"},
		{`+two+`,"status":"queued","cancelledAt":null}]`)
	wantJSON(t, "the requests at block 10", render(10), `[
		{`+zero+`,"status":"claimed","claimable":false,"assetsClaimable":"0","assetsClaimed":"12","fundedAt":"2026-01-01T00:06:00.000Z","claimedAt":"2026-01-01T00:08:00.000Z"},
		{`+one+`,"status":"expired","expiredAt":"2026-01-01T00:09:00.000Z"},
		{`+two+`,"status":"cancelled","cancelledAt":"2026-01-01T00:10:00.000Z"}]`)
}

// TestOracleOnImpossibleRequests checks the results of request logs that no reference contract emits.
func TestOracleOnImpossibleRequests(t *testing.T) {
	n := big.NewInt
	asked := contracts.WithdrawalRequested{RequestIndex: n(0), Owner: anna, Receiver: anna, Shares: n(1),
		AssetsEstimate: n(2), ExpiresAt: blockTime(4)}
	again := contracts.WithdrawalRequested{RequestIndex: n(0), Owner: bert, Receiver: bert, Shares: n(7),
		AssetsEstimate: n(8)}
	funded := contracts.WithdrawalFunded{RequestIndex: n(0), Owner: anna, Shares: n(1), Assets: n(3)}
	claimed := contracts.WithdrawalClaimed{RequestIndex: n(0), Owner: anna, Receiver: anna, Shares: n(1), Assets: n(3)}
	cancelled := contracts.WithdrawalCancelled{RequestIndex: n(0), Owner: anna, Shares: n(1)}
	expired := contracts.WithdrawalExpired{RequestIndex: n(0), Owner: anna, Shares: n(1)}
	for name, try := range map[string]struct {
		events    []any // one per block, from block 1 on
		status    string
		claimable bool
		withdrawn int64
	}{
		"the first request of an index wins":         {[]any{asked, again}, "queued", false, 0},
		"it lapses at its time":                      {[]any{asked, again, nil, nil}, "expired", false, 0},
		"funding revives what lapsed by time":        {[]any{asked, nil, nil, nil, funded}, "queued", true, 0},
		"funding revives nothing that a log expired": {[]any{asked, expired, funded}, "expired", false, 0},
		"a log expires what was funded":              {[]any{asked, funded, expired}, "expired", false, 0},
		"a second claim changes nothing but sums":    {[]any{asked, funded, claimed, claimed}, "claimed", false, 6},
		"a claim after the end changes nothing":      {[]any{asked, cancelled, claimed}, "cancelled", false, 3},
		"what comes before the request is nothing":   {[]any{funded, cancelled, claimed, asked}, "expired", false, 3},
		"a cancellation ends what lapsed by time":    {[]any{asked, nil, nil, nil, cancelled}, "cancelled", false, 0},
	} {
		h := written()
		h.contradictory, h.Facts = true, nil
		for i, event := range try.events {
			if event != nil {
				block := uint64(i + 1)
				h.Facts = append(h.Facts, Fact{vaultA, block, blockTime(block), common.BigToHash(n(int64(block))), 0, event})
			}
		}
		s := mustAt(t, h, uint64(len(try.events)))
		if len(s.requests) != 1 {
			t.Errorf("%s: there are %d requests", name, len(s.requests))
			continue
		}
		r := s.requests[0]
		if s.status(r) != try.status || s.claimable(r) != try.claimable || r.Owner != anna {
			t.Errorf("%s: %s", name, Show(s.requestJSON(r)))
		}
		if r.claimedAt != 0 && r.claimedAssets.Cmp(n(3)) != 0 {
			t.Errorf("%s: %s were claimed", name, r.claimedAssets)
		}
		if u := s.users[anna]; u.withdrawn.Cmp(n(try.withdrawn)) != 0 {
			t.Errorf("%s: %s were withdrawn, want %d", name, u.withdrawn, try.withdrawn)
		}
		if u := s.users[bert]; u != nil { // whose request had an index that was taken
			holdings := s.userWithHoldingsJSON(u)["holdings"].(Object)
			wantJSON(t, name+": what bert holds", holdings, `{"deposits":[],"withdrawals":[]}`)
		}
	}
}

// TestOracleOnImpossibleSweeps checks when deposits are swept by sweeps that no reference contract emits.
func TestOracleOnImpossibleSweeps(t *testing.T) {
	n := big.NewInt
	deposit := func(id int64) any {
		return contracts.DepositAccepted{DepositID: n(id), Owner: anna, Sender: anna, Assets: n(1), Shares: n(1)}
	}
	sweep := func(from, to int64) any {
		return contracts.DepositsSwept{FromDepositID: n(from), ToDepositID: n(to), Assets: n(1)}
	}
	for name, try := range map[string]struct {
		events []any    // one per block, from block 1 on
		swept  []uint64 // for each deposit in chain order: the block that sweeps it, 0 for none
	}{
		"a sweep that begins late takes all before it": {[]any{deposit(1), deposit(2), sweep(2, 2)}, []uint64{3, 3}},
		"the first sweep that is far enough counts": {[]any{deposit(2), sweep(1, 1), sweep(2, 3), sweep(1, 4)},
			[]uint64{3}},
		"a deposit comes after its sweep":    {[]any{sweep(1, 3), deposit(2), sweep(1, 4)}, []uint64{2}},
		"a smaller sweep takes nothing back": {[]any{deposit(3), sweep(1, 4), sweep(1, 2), deposit(5)}, []uint64{2, 0}},
		"a sweep to nothing sweeps nothing":  {[]any{deposit(0), sweep(0, 0), deposit(0)}, []uint64{0, 0}},
	} {
		h := written()
		h.contradictory, h.Facts = true, nil
		for i, event := range try.events {
			block := uint64(i + 1)
			h.Facts = append(h.Facts, Fact{vaultA, block, blockTime(block), common.BigToHash(n(int64(block))), 0, event})
		}
		s := mustAt(t, h, uint64(len(try.events)))
		left := 0
		for i, block := range try.swept {
			want := uint64(0)
			if block > 0 {
				want = blockTime(block)
			} else {
				left++
			}
			if got := s.deposits[i].sweptAt; got != want {
				t.Errorf("%s: deposit %d of the chain was swept at %d, want %d", name, i, got, want)
			}
		}
		if got := len(s.vaults[vaultA].unswept()); got != left {
			t.Errorf("%s: %d deposits wait, want %d", name, got, left)
		}
	}
}

func TestOracleOnQueuesAndSettlement(t *testing.T) {
	s := mustAt(t, written(), 7)
	wantJSON(t, "the settlement at block 7", items(s.ordered(), s.settlementJSON), `[
		{"vaultAddress":"0x2000000000000000000000000000000000000002","vaultName":"B vault","depositsToSweep":{"count":1,"totalAmount":"7"},"withdrawalsToFund":{"count":0,"totalAmount":"0"}},
		{"vaultAddress":"0x1000000000000000000000000000000000000001","vaultName":"A vault","depositsToSweep":{"count":1,"totalAmount":"50"},"withdrawalsToFund":{"count":1,"totalAmount":"6"}}]`)
	if pending := s.vaultDetailJSON(s.vaults[vaultA])["stats"].(Object)["pendingWithdrawals"]; pending != json.Number("2") {
		t.Errorf("%v withdrawals are pending at block 7", pending)
	}
	group := s.queueGroupJSON(s.vaults[vaultA])
	if unswept := s.vaults[vaultA].unswept(); len(unswept) != 1 || unswept[0].Owner != bert ||
		group["count"] != json.Number("1") {
		t.Errorf("the deposit queue at block 7 is %s", Show(group))
	}
}

func TestOracleOnPartners(t *testing.T) {
	s := mustAt(t, written(), 10)
	wantJSON(t, "partner 1", s.partnerStatsJSON(Partner{ID: 1, Name: "One"}), `{
		"partnerId":1,"partnerName":"One","totalDeposits":2,"totalVolume":"57","uniqueUsers":1,"byVault":[
			{"vaultAddress":"0x2000000000000000000000000000000000000002","depositCount":1,"totalVolume":"7"},
			{"vaultAddress":"0x1000000000000000000000000000000000000001","depositCount":1,"totalVolume":"50"}]}`)
	wantJSON(t, "partner 2, with a request but no deposit", s.partnerStatsJSON(Partner{ID: 2, Name: "Two"}), `{
		"partnerId":2,"partnerName":"Two","totalDeposits":0,"totalVolume":"0","uniqueUsers":0,"byVault":[]}`)
}

// TestOracleRefusesContradictions checks that facts which the reference contracts never emit are errors.
func TestOracleRefusesContradictions(t *testing.T) {
	n := big.NewInt
	for name, try := range map[string]struct {
		event any
		want  string
	}{
		"a deposit id is left out": {contracts.DepositAccepted{DepositID: n(4), Assets: n(1)}, "3-th"},
		"a sweep begins late": {contracts.DepositsSwept{FromDepositID: n(3), ToDepositID: n(3), Assets: n(1)},
			"swept after 1"},
		"a sweep has another sum": {contracts.DepositsSwept{FromDepositID: n(2), ToDepositID: n(2), Assets: n(1)},
			"sum to 50"},
		"a sweep goes too far":       {contracts.DepositsSwept{FromDepositID: n(2), ToDepositID: n(3), Assets: n(1)}, "of 2"},
		"a request index is reused":  {contracts.WithdrawalRequested{RequestIndex: n(1)}, "after 3 requests"},
		"a claim of no request":      {contracts.WithdrawalClaimed{RequestIndex: n(9), Assets: n(1)}, "no request 9"},
		"an event without a meaning": {transfer{}, "no rule"},
	} {
		h := written()
		h.Facts = append(h.Facts, Fact{Vault: vaultA, Block: 10, Event: try.event})
		if _, err := h.at(10); err == nil || !strings.Contains(err.Error(), try.want) {
			t.Errorf("%s: got %v, want %q", name, err, try.want)
		}
	}
	h := written()
	h.Facts = append(h.Facts, Fact{Vault: router, Block: 10, Event: transfer{}})
	if _, err := h.at(10); err == nil || !strings.Contains(err.Error(), "not known") {
		t.Errorf("an unknown vault: %v", err)
	}
	if _, err := h.at(11); err == nil {
		t.Error("a block beyond the newest one gave no error")
	}
}

func TestSpans(t *testing.T) {
	// three days, the first at midnight
	times := []uint64{blockTime(0), blockTime(1), blockTime(1), blockTime(24 * 60), blockTime(48 * 60)}
	held := func(s span) (in []int) {
		for i, at := range times {
			if s.holds(at) {
				in = append(in, i)
			}
		}
		return in
	}
	for _, try := range []struct {
		from, to string
		want     []int
	}{
		{"2026-01-01T00:01:00Z", "", []int{1, 2, 3, 4}},
		{"2026-01-01T00:01:00.001Z", "", []int{3, 4}},
		{"", "2026-01-01T00:01:00Z", []int{0, 1, 2}},
		{"", "2026-01-01T00:00:59.999Z", []int{0}},
		{"2026-01-01T02:00:00.5+02:00", "2025-12-31T18:31:00-05:30", []int{1, 2}},
		{"1767225660", "1767398400", []int{1, 2, 3, 4}},
		{"1767225660000", "1767225660000", []int{1, 2}},
		{"1767225660001", "", []int{3, 4}},
		{"2026-01-03", "", []int{4}},
		{"", "2026-01-01", []int{0, 1, 2}},
		{"2026-01-01", "2026-01-01", []int{0, 1, 2}},
		{"2026-01-01", "2026-01-03", []int{0, 1, 2, 3, 4}},
		{"", "1767225599", nil},
	} {
		found := false
		for _, s := range spans(times) {
			if s.from == try.from && s.to == try.to {
				found = true
				if got := held(s); !reflect.DeepEqual(got, try.want) {
					t.Errorf("%s to %s holds %v, want %v", s.from, s.to, got, try.want)
				}
			}
		}
		if !found {
			t.Errorf("%q to %q was not requested: %+v", try.from, try.to, spans(times))
		}
	}
}

// TestOracleAgreesWithTheContracts folds a real chain and compares with the contracts' own figures, as of several
// blocks.
func TestOracleAgreesWithTheContracts(t *testing.T) {
	anvil := enginetest.Anvil(t, engines.AnvilOptions{})
	ctx := t.Context()
	deployed, err := devchain.Deploy(ctx, anvil.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := devchain.New(anvil.URL, deployed, 3, []uint32{1, 2, 7}, slog.New(slog.DiscardHandler)).Steps(ctx,
		70); err != nil {
		t.Fatal(err)
	}
	h, err := Read(ctx, anvil.URL, deployed)
	if err != nil {
		t.Fatal(err)
	}
	client, err := ethclient.DialContext(ctx, anvil.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, block := range []uint64{h.Head() / 2, h.Head() - 10, h.Head()} {
		s := mustAt(t, h, block)
		for _, v := range s.ordered() {
			compareWithContract(t, client, s, v)
		}
	}
}

func compareWithContract(t *testing.T, client *ethclient.Client, s *State, v *vaultState) {
	t.Helper()
	contract := devchain.At(client, "ReferenceVault", v.address)
	call := &bind.CallOpts{Context: t.Context(), BlockNumber: new(big.Int).SetUint64(s.block)}
	navs := filter(s.navs, func(n navState) bool { return n.Vault == v.address })
	claimed := sum(filter(s.requests, func(r *requestState) bool { return r.Vault == v.address && r.claimedAt != 0 }),
		func(r *requestState) *big.Int { return r.claimedAssets })
	for name, want := range map[string]*big.Int{
		"depositCount":   big.NewInt(int64(len(v.deposits))),
		"totalDeposited": sum(v.deposits, func(d *depositState) *big.Int { return d.Assets }),
		"sweptTo":        new(big.Int).SetUint64(v.sweptTo),
		"requestCount":   big.NewInt(int64(len(v.requests))),
		"totalClaimed":   claimed,
		"navCount":       big.NewInt(int64(len(navs))),
	} {
		got, err := devchain.Read[*big.Int](call, contract, name)
		if err != nil {
			t.Fatal(err)
		}
		if got.Cmp(want) != 0 {
			t.Errorf("block %d, vault %s: %s is %s, the oracle says %s", s.block, v.symbol, name, got, want)
		}
	}
	for index, r := range v.requests {
		got, err := devchain.Read[devchain.Request](call, contract, "request", new(big.Int).SetUint64(index))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"queued", "queued", "claimed", "cancelled", "expired"}[got.Status]
		if got.Status == 0 && got.ExpiresAt != 0 && s.now >= got.ExpiresAt {
			want = "expired" // the contract changes the status only when it is called
		}
		if s.status(r) != want || s.claimable(r) != (got.Status == 1) || got.Owner != r.Owner ||
			got.PartnerID != r.PartnerID {
			t.Errorf("block %d, vault %s: request %d is %+v, the oracle says %s", s.block, v.symbol, index, got,
				Show(s.requestJSON(r)))
		}
	}
}

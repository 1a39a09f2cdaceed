package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/readtest"
)

// vaultDeposits returns the deposits of a vault that match keep, in descending order of their numbers.
func (o *Oracle) vaultDeposits(vault common.Address, keep func(block uint64) bool) []any {
	deposits := o.of(readtest.Deposit, inVault(vault))
	slices.SortStableFunc(deposits, func(a, b readtest.Entry) int { return cmp.Or(cmp.Compare(b.ID, a.ID), inChain(b, a)) })
	out := []any{}
	for _, d := range deposits {
		if keep == nil || keep(d.Block) {
			out = append(out, o.deposit(d))
		}
	}
	return out
}

// vaultRequests returns the requests of a vault in the same way.
func (o *Oracle) vaultRequests(vault common.Address, keep func(block uint64) bool) []any {
	number := func(r object, field string) uint64 {
		n, err := strconv.ParseUint(r[field].(string), 10, 64)
		if err != nil {
			panic(err)
		}
		return n
	}
	requests := o.requests(inVault(vault))
	slices.SortFunc(requests, func(a, b object) int { return cmp.Compare(number(b, "requestIndex"), number(a, "requestIndex")) })
	out := []any{}
	for _, r := range requests {
		if keep == nil || keep(number(r, "blockNumber")) {
			out = append(out, r)
		}
	}
	return out
}

// TestListsOfAVault: every page, with and without a time range, at the newest block and at a past one.
func TestListsOfAVault(t *testing.T) {
	s := tell(4, func(*story) {})
	if !s.hasReorganisation() {
		t.Fatal("the story has no reorganisation")
	}
	a := startAPI(t, s.Log)
	for pinned, o := range map[string]*Oracle{"": At(s.Log, s.Seq(), 1<<62), fmt.Sprintf("asOfBlock=%d", s.head-7): At(s.Log, s.Seq(), s.head-7)} {
		for _, v := range o.vaults {
			path := "/api/v1/vaults/" + v.address.Hex()
			a.walk(withQuery(path+"/deposits", pinned), 7, o.vaultDeposits(v.address, nil))
			a.walk(withQuery(path+"/withdrawals", pinned), 5, o.vaultRequests(v.address, nil))
			between := func(block uint64) bool { return block >= 12 && block <= 25 }
			span := fmt.Sprintf("from=%d&to=%d&pageSize=100", readtest.BlockTime(12), readtest.BlockTime(25))
			a.check(path+"/deposits?"+span, pinned, o.vaultDeposits(v.address, between))
			a.check(path+"/withdrawals?"+span, pinned, o.vaultRequests(v.address, between))
		}
	}
	for _, list := range []string{"deposits", "withdrawals", "users"} {
		a.Get("/api/v1/vaults/"+readtest.Nobody.Hex()+"/"+list).Failed(t, 404, "NOT_FOUND")
		a.Get("/api/v1/vaults/0x12/"+list).Failed(t, 400, "INVALID_ADDRESS")
		a.Get("/api/v1/vaults/"+readtest.VaultA.Hex()+"/"+list+"?page=0").Failed(t, 400, "INVALID_PARAMETER")
	}
}

// TestNumberUsedTwice: if an index is used by two requests, the first one counts, with its time; after a
// reorganisation retracts it, the other one counts. A number that another branch gave to a different deposit is a
// single deposit.
func TestNumberUsedTwice(t *testing.T) {
	ask := func(user common.Address, block uint64) readtest.Fact {
		return readtest.Fact{Kind: readtest.Request, Vault: readtest.VaultA, User: user, Other: user, ID: 4, Assets: 1, Shares: 1, Block: block, Tx: readtest.Tx(byte(block))}
	}
	deposit := func(user common.Address, block uint64) readtest.Fact {
		f := ask(user, block)
		f.Kind, f.Index = readtest.Deposit, 1
		return f
	}
	l := readtest.NewLog(readtest.ChainID)
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(2))
	l.Append(ask(readtest.Alice, 3), deposit(readtest.Alice, 3), readtest.BlockRecord(3))
	l.Append(ask(readtest.Bob, 4), readtest.BlockRecord(4))
	a := startAPI(t, l)
	path := "/api/v1/vaults/" + readtest.VaultA.Hex()
	late := fmt.Sprintf("from=%d", readtest.BlockTime(4))
	check := func() {
		t.Helper()
		o := At(l, l.Seq(), 1<<62)
		a.check(path+"/withdrawals", "", o.vaultRequests(readtest.VaultA, nil))
		a.check(path+"/withdrawals?"+late, "", o.vaultRequests(readtest.VaultA, func(block uint64) bool { return block >= 4 }))
		a.check(path+"/deposits", "", o.vaultDeposits(readtest.VaultA, nil))
	}
	check()
	l.Retract(2)
	l.Append(readtest.BlockRecord(3), ask(readtest.Bob, 4), deposit(readtest.Bob, 4), readtest.BlockRecord(4))
	a.gen.Write(l)
	a.Look()
	check()
}

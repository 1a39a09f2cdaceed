package oracle

import (
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/readtest"
)

// TestListsOfAVault: every page, with and without a time range, at the newest block and at a past one.
func TestListsOfAVault(t *testing.T) {
	s := randomScenario(4, func(*scenario) {})
	if !s.hasReorganisation() {
		t.Fatal("the scenario has no reorganisation")
	}
	a := startAPI(t, s.Log)
	for pinned, o := range a.twice(s.head - 7) {
		for _, path := range o.vaults(t) {
			a.walk(o, path+"/deposits", pinned, 7)
			a.walk(o, path+"/withdrawals", pinned, 5)
			span := fmt.Sprintf("from=%d&to=%d&pageSize=100", readtest.BlockTime(12), readtest.BlockTime(25))
			a.check(o, path+"/deposits?"+span, pinned)
			a.check(o, path+"/withdrawals?"+span, pinned)
		}
	}
	for _, list := range []string{"deposits", "withdrawals", "users"} {
		a.Get("/api/v1/vaults/"+readtest.Unknown.Hex()+"/"+list).Failed(t, 404, "NOT_FOUND")
		a.Get("/api/v1/vaults/0x12/"+list).Failed(t, 400, "INVALID_ADDRESS")
		a.Get("/api/v1/vaults/"+readtest.VaultA.Hex()+"/"+list+"?page=0").Failed(t, 400, "INVALID_PARAMETER")
	}
}

// TestNumberUsedTwice: if an index is used by two requests, the first one counts, with its time; after a
// reorganisation retracts it, the other one counts. A number that another branch gave to a different deposit is a
// single deposit.
func TestNumberUsedTwice(t *testing.T) {
	ask := func(user common.Address, block uint64) readtest.Fact {
		return readtest.Fact{Kind: readtest.Request, Vault: readtest.VaultA, User: user, Other: user, ID: 4, Assets: 1,
			Shares: 1, Block: block, Tx: readtest.Tx(byte(block))}
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
		o := newest(t, l)
		a.check(o, path+"/withdrawals", "")
		a.check(o, path+"/withdrawals?"+late, "")
		a.check(o, path+"/deposits", "")
	}
	check()
	l.Retract(2)
	l.Append(readtest.BlockRecord(3), ask(readtest.Bob, 4), deposit(readtest.Bob, 4), readtest.BlockRecord(4))
	a.gen.Write(l)
	a.Look()
	check()
}

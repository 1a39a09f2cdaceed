package users

import (
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
)

// TestPastListsHaveEveryUser: a user whose only request reused an index counts in no total, but is in the lists by
// amount too, at the newest block and at a past one.
func TestPastListsHaveEveryUser(t *testing.T) {
	g := readtest.New(t, enginetest.ClickHouse(t))
	l := readtest.NewLog(readtest.ChainID)
	fact := func(kind readtest.Kind, user common.Address, index uint32) readtest.Fact {
		return readtest.Fact{Kind: kind, Vault: readtest.VaultA, User: user, Other: user, ID: 1, Assets: 5, Shares: 5,
			Block: 2, Index: index, Tx: readtest.Tx(byte(index))}
	}
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1))
	l.Append(fact(readtest.Deposit, readtest.Alice, 1), fact(readtest.Request, readtest.Alice, 2),
		fact(readtest.Request, readtest.Bob, 3), readtest.BlockRecord(2))
	l.Append(readtest.BlockRecord(3))
	g.Write(l)
	client := readtest.Serve(t, g, serve.Route{Path: "/api/v1/users", Get: List, Expensive: serve.PastByAmount})
	for _, path := range []string{"/api/v1/users?sortBy=totalDeposited&sortOrder=asc",
		"/api/v1/users?sortBy=totalWithdrawn",
		"/api/v1/users?sortBy=totalDeposited&asOfBlock=2", "/api/v1/users?sortBy=totalDeposited&sortOrder=asc&asOfBlock=2",
		"/api/v1/users?sortBy=totalWithdrawn&asOfBlock=2"} {
		body := client.Get(path).Body.String()
		for _, user := range []common.Address{readtest.Alice, readtest.Bob} {
			if !strings.Contains(body, user.Hex()) {
				t.Errorf("%s has no %s: %s", path, user.Hex(), body)
			}
		}
	}
}

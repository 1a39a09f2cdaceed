package oracle

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/readmodel"
)

// TestUsersThatLookLikeOwners: a deposit can be made for the address of a vault, for the zero address, and for an
// address that ends with a partner's number. The totals of these users are separate from those of the vault, of
// everything and of the partner.
func TestUsersThatLookLikeOwners(t *testing.T) {
	owners := []common.Address{readtest.VaultA, {}, readmodel.PartnerOwner(7), readtest.Alice}
	l := readtest.NewLog(readtest.ChainID)
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.VaultRecord(readtest.VaultB, "Beta", 1),
		readtest.BlockRecord(1))
	id, amount := uint64(0), int64(1)
	for block := uint64(2); block <= 4; block++ {
		index := uint32(0)
		for _, vault := range []common.Address{readtest.VaultA, readtest.VaultB} {
			for i, user := range owners {
				fact := func(kind readtest.Kind, partner uint32) readtest.Fact {
					index++
					amount *= 2 // so that each subset has a different sum
					return readtest.Fact{Kind: kind, Vault: vault, User: user, Other: readtest.Router, Partner: partner, ID: id,
						Assets: amount, Shares: 1, Block: block, Index: index, Tx: readtest.Tx(byte(block))}
				}
				id++
				l.Add(fact(readtest.Deposit, []uint32{0, 7, 8}[(i+int(block))%3]), 0)
				if block == 3 {
					l.Add(fact(readtest.Request, 7), 0)
					l.Add(fact(readtest.Claim, 0), 0)
				}
			}
		}
		l.Append(readtest.BlockRecord(block))
	}
	a := startAPI(t, l)
	for pinned, o := range map[string]*Oracle{"": newest(t, l), "asOfBlock=2": At(t, l, l.Seq(), 2),
		"asOfBlock=3": At(t, l, l.Seq(), 3)} {
		a.ask(o, pinned)
	}
}

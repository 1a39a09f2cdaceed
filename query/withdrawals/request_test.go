package withdrawals

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/readmodel"
)

// TestAbsentValues: an amount that follows from a price is a number even if it is 0, and without a price it is null. A
// receiver that the log does not contain is null, also of the zero address.
func TestAbsentValues(t *testing.T) {
	const head = 5
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.Log.Append(readtest.PresetRecord(t, readtest.VaultA, "Alpha", 1, "lagoon-v0.6"), readtest.BlockRecord(head))
	w.Write()
	p, err := ask.At(w.Look(), new(uint64(head)))
	if err != nil {
		t.Fatal(err)
	}
	zero := "0"
	for _, c := range []struct {
		name                   string
		priced, funded, closed uint64
		claimable, claimed     *string
	}{
		{"priced and funded", 3, 3, readmodel.Never, &zero, &zero},
		{"priced and claimed", 3, 3, 4, &zero, &zero},
		{"funded without a price", readmodel.Never, 3, readmodel.Never, nil, &zero},
		{"claimed without a price", readmodel.Never, 3, 4, &zero, nil},
		{"pending", readmodel.Never, readmodel.Never, readmodel.Never, &zero, &zero},
	} {
		r := request{Vault: readtest.VaultA, Shares: "7", Estimate: "0", PricedBlock: c.priced, FundedBlock: c.funded,
			FundedAssets: "0", ClosedBlock: c.closed, ClosedBy: claimed, ClaimedAssets: "0"}
		r.Block, r.User = 2, common.Address{}
		out := r.json(p, uint64(readtest.BlockTime(head)))
		if got, want := texts(out.AssetsClaimable, out.AssetsClaimed), texts(c.claimable, c.claimed); got != want {
			t.Errorf("%s: claimable and claimed are %s, want %s", c.name, got, want)
		}
		if out.ReceiverAddress != nil {
			t.Errorf("%s: the receiver is %s, and no log contains it", c.name, *out.ReceiverAddress)
		}
	}
}

func texts(of ...*string) string {
	b, err := json.Marshal(of)
	return fmt.Sprint(string(b), err)
}

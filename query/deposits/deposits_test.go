package deposits

import (
	"context"
	"fmt"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/readtest"
)

// TestHeavyKeys: reading a page of a user, a partner or a vault with many deposits does not read rows outside the
// page.
func TestHeavyKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("many rows, and one query after the other")
	}
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	const count, newest = 50_000, 5_001
	w.Log.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1))
	w.Log.Append(readtest.BlockRecord(newest))
	w.Write()
	owners := map[string]string{"user_events": fmt.Sprintf("x'%x', 0", readtest.Alice), "vault_events": fmt.Sprintf("x'%x', number + 1", readtest.VaultA),
		"partner_events": "x'0000000000000000000000000000000000000007', 0"}
	for list, owner := range owners { // the owners differ in their key
		for part := range 2 { // several parts, which the query has to merge
			w.Gen.Exec(fmt.Sprintf(`INSERT INTO lists (list, kind, owner, key, block, log_index, user, sign, vault, other, partner, id, assets, shares, ts, closed_block)
			SELECT '%s', 'deposit', %s, 2 + intDiv(number, 10), number %% 10, x'%x', 1, x'%x', x'%x', 7, number + 1, 5, 5, 1700000000, 1 FROM numbers(%d) WHERE number %% 2 = %d`,
				list, owner, readtest.Alice, readtest.VaultA, readtest.Alice, count, part))
		}
	}
	s := w.Look()
	for name, read := range map[string]func(context.Context, *ask.Pin, blocks, uint64) ([]deposit, error){
		"user": func(ctx context.Context, p *ask.Pin, in blocks, offset uint64) ([]deposit, error) {
			return userPage.Read(ctx, p, ofUser{User: readtest.Alice, blocks: in}, offset, 20)
		},
		"partner": func(ctx context.Context, p *ask.Pin, in blocks, offset uint64) ([]deposit, error) {
			return partnerPage.Read(ctx, p, ofPartner{Partner: 7, blocks: in}, offset, 20)
		},
		"vault": func(ctx context.Context, p *ask.Pin, in blocks, offset uint64) ([]deposit, error) {
			return vaultPage.Read(ctx, p, ofVault{Vault: readtest.VaultA, blocks: in}, offset, 20)
		},
	} {
		for _, block := range []uint64{newest, 1200} {
			for _, offset := range []uint64{0, 1000} {
				p, err := ask.At(s, &block)
				if err != nil {
					t.Fatal(err)
				}
				rowsRead := uint64(0)
				ctx := clickhouse.Context(t.Context(), clickhouse.WithProgress(func(p *clickhouse.Progress) { rowsRead += p.Rows }))
				rows, err := read(ctx, p, blocks{Last: block}, offset)
				if err != nil {
					t.Fatal(err)
				}
				if len(rows) != 20 || rows[0].Block != block-offset/10 {
					t.Errorf("%s at block %d: %d deposits after %d, the first of block %d", name, block, len(rows), offset, rows[0].Block)
				}
				if rowsRead == 0 || rowsRead > 5000+2*offset {
					t.Errorf("%s at block %d: %d of %d rows are read for a page after %d", name, block, rowsRead, count, offset)
				}
			}
		}
	}
}

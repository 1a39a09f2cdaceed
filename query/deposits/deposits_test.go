package deposits

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/unswept"
)

// TestHeavyKeys: a page of a user, a partner or a vault with many deposits is
// read where it lies, and what it does not hold is not read.
func TestHeavyKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("many rows, and one question after the other")
	}
	g := readtest.New(t, enginetest.ClickHouse(t))
	const count = 50_000
	for part := range 2 { // several parts are merged while they are read
		g.Exec(fmt.Sprintf(`INSERT INTO deposits (seq, sign, writer, vault, deposit_id, user, sender, partner, assets, shares, block, ts, tx, log_index)
		SELECT 1 + number, 1, 1, x'%x', number + 1, x'%x', x'%x', 7, 5, 5, 2 + intDiv(number, 10), 1700000000, '', number %% 10 FROM numbers(%d) WHERE number %% 2 = %d`,
			readtest.VaultA, readtest.Alice, readtest.Alice, count, part))
	}
	for name, question := range map[string]string{"user": sqlUser, "partner": sqlPartner, "vault": sqlVault} {
		for _, block := range []uint64{2 + count/10, 1200} {
			read, vault := uint64(0), make([]byte, 20)
			if name == "vault" {
				vault = readtest.VaultA[:]
			}
			ctx := clickhouse.Context(context.Background(), clickhouse.WithProgress(func(p *clickhouse.Progress) { read += p.Rows }),
				clickhouse.WithSettings(clickhouse.Settings{"enable_analyzer": 0, "max_threads": 1}),
				clickhouse.WithParameters(clickhouse.Parameters{"user": escaped(readtest.Alice[:]), "partner": "7", "vault": escaped(vault), "from": "0", "to": "2000000000",
					"seq": fmt.Sprint(count), "block": fmt.Sprint(block), "limit": "20", "offset": "0",
					"before_id": "18446744073709551615", "before_block": "18446744073709551615", "before_log": "4294967295"}))
			var rows []deposit
			if err := g.Conn.Select(ctx, &rows, question); err != nil {
				t.Fatal(err)
			}
			if len(rows) != 20 || rows[0].Block != min(block, 1+count/10) {
				t.Errorf("%s at block %d: %d deposits, the first of block %d", name, block, len(rows), rows[0].Block)
			}
			if read == 0 || read > 5000 {
				t.Errorf("%s at block %d: %d of %d rows are read for a page", name, block, read, count)
			}
		}
	}
}

// escaped writes bytes as a parameter of a question.
func escaped(b []byte) (out string) {
	for _, c := range b {
		out += fmt.Sprintf(`\x%02x`, c)
	}
	return out
}

// TestBatches: the ranges with deposits, in their order, no more deposits at once than
// are shown of one vault, but where one has more.
func TestBatches(t *testing.T) {
	var ranges []unswept.Range
	for _, total := range []int64{7, 0, maxQueued - 8, 1, 1, maxQueued + 1, 2, maxQueued} {
		ranges = append(ranges, unswept.Range{Total: total})
	}
	r := func(i int) *unswept.Range { return &ranges[i] }
	want := [][]*unswept.Range{{r(0), r(2), r(3)}, {r(4)}, {r(5)}, {r(6)}, {r(7)}}
	if got := batches(ranges); !reflect.DeepEqual(got, want) {
		t.Errorf("batches are %v, should be %v", got, want)
	}
}

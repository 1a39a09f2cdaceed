package readmodel

import (
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
)

// TestRowsRoundTrip checks that a row of each table is read as inserted, in every column.
func TestRowsRoundTrip(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	config := DefaultConfig()
	config.Addr = enginetest.ClickHouse(t)
	conn, err := config.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, sql := range []string{"CREATE DATABASE rows_round_trip ENGINE = Atomic", EventsTable.DDL("rows_round_trip.events"),
		ListsTable.DDL("rows_round_trip.lists")} {
		if err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	user := common.HexToAddress("0x1122334455667788990011223344556677889900")
	row := ListRow{List: Queue, User: user, Kind: Requested, Block: 7, Sign: 1, FundedBlock: Never, ClosedBlock: Never,
		Touched: JoinTouched(slices.Values([]TouchedKey{Touch(Queue, user), Touch(Totals, PartnerOwner(258))}))}
	row.Key.SetUint64(Never)
	row.Assets.SetUint64(5).Neg(&row.Assets)
	rows := ListsTable.NewRows()
	rows.Add(&row)
	rows.Add(&ListRow{List: CursorEnd, Sign: 1, Seq: 9})
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO rows_round_trip.lists ("+ListsTable.Names()+")")
	if err != nil {
		t.Fatal(err)
	}
	if err := rows.Fill(batch.Columns()); err != nil {
		t.Fatal(err)
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
	var got struct {
		List, Kind, Key, Assets, Touched string
		User                             common.Address
		Block, Closed                    uint64
	}
	err = conn.QueryRow(ctx,
		`SELECT toString(list), toString(kind), toString(key), toString(assets), hex(touched[2]), user, block, closed_block
		FROM rows_round_trip.lists WHERE list = 'queue'`).Scan(&got.List, &got.Kind, &got.Key, &got.Assets, &got.Touched,
		&got.User, &got.Block, &got.Closed)
	if err != nil {
		t.Fatal(err)
	}
	if got.List != "queue" || got.Kind != "requested" || got.Key != "18446744073709551615" || got.Assets != "-5" ||
		got.Touched != "0700000000000000000000000000000000"+"00000102" || got.User != user || got.Block != 7 ||
		got.Closed != Never {
		t.Errorf("the row reads back as %+v", got)
	}
}

package write

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/readmodel"
)

//go:embed sql/vault_logs.sql
var sqlVaultLogs string

// vaultLogs counts the live logs of a vault: those of known events, and the others.
type vaultLogs struct{ known, unknown int64 }

// CountLogs reads the counts of all vaults, over a connection with long timeouts. Without it, Foreign returns nothing.
func (w *Writer) CountLogs(ctx context.Context, patient driver.Conn) error {
	var rows []struct {
		Vault   common.Address `ch:"vault"`
		Known   int64          `ch:"known"`
		Unknown int64          `ch:"unknown"`
	}
	if err := patient.Select(ctx, &rows, sqlVaultLogs); err != nil {
		return fmt.Errorf("count the logs of the vaults in %s: %w", w.database, err)
	}
	w.logs = map[common.Address]vaultLogs{}
	for _, r := range rows {
		w.logs[r.Vault] = vaultLogs{r.Known, r.Unknown}
	}
	return nil
}

// countLogs adds the written records after a seq.
func (w *Writer) countLogs(batch decode.Batch, after uint64) {
	if w.logs == nil {
		return
	}
	for f := range batch.All() {
		if f.Kind != readmodel.LogRecord || f.Seq <= after {
			continue
		}
		n := w.logs[f.Log.Vault]
		if f.Known() {
			n.known += int64(f.Sign)
		} else {
			n.unknown += int64(f.Sign)
		}
		w.logs[f.Log.Vault] = n
	}
}

// Foreign returns the vaults that have logs but none of a known event, with the number of logs, ordered by address.
// It omits the vaults that the generation omits.
func (w *Writer) Foreign() (vaults []common.Address, logs []int64) {
	for v, n := range w.logs {
		if n.known == 0 && n.unknown > 0 && !w.without[v] {
			vaults = append(vaults, v)
		}
	}
	slices.SortFunc(vaults, common.Address.Cmp)
	for _, v := range vaults {
		logs = append(logs, w.logs[v].unknown)
	}
	return vaults, logs
}

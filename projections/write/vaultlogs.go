package write

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/decode"
)

//go:embed sql/vault_logs.sql
var sqlVaultLogs string

// VaultLogs is how many live logs of a vault are of a known event, and how many are not.
type VaultLogs struct{ Known, Unknown int64 }

// CountLogs reads the counts of all vaults, with a connection that may take long. Without it
// Foreign knows nothing.
func (w *Writer) CountLogs(ctx context.Context, patient driver.Conn) error {
	rows, err := patient.Query(ctx, sqlVaultLogs)
	if err != nil {
		return fmt.Errorf("count the logs of the vaults in %s: %w", w.database, err)
	}
	defer rows.Close()
	logs := map[common.Address]*VaultLogs{}
	for rows.Next() {
		var vault string
		var n VaultLogs
		if err := rows.Scan(&vault, &n.Known, &n.Unknown); err != nil {
			return fmt.Errorf("count the logs of the vaults in %s: %w", w.database, err)
		}
		logs[common.BytesToAddress([]byte(vault))] = &n
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("count the logs of the vaults in %s: %w", w.database, err)
	}
	w.logs = logs
	return nil
}

// countLogs adds the records after a seq, which were written.
func (w *Writer) countLogs(batch decode.Batch, after uint64) {
	if w.logs == nil {
		return
	}
	for f := range batch.All() {
		if f.Kind != decode.LogKind || f.Seq <= after {
			continue
		}
		n := w.logs[f.Log.Vault]
		if n == nil {
			n = new(VaultLogs)
			w.logs[f.Log.Vault] = n
		}
		if f.Known() {
			n.Known += int64(f.Sign)
		} else {
			n.Unknown += int64(f.Sign)
		}
	}
}

// Foreign are the vaults that have logs and none of a known event, with how many, but for
// those that the generation is made without. They are ordered by address.
func (w *Writer) Foreign() (vaults []common.Address, logs []int64) {
	for v, n := range w.logs {
		if n.Known == 0 && n.Unknown > 0 && !w.without[v] {
			vaults = append(vaults, v)
		}
	}
	slices.SortFunc(vaults, common.Address.Cmp)
	for _, v := range vaults {
		logs = append(logs, w.logs[v].Unknown)
	}
	return vaults, logs
}

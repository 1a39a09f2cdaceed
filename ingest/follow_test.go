package ingest

import (
	"testing"

	"github.com/navlog/navlog/schemas/event"
)

func TestFirstRunAndRestart(t *testing.T) {
	onEachBroker(t, func(t *testing.T, brokers func(testing.TB) []string) {
		r := newRig(t, brokers)
		r.steps(30)
		p := r.start()
		p.caughtUp()
		r.verify()
		if err := p.Ready(); err != nil {
			t.Errorf("at the head it is not ready: %v", err)
		}

		r.steps(5) // while it runs
		p.caughtUp()
		first := r.verify()
		p.halt()

		r.steps(20) // while it does not
		again := r.start()
		again.caughtUp()
		all := r.verify()
		again.halt()
		if len(all) <= len(first) {
			t.Fatalf("the log has %d records after the restart and had %d before", len(all), len(first))
		}
		var vaults int
		for _, record := range all {
			if record.GetVault() != nil {
				vaults++
			}
		}
		if vaults != 3 {
			t.Errorf("the log has %d vault records, want one for each of 3 vaults", vaults)
		}
		checkVaultRecord(t, r, all[0].GetVault())
	})
}

func checkVaultRecord(t *testing.T, r *rig, got *event.Vault) {
	t.Helper()
	want := r.contracts.Vaults[0]
	if got.GetName() != want.Name || got.GetSymbol() != want.Symbol || got.GetDecimals() != 6 && got.GetDecimals() != 18 ||
		string(got.GetAsset().GetAddress()) != string(want.Asset.Bytes()) || got.GetAsset().GetSymbol() != "DUSD" || got.GetAsset().GetDecimals() != 6 ||
		got.GetStartBlock() != want.StartBlock {
		t.Errorf("the vault record is %v, want %+v", got, want)
	}
}

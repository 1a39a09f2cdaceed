package projections

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/event"
)

// TestVaultWithoutKnownEvents: a vault whose logs are all unknown is reported with the number of its logs, also after
// a restart. One known event ends the warning, and a reorganisation that retracts this event restores it.
func TestVaultWithoutKnownEvents(t *testing.T) {
	if testing.Short() {
		t.Skip("a rebuild")
	}
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	foreign := vaultAt(5)
	s.Vault(foreign)
	s.Mine()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	stop := start(t, p)
	reaches(t, p, s.Seq())
	raw := func() {
		s.Raw(&event.Log{Address: foreign.Bytes(), Topics: [][]byte{make([]byte, 32)}, TxHash: make([]byte, 32)})
	}
	warns := func(p *Projections, logs int) {
		t.Helper()
		wait.Until(t, func() error {
			warnings := p.Status().VaultWarnings
			keepers := p.roster.all()
			if len(keepers) == 0 {
				return errors.New("no generation is written yet")
			}
			metric := testutil.ToFloat64(keepers[0].metrics.foreign)
			switch {
			case logs == 0 && len(warnings) == 0 && metric == 0:
				return nil
			case logs > 0 && len(warnings) == 1 && metric == 1 && warnings[0].Address == foreign.Hex() &&
				strings.HasPrefix(warnings[0].Warning, fmt.Sprintf("it has %d logs and none is a known event", logs)):
				return nil
			}
			return fmt.Errorf("the warnings are %v and the metric is %v, want %d logs", warnings, metric, logs)
		})
	}
	add := func(do func()) {
		from := s.Seq()
		do()
		w.append(t, s.Records[from:])
	}
	warns(p, 0) // it has no logs yet
	add(raw)
	warns(p, 1)
	add(raw)
	warns(p, 2)

	if err := stop(); err != nil {
		t.Fatal(err)
	}
	p, _ = w.projector(t)
	start(t, p)
	warns(p, 2)
	add(func() { s.Mine(emitted{foreign, deposit(90, alice, 7, whole(5))}) })
	warns(p, 0)
	add(func() { s.Retract(1); s.Mine() })
	warns(p, 2)
	w.verify(t, s.Seq())
}

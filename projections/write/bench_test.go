package write

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/schemas/contracts"
)

// BenchmarkBlock measures the cost of a block of 20 logs, from facts to the cursor of lists, in a generation with a
// few thousand logs of two vaults.
func BenchmarkBlock(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := histories.New(chainID)
	s.Vault(vaultA)
	s.Vault(vaultB)
	s.Mine()
	deposits, requests := int64(0), int64(0)
	logs := func(n int) (out []emitted) {
		for range n {
			user, partner := histories.UserAt(rng.IntN(2000)), uint32(rng.IntN(40))
			var e contracts.Event
			switch k := rng.IntN(20); {
			case k < 8:
				deposits++
				e = contracts.DepositAccepted{DepositID: whole(deposits), Owner: user, PartnerID: partner, Sender: user,
					Assets: whole(1000), Shares: whole(10)}
			case k < 14 || requests == 0:
				e = contracts.WithdrawalRequested{RequestIndex: whole(requests), Owner: user, PartnerID: partner, Receiver: user,
					Shares: whole(3), AssetsEstimate: whole(300)}
				requests++
			case k < 17:
				e = contracts.WithdrawalFunded{RequestIndex: whole(rng.Int64N(requests)), Owner: user, SettlementID: whole(1),
					Shares: whole(3), Assets: whole(300)}
			case k < 19:
				e = contracts.WithdrawalClaimed{RequestIndex: whole(rng.Int64N(requests)), Owner: user, Receiver: user,
					Shares: whole(3), Assets: whole(300)}
			default:
				e = contracts.NavUpdated{NavID: whole(1), Updater: bob, NavPerShare: whole(5), TotalAssets: whole(5),
					TotalSupply: whole(6)}
			}
			out = append(out, emitted{Vault: vaultA, Event: e})
		}
		return out
	}
	for range 500 {
		s.Mine(logs(20)...)
	}
	g := builtGeneration(b, s.Records)
	w := g.writer(b)
	var cpu atomic.Int64
	ctx := clickhouse.Context(b.Context(), clickhouse.WithProfileEvents(func(events []clickhouse.ProfileEvent) {
		for _, e := range events {
			if e.Name == "UserTimeMicroseconds" || e.Name == "SystemTimeMicroseconds" {
				cpu.Add(e.Value)
			}
		}
	}))
	var took []time.Duration
	for b.Loop() {
		from := s.Seq()
		s.Mine(logs(20)...)
		batch := Whole(batchOf(b, s.Records[from:]))
		began := time.Now()
		must(b, w.Write(ctx, batch))
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(cpu.Load())/1000/float64(len(took)), "engine-cpu-ms")
}

package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/bench/workload"
)

const mixCacheBytes = 32 << 20

// weighted is a group of questions and its share of the requests in percent.
type weighted struct {
	share     int
	questions []question
}

// traffic is what a protocol's front end, its partners and its dashboards ask.
func (w *world) traffic(rng *rand.Rand) []weighted {
	zipf := rand.NewZipf(rng, 1.1, 20, uint64(w.known.Load()-1))
	user := func(*rand.Rand) string { return api + "/users/" + workload.UserAddress(int(zipf.Uint64())).Hex() }
	ofVault := func(rest string) func(*rand.Rand) string {
		return func(r *rand.Rand) string { return api + "/vaults/" + vault(r) + rest }
	}
	of := func(name string, path func(*rand.Rand) string) question { return question{name: name, path: path} }
	page := func(rest string) func(*rand.Rand) string { return func(r *rand.Rand) string { return user(r) + rest } }
	var partners []question
	for id := uint32(1); id <= workload.Partners; id++ {
		partners = append(partners,
			question{name: "partner-stats", partner: id, path: fixed(api + "/partner/stats")},
			question{name: "partner-deposits", partner: id, path: fixed(api + "/partner/deposits")})
	}
	return []weighted{
		{28, []question{of("user", page("")), of("user-deposits", page("/deposits")),
			of("user-withdrawals", page("/withdrawals"))}},
		{24, []question{of("vaults", fixed(api+"/vaults")), of("vault", ofVault("")), of("vault-nav", ofVault("/nav")),
			of("vault-deposits", ofVault("/deposits"))}},
		{20, partners},
		{16, []question{of("queue-withdrawals", fixed(api+"/queues/withdrawals")),
			of("queue-deposits", fixed(api+"/queues/deposits")),
			of("settlement", fixed(api+"/settlement/summary"))}},
		{9, []question{of("users", fixed(api+"/users")), of("users-by-deposits", fixed(api+"/users?sortBy=totalDeposited")),
			of("vault-users", ofVault("/users"))}},
		{3, w.past([]question{of("user-past", page("?")), of("vault-past", ofVault("?")),
			of("settlement-past", fixed(api+"/settlement/summary?"))})},
	}
}

// mixture chooses questions of the traffic at random, according to the weights.
func (w *world) mixture(rng *rand.Rand) func() question {
	all := w.traffic(rng)
	return func() question {
		n := rng.IntN(100)
		for _, w := range all {
			if n -= w.share; n < 0 {
				return w.questions[rng.IntN(len(w.questions))]
			}
		}
		panic("the shares are less than a hundred")
	}
}

// mix sends realistic traffic, with the default cache, while blocks of ten logs arrive and one in twenty is
// reorganised. It runs 1, 8 and 64 clients that ask as fast as they are answered, and sends their requests to all
// instances in turn.
func (w *world) mix(ctx context.Context) (bars []bench.Bar, err error) {
	instances := make([]*server, w.Instances)
	for i := range instances {
		if instances[i], err = w.serve(ctx, mixCacheBytes); err != nil {
			return nil, err
		}
		defer instances[i].stop()
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	go w.live(ctx)
	for _, clients := range []int{1, 8, 64} {
		t := saturate(ctx, w.asker(instances...), clients, w.Each, w.mixture)
		all := t.all()
		failed, rate := sum(t.failed), float64(t.answered())/w.Each.Seconds()
		t.print(fmt.Sprintf("mix, clients: %d", clients))
		fmt.Printf("%d clients: %.0f requests/s, p50 %.2f ms, p99 %.1f ms, %d failed\n", clients, rate,
			bench.Quantile(all, 0.5), bench.Quantile(all, 0.99), failed)
		name := fmt.Sprintf("mix-%d-", clients)
		switch clients {
		case 1:
			bars = append(bars, bench.Bar{Name: name + "p50-ms", Value: bench.Quantile(all, 0.5), Bound: 1})
		case 64:
			bars = append(bars, bench.Bar{Name: name + "requests-a-second", Value: rate, Bound: 2000, Least: true},
				bench.Bar{Name: name + "p99-ms", Value: bench.Quantile(all, 0.99), Bound: 60})
		}
		bars = append(bars, bench.Bar{Name: name + "failed", Value: float64(failed)})
	}
	memory, err := instances[0].memory()
	return append(bars, bench.Bar{Name: "mix-memory-mib", Value: memory, Bound: mostMemory}), err
}

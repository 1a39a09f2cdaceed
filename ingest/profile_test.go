package ingest

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/vaults"
)

// chainKind is how a chain differs from Ethereum.
type chainKind struct {
	noFinal    bool                // its nodes have no finalized tag
	zeroBlooms bool                // headers have empty blooms
	nullRoot   bool                // headers have no receipts root
	bridge     bool                // the bloom omits logs of its bridge
	txType     hexutil.Uint64      // type of its receipts
	fork       func(*types.Header) // adds the fields of later forks, which the hash covers
	fields     map[string]any      // further fields of headers, which the hash does not cover
}

func TestProfiles(t *testing.T) {
	for profile := range paces {
		c := Config{Profile: profile}.Complete()
		if c.PollInterval <= 0 || c.Window == 0 || c.BatchBlocks == 0 {
			t.Errorf("%s leaves %s, %d, %d", profile, c.PollInterval, c.Window, c.BatchBlocks)
		}
		set := Config{Profile: profile, PollInterval: 7 * time.Second, Window: 77, BatchBlocks: 777}
		if c := set.Complete(); c.PollInterval != set.PollInterval || c.Window != set.Window ||
			c.BatchBlocks != set.BatchBlocks {
			t.Errorf("%s overrides what is set: %s, %d, %d", profile, c.PollInterval, c.Window, c.BatchBlocks)
		}
		valid := validConfig()
		valid.Profile, valid.PollInterval, valid.Window, valid.BatchBlocks = profile, 0, 0, 0
		if err := valid.Validate(); err != nil {
			t.Errorf("%s: %v", profile, err)
		}
	}
	if c := (Config{}).Complete(); c.Profile != Ethereum || c.PollInterval != time.Second || c.Window != 1024 ||
		c.BatchBlocks != 10_000 {
		t.Errorf("without a profile: %+v", c)
	}
}

// With only its profile set, ingest reads the history of a chain of each kind, follows its head through new blocks, and
// records each block of the window, which holds everything that is not final.
func TestChainsOfEachKind(t *testing.T) {
	sequential(t)
	for name, c := range map[string]struct {
		profile  Profile
		interval time.Duration
		final    uint64 // distance from the head to the final block
		kind     chainKind
		change   func(*Config)
	}{
		"ethereum": {profile: Ethereum, interval: 12 * time.Second, final: 95},
		"base":     {profile: Base, interval: 2 * time.Second, final: 1800, kind: chainKind{txType: 0x7e, fork: cancun}},
		"optimism": {profile: Optimism, interval: 2 * time.Second, final: 600, kind: chainKind{txType: 0x7e}},
		"arbitrum": {profile: Arbitrum, interval: 250 * time.Millisecond, final: 14_400,
			kind: chainKind{txType: 0x6a,
				fields: map[string]any{"l1BlockNumber": "0x1", "sendCount": "0x2", "sendRoot": crypto32("s")}}},
		"polygon": {profile: Polygon, interval: 2 * time.Second, final: 3, kind: chainKind{bridge: true, txType: 0x7f}},
		"fast":    {profile: Fast, interval: 200 * time.Millisecond, final: 2},
		"fast, without blooms, roots and finality": {
			profile: Fast, interval: 200 * time.Millisecond, final: 10,
			kind:   chainKind{noFinal: true, zeroBlooms: true, nullRoot: true},
			change: func(c *Config) { c.Proof, c.Finality = proof.None, Finality{Depth: 10} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && c.profile != Fast {
				t.Skip("the race detector sees the same goroutines on each chain")
			}
			h := newHistory(t, false)
			h.kind, h.interval, h.sealed = c.kind, c.interval, !c.kind.nullRoot
			h.tip, h.every = 30_000, 100
			h.final = h.tip - c.final
			r := h.rig()
			r.config = DefaultConfig()
			r.config.ID, r.config.RPC, r.config.Profile = h.chainID, rpc.Endpoints(h.url), c.profile
			r.config.Vaults = []vaults.Config{{Address: historyVaults[0].Hex(), StartBlock: 1}}
			if c.change != nil {
				c.change(&r.config)
			}
			p := r.start()
			h.caughtUp(p)
			for range 5 { // at least as many blocks as come between two polls
				h.mine(1 + uint64(r.config.Complete().PollInterval/c.interval)*3)
				h.caughtUp(p)
			}
			p.until("final block", func(st status.Status) bool { return st.FinalBlock == h.at().final })
			if st := p.Status(); st.Warning != "" || st.Reason != "" {
				t.Errorf("the warning is %q, the reason %q", st.Warning, st.Reason)
			}
			p.halt()
			if window := r.config.Complete().Window; window < c.final {
				t.Fatalf("the window holds %d blocks, and %d are not final", window, c.final)
			}
			h.recorded(r)
		})
	}
}

// cancun adds the fields that Ethereum's forks up to Cancun added to headers.
func cancun(h *types.Header) {
	withdrawals, beacon := crypto32("w"), crypto32("b")
	h.BaseFee, h.WithdrawalsHash, h.ParentBeaconRoot = big.NewInt(7), &withdrawals, &beacon
	h.BlobGasUsed, h.ExcessBlobGas = new(uint64), new(uint64)
}

// mine adds blocks, and makes the same number final.
func (h *history) mine(blocks uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tip, h.final = h.tip+blocks, h.final+blocks
}

type heights struct{ tip, final uint64 }

func (h *history) at() heights {
	h.mu.Lock()
	defer h.mu.Unlock()
	return heights{h.tip, h.final}
}

// recorded checks that the log has each log of the vault, and every block that is not final.
func (h *history) recorded(r *rig) {
	h.t.Helper()
	r.settle()
	_, live := r.log()
	h.hasLogs(live)
	blocks := map[uint64]bool{}
	for _, record := range live {
		if b := record.GetBlock(); b != nil {
			blocks[b.GetNumber()] = true
		}
	}
	for number := h.final + 1; number <= h.tip; number++ {
		if !blocks[number] {
			h.t.Fatalf("block %d is not final and not in the log", number)
		}
	}
}

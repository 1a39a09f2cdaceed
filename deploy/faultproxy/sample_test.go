package faultproxy_test

import (
	"bytes"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/faultproxy"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/mapping"
)

// every is the number of blocks between two samples of the rig's vaults.
const every = 3

// sampled enables NAV sampling for all vaults of the rig.
func (r *rig) sampled() {
	r.t.Helper()
	text, err := mapping.PresetText("reference")
	r.must(err)
	changed := strings.Replace(string(text), "nav: {from: valuation}", fmt.Sprintf("nav: {sample: convertToAssets, every: %d}", every), 1)
	file := filepath.Join(r.t.TempDir(), "sampled.yaml")
	r.must(os.WriteFile(file, []byte(changed), 0o600))
	for i := range r.config.Vaults {
		r.config.Vaults[i].Mapping = file
	}
}

// samples compares the live samples with what the contracts return: each vault has one for every block that must be
// sampled, and no other.
func (r *rig) samples() (compared int) {
	r.t.Helper()
	live, _ := r.live()
	head, err := r.chain.BlockNumber(r.ctx)
	r.must(err)
	want := 0
	for _, v := range r.contracts.Vaults {
		want += int(head/every - (v.StartBlock-1)/every)
	}
	for _, record := range live {
		s := record.GetSample()
		if s == nil {
			continue
		}
		compared++
		vault := common.BytesToAddress(s.GetVault())
		said, err := r.chain.CallContract(r.ctx, ethereum.CallMsg{To: &vault, Data: mapping.SampleCall(s.GetNavDigits())},
			new(big.Int).SetUint64(s.GetBlockNumber()))
		r.must(err)
		if !bytes.Equal(said, s.GetAssets()) {
			r.t.Errorf("the sample of %s at block %d is %x, the contract returns %x", vault, s.GetBlockNumber(), s.GetAssets(), said)
		}
	}
	if compared != want {
		r.t.Errorf("%d samples are live, want %d", compared, want)
	}
	return compared
}

// TestIngestSamplesBesideALiar: with chain.agreement 2 and two honest endpoints, the log contains no sample from a
// third endpoint that lies about the calls, and no sample is missing. Faults that do not look like an answer need
// neither agreement nor a second honest endpoint.
func TestIngestSamplesBesideALiar(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector runs on ingest in its own tests, and on the proxy in the other tests of this package")
	}
	for name, c := range map[string]struct {
		faults            []faultproxy.Fault
		honest, agreement int
	}{
		"wrong values":                   {[]faultproxy.Fault{faultproxy.SampleWrong}, 2, 2},
		"answers that a contract gives":  {[]faultproxy.Fault{faultproxy.SampleReverted, faultproxy.SampleEmpty}, 2, 2},
		"everything":                     {faultproxy.Samples(), 2, 2},
		"what no contract would give":    {[]faultproxy.Fault{faultproxy.SampleNull, faultproxy.SampleTimeout}, 1, 1},
		"no state, beside an archive":    {[]faultproxy.Fault{faultproxy.SampleNoState}, 1, 1},
		"failures that befall all calls": {[]faultproxy.Fault{faultproxy.TooManyRequests, faultproxy.Reset, faultproxy.BrokenBody}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 5, c.faults...)
			r.sampled()
			r.must(r.proxy.SetRate(0.6))
			for range c.honest {
				r.config.RPC = append(r.config.RPC, rpc.Endpoint{URL: r.honest()})
			}
			r.config.Agreement, r.config.Finality = c.agreement, ingest.Finality{}
			r.steps(20)
			x := r.start()
			for depth := range uint64(3) {
				x.caughtUp()
				r.must(r.reorg(1 + depth))
				r.steps(4)
			}
			x.caughtUp()
			r.verify()
			if compared, counts := r.samples(), r.proxy.Counts(); compared < 20 || len(counts) == 0 {
				t.Errorf("%d samples compared, injected %v, too few for this test", compared, counts)
			} else {
				t.Logf("%d samples, injected %v", compared, counts)
			}
		})
	}
}

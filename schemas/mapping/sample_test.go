package mapping

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
)

// sampledVault returns a vault that is sampled every 300 blocks up to block 1000, and then not at all.
func sampledVault(t *testing.T) *Description {
	t.Helper()
	plain, err := Preset("erc4626")
	must(t, err)
	return &Description{Sources: []Source{{Role: "vault", Address: common.Address{1}}},
		Ranges: []Range{{To: 1000, Mapping: plain}, {From: 1001, To: math.MaxUint64, Mapping: referenceMapping()}}}
}

// TestSampledBlocks checks that NAV is sampled at multiples of `every`, in blocks whose mapping samples.
func TestSampledBlocks(t *testing.T) {
	t.Parallel()
	d := sampledVault(t)
	for _, c := range []struct {
		first, last uint64
		want        []uint64
	}{
		{0, 0, []uint64{0}}, {1, 299, nil}, {1, 300, []uint64{300}}, {300, 300, []uint64{300}},
		{301, 5000, []uint64{600, 900}},
		{900, math.MaxUint64, []uint64{900}}, {1200, 1200, nil},
	} {
		if got := d.SampledIn(c.first, c.last); !slices.Equal(got, c.want) {
			t.Errorf("from %d to %d the blocks %v are sampled, want %v", c.first, c.last, got, c.want)
		}
		for _, n := range c.want {
			if contract, due := d.Sampled(n); !due || contract != (common.Address{1}) {
				t.Errorf("at block %d %s is called: %t", n, contract, due)
			}
		}
	}
	d.Ranges[0].To, d.Ranges[1].From = math.MaxUint64, math.MaxUint64
	if got := d.SampledIn(math.MaxUint64-20, math.MaxUint64); len(got) != 1 {
		t.Errorf("at the last block numbers %v are sampled", got)
	}
	d.Sources[0].Role = "oracle"
	if got := d.SampledIn(0, 5000); got != nil || d.Capabilities().NAV {
		t.Errorf("without the source `vault` %v are sampled", got)
	}
}

// TestNavDigits checks that the number of shares is chosen such that the result has 18 decimals.
func TestNavDigits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shares, assets, want uint32
		ok                   bool
	}{{18, 18, 18, true}, {18, 6, 30, true}, {6, 6, 18, true}, {0, 18, 0, false}, {0, 17, 1, true}, {77, 6, 0, false},
		{57, 18, 57, true}} {
		if got, ok := NavDigits(c.shares, c.assets); ok != c.ok || ok && got != c.want {
			t.Errorf("shares of %d decimals of an asset of %d give %d, %t", c.shares, c.assets, got, ok)
		}
	}
	want := common.FromHex("0x07a2d13a0000000000000000000000000000000000000000000000000de0b6b3a7640000")
	if got := SampleCall(18); !bytes.Equal(got, want) {
		t.Errorf("the call is %x", got)
	}
}

// TestMeasured checks that a sample is one effect with the NAV that the contract returned. One that is too large, or
// has other lengths than ingest writes, is not counted, and one of a block whose mapping does not sample has no effect.
func TestMeasured(t *testing.T) {
	t.Parallel()
	s := &Sources{Description: sampledVault(t)}
	sample := func(change func(*event.Sample)) ([]Effect, bool) {
		one := &event.Sample{Vault: make([]byte, 20), BlockNumber: 300, NavDigits: 30,
			Assets: common.BigToHash(MaxAmount).Bytes()}
		one.Assets[8], one.Assets[31] = 0, 7
		change(one)
		return s.Measured(one)
	}
	effects, sound := sample(func(*event.Sample) {})
	if !sound || len(effects) != 1 || effects[0].Kind != Sample || effects[0].Has != Nav || effects[0].NavDigits != 30 ||
		effects[0].Nav.Uint64() != 7 {
		t.Errorf("a sample is %+v, %t", effects, sound)
	}
	if effects, sound := sample(func(e *event.Sample) { e.BlockNumber = 1200 }); !sound || len(effects) != 0 {
		t.Errorf("a sample after the upgrade is %+v, %t", effects, sound)
	}
	for what, change := range map[string]func(*event.Sample){
		"2^191":           func(e *event.Sample) { e.Assets = common.BigToHash(MaxAmount).Bytes() },
		"a short word":    func(e *event.Sample) { e.Assets = e.Assets[1:] },
		"a short address": func(e *event.Sample) { e.Vault = nil },
		"too many digits": func(e *event.Sample) { e.NavDigits = 58 },
		"no digits":       func(e *event.Sample) { e.NavDigits = 0 },
	} {
		if effects, sound := sample(change); sound || len(effects) != 0 {
			t.Errorf("%s is counted: %+v", what, effects)
		}
	}
}

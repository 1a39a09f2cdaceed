package decode

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

// sameFact compares a fact with what the protobuf library and the oracle make of its record. A log that go-ethereum's
// decoder rejects is quarantined.
func sameFact(r *event.Record, f *Fact) error {
	vaults, err := mapping.NewVaults()
	if err != nil {
		return err
	}
	reading := oracle.Read(vaults, []*event.Record{r})[r.GetSeq()]
	if reading == nil { // neither a log nor a sample
		reading = &oracle.Reading{}
	}
	if kind := chainlog.TypeOf(r); f.Kind.String() != kind || f.Name() != reading.Name ||
		f.Quarantined != reading.Quarantined || f.Retracts != r.GetRetracts() {
		return fmt.Errorf("kind %q, name %q, quarantined %t, retracts %d; want %q, %q, %t, %d",
			f.Kind, f.Name(), f.Quarantined, f.Retracts, kind, reading.Name, reading.Quarantined, r.GetRetracts())
	}
	var effects []mapping.Effect
	for _, l := range reading.Effects {
		effects = append(effects, l.Effect)
	}
	if !slices.Equal(f.Effects, effects) {
		return fmt.Errorf("effects %v, want %v", f.Effects, effects)
	}
	var topics []common.Hash
	for _, t := range r.GetLog().GetTopics() {
		topics = append(topics, common.BytesToHash(t))
	}
	if _, err := devchain.Decode(topics, r.GetLog().GetData()); err != nil && !f.Quarantined {
		return fmt.Errorf("it is not quarantined, although %w", err)
	}
	if l := r.GetLog(); l != nil {
		if f.Log != (Log{common.BytesToAddress(l.GetAddress()), l.GetBlockNumber(), seconds(l.GetBlockTime()),
			common.BytesToHash(l.GetTxHash()), l.GetLogIndex()}) || f.Hash != common.BytesToHash(l.GetBlockHash()) {
			return fmt.Errorf("logged %+v", f.Log)
		}
	}
	if b := r.GetBlock(); b != nil &&
		(f.Log.Block != b.GetNumber() || f.Log.Time != seconds(b.GetTime()) || f.Hash != common.BytesToHash(b.GetHash())) {
		return fmt.Errorf("block %+v", f.Log)
	}
	if v := r.GetVault(); v != nil &&
		(f.Log.Vault != common.BytesToAddress(v.GetAddress()) || f.Removed != v.GetRemoved()) {
		return fmt.Errorf("vault %s, removed %t", f.Log.Vault, f.Removed)
	}
	if s := r.GetSample(); s != nil {
		at := Log{Vault: common.BytesToAddress(s.GetVault()), Block: s.GetBlockNumber(), Time: seconds(s.GetBlockTime()),
			Index: math.MaxUint32}
		if f.Log != at || f.Hash != common.BytesToHash(s.GetBlockHash()) {
			return fmt.Errorf("sampled %+v", f.Log)
		}
	}
	return nil
}

func amountOf(v *big.Int) (out mapping.Amount) {
	out.SetFromBig(v)
	return out
}

// decodeOne decodes a record with the mapping of the reference contracts.
func decodeOne(in chainlog.Raw) (f Fact, err error) {
	vaults, err := mapping.NewVaults()
	if err != nil {
		return f, err
	}
	err = NewDecoder(31337, vaults).decodeRecord(in, &f)
	return f, err
}

// TestDecode: the decoder agrees with the library and the oracle on random records and on records with randomly changed
// bytes.
func TestDecode(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(12, 1))
	read, refused, quarantined := 0, 0, 0
	for range 20 {
		for _, r := range histories.Random(rng, 31337, 40).Records {
			r = proto.Clone(r).(*event.Record)
			if l := r.GetLog(); l != nil {
				corrupt(rng, l)
			}
			value, err := proto.Marshal(r)
			must(t, err)
			f, err := decodeOne(chainlog.Raw{Value: value})
			must(t, err)
			if err := sameFact(r, &f); err != nil {
				t.Fatalf("%v: %v", r, err)
			}
			read++
			if f.Quarantined {
				quarantined++
			}
			value = bytes.Clone(value)
			value[rng.IntN(len(value))] ^= 1 << rng.IntN(8)
			var changed event.Record
			valid := proto.Unmarshal(value, &changed) == nil && changed.GetFact() != nil
			f, err = decodeOne(chainlog.Raw{Value: value})
			switch {
			case err != nil && valid:
				t.Fatalf("%x is refused with %v", value, err)
			case err != nil:
				refused++
			case valid:
				if err := sameFact(&changed, &f); err != nil {
					t.Fatalf("%x: %v", value, err)
				}
			}
		}
	}
	if read < 1000 || refused == 0 || quarantined < 50 {
		t.Errorf("%d records read, %d rejected, %d quarantined, too few for this test", read, refused, quarantined)
	}
}

// TestDecodePresets: the decoder agrees with the oracle on the logs and samples of vaults of all presets, of which some
// logs are invalid, in whatever pieces the log is read.
func TestDecodePresets(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(12, 3))
	effects, quarantined := 0, 0
	for range 20 {
		s := histories.Random(rng, 31337, 40, histories.Presets()...)
		for i, r := range s.Records {
			if r = proto.CloneOf(r); r.GetLog() != nil && len(r.GetLog().GetData()) > 0 && rng.IntN(3) == 0 {
				corrupt(rng, r.GetLog())
			}
			s.Records[i] = r
		}
		raw, err := histories.AsRead(s.Records)
		must(t, err)
		vaults, err := mapping.NewVaults()
		must(t, err)
		d := NewDecoder(31337, vaults)
		var facts []*Fact
		for len(raw) > 0 {
			n := 1 + rng.IntN(min(20, len(raw)))
			read, err := d.All(raw[:n])
			must(t, err)
			for i := range read {
				facts = append(facts, &read[i])
			}
			raw = raw[n:]
		}
		for _, unit := range histories.Units(s.Records) {
			for seq, reading := range oracle.Read(vaults, unit) {
				f := facts[seq-1]
				var want []mapping.Effect
				for _, l := range reading.Effects {
					want = append(want, l.Effect)
				}
				for i := range f.Effects { // the decoder maps a log that needs no other one of its transaction by itself
					f.Effects[i].Log = 0
				}
				for i := range want {
					want[i].Log = 0
				}
				if !slices.Equal(f.Effects, want) || f.Quarantined != reading.Quarantined || f.Kind == readmodel.LogRecord &&
					f.Name() != reading.Name {
					t.Fatalf("seq %d: %s %v, quarantined %t; want %s %v, %t", seq, f.Name(), f.Effects, f.Quarantined,
						reading.Name, want, reading.Quarantined)
				}
				effects += len(want)
				if reading.Quarantined {
					quarantined++
				}
			}
		}
	}
	if effects < 1000 || quarantined < 100 {
		t.Errorf("%d effects, %d quarantined logs and samples, too few for this test", effects, quarantined)
	}
}

// corrupt sometimes makes a log invalid in a way that the decoder must detect.
func corrupt(rng *rand.Rand, l *event.Log) {
	switch rng.IntN(12) {
	case 0:
		l.Data = l.Data[:rng.IntN(len(l.Data)+1)]
	case 1:
		l.Topics = l.Topics[:rng.IntN(len(l.Topics)+1)]
	case 2:
		l.Topics = append(l.Topics, make([]byte, 32))
	case 3:
		l.Address = l.Address[1:]
	case 4:
		l.TxHash = append(bytes.Clone(l.TxHash), 1)
	case 5:
		i := rng.IntN(len(l.Topics))
		l.Topics[i] = bytes.Clone(l.Topics[i][:rng.IntN(33)])
	case 6:
		l.Data = bytes.Clone(l.Data)
		l.Data[rng.IntN(len(l.Data))] ^= 0xff
	case 7:
		i := rng.IntN(len(l.Topics))
		l.Topics[i] = bytes.Clone(l.Topics[i])
		l.Topics[i][rng.IntN(32)] ^= 0xff
	case 8:
		l.SetData(make([]byte, event.MaxData+1))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestUnits: a batch is split after each boundary, whatever pieces it consists of, and each unit has the right
// Rewrites and Lowest.
func TestUnits(t *testing.T) {
	t.Parallel()
	s := histories.New(31337)
	s.Vault(histories.VaultAt(0))
	s.Mine()
	s.Mine()
	s.Mine()
	s.Retract(2)
	s.Mine()
	s.Decision("test")
	var facts []Fact
	for _, r := range s.Records {
		value, err := proto.Marshal(r)
		must(t, err)
		f, err := decodeOne(chainlog.Raw{Seq: r.GetSeq(), Boundary: r.GetBoundary(), Value: value})
		must(t, err)
		facts = append(facts, f)
	}
	const never = math.MaxUint64
	want := []string{fmt.Sprint(1, 1, uint64(never), false), "2 1 1 false", "3 1 2 false", "4 1 3 false", "7 3 2 true",
		fmt.Sprint(8, 1, uint64(never), false)}
	for size := 1; size <= len(facts); size++ {
		var b Batch
		for piece := range slices.Chunk(facts, size) {
			b = append(b, piece)
		}
		var got []string
		seq := uint64(0)
		for _, u := range b.Units() {
			got = append(got, fmt.Sprint(u.End(), u.Facts.Len(), u.lowest, u.Rewrites))
			for f := range u.Facts.All() {
				if seq++; f.Seq != seq {
					t.Fatalf("in pieces of %d: seq %d instead of %d", size, f.Seq, seq)
				}
			}
			if u.Rewrites && u.Ancestor() != 1 {
				t.Errorf("in pieces of %d: unit %v ends with %v, ancestor %d", size, u, u.Facts.Last(), u.Ancestor())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("in pieces of %d: units %q, want %q", size, got, want)
		}
	}
}

// other is a mapping with a log that has several effects, an effect that changes nothing, an effect on a range of
// requests, a companion, and a log without an effect.
const other = `preset: other
sources: {vault: required, gate: required}
events:
  - on: Both(uint256 indexed id, uint256 assets)
    source: gate
    emit:
      - {valuation: {nav: $id, total_assets: $assets, total_supply: $assets}}
      - {sweep: {from_key: 1, up_to_key: 2, assets: $assets}}
  - on: Odd(uint256 assets)
    emit: requested
    set: {key: place, group: 1, owner: 0x00000000000000000000000000000000000000b1, shares: "sub($assets, $assets)"}
  - on: Many(uint256 from, uint256 to)
    emit: priced
    set: {side: redeem, group: $from, to_group: $to, assets: 1, shares: 1}
  - on: Out(uint256 assets)
    emit: claimed
    set: {owner: 0x00000000000000000000000000000000000000b1, shares: $assets, assets: $assets}
  - on: In(address indexed owner, uint256 assets)
    emit: deposit
    set: {key: place, owner: $owner, assets: $assets}
    with:
      on: Minted(address indexed to, uint256 shares)
      source: gate
      match: {to: $owner}
      set: {shares: $shares}
  - on: Quiet()
    emit: none
`

// TestAnotherMapping: the logs of a vault are decoded by the mapping in its record: logs of all its sources, logs
// with several effects, and companions in another piece of the unit. A log that the mapping rejects is quarantined.
func TestAnotherMapping(t *testing.T) {
	t.Parallel()
	text, err := mapping.Canonical("other", []byte(other))
	must(t, err)
	vault, gate, stranger := common.Address{0xa1}, common.Address{0xa2}, common.Address{0xa3}
	record := &event.Vault{Address: vault[:], StartBlock: 1}
	must(t, mapping.Record(record, []mapping.Source{{Role: "vault", Address: vault}, {Role: "gate", Address: gate}},
		[]mapping.Text{{To: math.MaxUint64, Preset: "other", Text: text}}))
	var in []chainlog.Raw
	put := func(r *event.Record) {
		r.Seq = uint64(len(in) + 1)
		value, err := proto.Marshal(r)
		must(t, err)
		in = append(in, chainlog.Raw{Seq: r.Seq, Boundary: r.Boundary, Value: value})
	}
	word := func(n byte) []byte { return common.Hash{31: n}.Bytes() }
	index := uint32(0)
	log := func(from common.Address, tx byte, signature string, topics [][]byte, data []byte) *event.Log {
		l := &event.Log{Address: from[:], BlockNumber: 7, BlockHash: word(7), TxHash: word(tx), LogIndex: index, Data: data,
			Topics: append([][]byte{crypto.Keccak256([]byte(signature))}, topics...)}
		if index++; from != vault {
			l.Vault = vault[:]
		}
		return l
	}
	logs := []*event.Log{
		log(gate, 1, "Both(uint256,uint256)", [][]byte{word(9)}, word(4)),
		log(vault, 1, "Odd(uint256)", nil, word(4)),
		log(gate, 1, "Minted(address,uint256)", [][]byte{word(0xb1)}, word(3)),
		log(vault, 1, "In(address,uint256)", [][]byte{word(0xb1)}, word(5)),
		log(vault, 2, "In(address,uint256)", [][]byte{word(0xb1)}, word(6)), // the companion is in another transaction
		log(gate, 2, "In(address,uint256)", [][]byte{word(0xb1)}, word(6)),  // from another source
		log(vault, 2, "Quiet()", nil, nil),
		log(stranger, 2, "Quiet()", nil, nil),
		log(vault, 3, "Many(uint256,uint256)", nil, slices.Concat(word(2), word(1))),
	}
	put(&event.Record{Boundary: true, Fact: &event.Record_Vault{Vault: record}})
	for i, l := range logs {
		put(&event.Record{Boundary: i == len(logs)-1, Fact: &event.Record_Log{Log: l}})
	}
	for i, l := range slices.Backward(logs) { // the block is orphaned and indexed again in the same unit
		put(&event.Record{Retracts: uint64(i + 2), Fact: &event.Record_Log{Log: l}})
	}
	for i, l := range logs {
		put(&event.Record{Boundary: i == len(logs)-1, Fact: &event.Record_Log{Log: l}})
	}
	want := []string{"Both valuation 0 0,sweep 1 2", "Odd", "Minted", fmt.Sprint("In deposit ", mapping.Place(7, 3), " 0"),
		"In quarantined", "Unknown", "Quiet", "Unknown", "Many quarantined"}
	for _, size := range []int{1, 2, 3, 5, len(in)} {
		vaults, err := mapping.NewVaults()
		must(t, err)
		d := NewDecoder(1, vaults)
		var facts []*Fact
		for piece := range slices.Chunk(in, size) {
			read, err := d.All(piece)
			must(t, err)
			for i := range read {
				facts = append(facts, &read[i])
			}
		}
		facts = facts[1:]
		for i, f := range facts {
			at := i % len(logs)
			if f.Sign < 0 {
				at = len(logs) - 1 - at
			}
			if got := describe(f); got != want[at] || (f.Raw != nil) != f.Quarantined {
				t.Errorf("read by %d: record %d is %q, want %q; bytes kept %t", size, f.Seq, got, want[at], f.Raw != nil)
			}
			if of := f.Log.Vault; of != vault && logs[at].Address[0] != stranger[0] {
				t.Errorf("record %d is of vault %s", f.Seq, of)
			}
		}
	}
}

// describe describes the effects of a log as text.
func describe(f *Fact) string {
	var all []string
	for e := range slices.Values(f.Effects) {
		all = append(all, fmt.Sprint(e.Kind, " ", e.ID, " ", e.To))
	}
	if f.Quarantined {
		all = append(all, "quarantined")
	}
	return strings.TrimSpace(f.Name() + " " + strings.Join(all, ","))
}

// TestDiffers: the first record of a vault decides how its logs are decoded, and a later record with another mapping
// is marked, because only a new generation can use that mapping.
func TestDiffers(t *testing.T) {
	t.Parallel()
	text, err := mapping.Canonical("other", []byte(other))
	must(t, err)
	vault, gate := common.Address{0xa1}, common.Address{0xa2}
	plain, mapped := &event.Vault{Address: vault[:]}, &event.Vault{Address: vault[:], Name: "renamed"}
	must(t, mapping.Record(mapped, []mapping.Source{{Role: "vault", Address: vault}, {Role: "gate", Address: gate}},
		[]mapping.Text{{To: math.MaxUint64, Preset: "other", Text: text}}))
	removed := &event.Vault{Address: vault[:], Removed: true}
	for _, c := range []struct {
		fixed   []*event.Vault
		records []*event.Vault
		want    []bool
	}{
		{nil, []*event.Vault{plain, mapped, removed, plain}, []bool{false, true, false, false}},
		{[]*event.Vault{mapped}, []*event.Vault{plain, mapped, removed}, []bool{true, false, false}},
	} {
		vaults, err := mapping.NewVaults(c.fixed...)
		must(t, err)
		d := NewDecoder(1, vaults)
		for i, v := range c.records {
			value, err := proto.Marshal(&event.Record{Seq: uint64(i + 1), Boundary: true, Fact: &event.Record_Vault{Vault: v}})
			must(t, err)
			f, err := d.All([]chainlog.Raw{{Seq: uint64(i + 1), Boundary: true, Value: value}})
			must(t, err)
			if f[0].Differs != c.want[i] {
				t.Errorf("record %d of %v differs: %t", i, c.want, f[0].Differs)
			}
		}
	}
}

// TestSample: a sample is a valuation of its vault, positioned after every log of its block. One that is too large is
// quarantined and keeps its record, and one of a vault that is not sampled has no effect.
func TestSample(t *testing.T) {
	t.Parallel()
	vault, other := common.HexToAddress("0xa1"), common.HexToAddress("0xa2")
	text, err := mapping.PresetText("erc4626")
	must(t, err)
	text, err = mapping.Canonical("erc4626", text)
	must(t, err)
	sampled := &event.Vault{Address: vault[:]}
	must(t, mapping.Record(sampled, []mapping.Source{{Role: "vault", Address: vault}},
		[]mapping.Text{{To: math.MaxUint64, Preset: "erc4626", Text: text}}))
	nav := new(big.Int).Lsh(big.NewInt(3), 180)
	for name, c := range map[string]struct {
		vault       common.Address
		nav         *big.Int
		effects     string
		quarantined bool
	}{
		"counts": {vault, nav,
			fmt.Sprint([]mapping.Effect{{Kind: mapping.Sample, Has: mapping.Nav, Nav: amountOf(nav), NavDigits: 30}}), false},
		"too large": {vault, mapping.MaxAmount, "[]", true},
		"unsampled": {other, nav, "[]", false},
	} {
		r := &event.Record{Seq: 7, Boundary: true,
			Fact: &event.Record_Sample{Sample: &event.Sample{Vault: c.vault[:], BlockNumber: 600,
				BlockHash: common.Hash{9}.Bytes(), BlockTime: 1 << 40, NavDigits: 30, Assets: common.BigToHash(c.nav).Bytes()}}}
		value, err := proto.Marshal(r)
		must(t, err)
		vaults, err := mapping.NewVaults(sampled)
		must(t, err)
		facts, err := NewDecoder(31337, vaults).All([]chainlog.Raw{{Seq: 7, Boundary: true, Value: value}})
		must(t, err)
		f := &facts[0]
		want := Log{Vault: c.vault, Block: 600, Time: math.MaxUint32, Index: math.MaxUint32}
		if f.Kind != readmodel.SampleRecord || f.Log != want || f.Hash != (common.Hash{9}) || f.Name() != "" {
			t.Errorf("%s: the sample is %s, %+v", name, f, f.Log)
		}
		if fmt.Sprint(f.Effects) != c.effects || f.Quarantined != c.quarantined || (f.Raw != nil) != c.quarantined {
			t.Errorf("%s: it does %v, quarantined %t, with %d bytes", name, f.Effects, f.Quarantined, len(f.Raw))
		}
	}
}

// benchmarked returns the records of histories with every event.
func benchmarked(b *testing.B) (in []chainlog.Raw) {
	b.Helper()
	rng := rand.New(rand.NewPCG(12, 2))
	for range 20 {
		for _, r := range histories.Random(rng, 31337, 40).Records {
			value, err := proto.Marshal(r)
			if err != nil {
				b.Fatal(err)
			}
			in = append(in, chainlog.Raw{Seq: r.GetSeq(), Boundary: r.GetBoundary(), Value: value})
		}
	}
	return in
}

// BenchmarkAll decodes records and maps their logs, as a rebuild does.
func BenchmarkAll(b *testing.B) {
	in := benchmarked(b)
	vaults, err := mapping.NewVaults()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewDecoder(31337, vaults).All(in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(in)), "ns/record")
}

// BenchmarkLibrary decodes the same records with the library, without mapping their logs.
func BenchmarkLibrary(b *testing.B) {
	in := benchmarked(b)
	b.ReportAllocs()
	for b.Loop() {
		for i := range in {
			if err := proto.Unmarshal(in[i].Value, new(event.Record)); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(in)), "ns/record")
}

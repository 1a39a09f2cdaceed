package decode

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/histories"
	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// want is what the protobuf library and the decoder of contracts say of a record.
func want(r *event.Record) (kind, name string, e contracts.Event, quarantined bool) {
	kind = chainlog.TypeOf(r)
	l := r.GetLog()
	if l == nil {
		return kind, "", nil, false
	}
	var topics []common.Hash
	odd := len(l.GetAddress()) != 20 || len(l.GetTxHash()) != 32
	for _, t := range l.GetTopics() {
		topics = append(topics, common.BytesToHash(t))
		odd = odd || len(t) != 32
	}
	name = "Unknown"
	if len(topics) > 0 {
		name = contracts.KindOf(topics[0]).String()
	}
	e, err := contracts.Decode(topics, l.GetData())
	if err != nil || e != nil && (odd || oracle.Quarantines(e)) {
		return kind, name, nil, true
	}
	return kind, name, e, false
}

// sameFact compares a fact with what the libraries say.
func sameFact(r *event.Record, f *Fact) error {
	kind, name, e, quarantined := want(r)
	if f.Kind.String() != kind || f.Name() != name || f.Quarantined != quarantined || f.Retracts != r.GetRetracts() {
		return fmt.Errorf("kind %q, name %q, quarantined %t, retracts %d; want %q, %q, %t, %d", f.Kind, f.Name(), f.Quarantined, f.Retracts, kind, name, quarantined, r.GetRetracts())
	}
	if l := r.GetLog(); l != nil {
		if f.Log != (Log{common.BytesToAddress(l.GetAddress()), l.GetBlockNumber(), seconds(l.GetBlockTime()), common.BytesToHash(l.GetTxHash()), l.GetLogIndex()}) || f.Hash != common.BytesToHash(l.GetBlockHash()) {
			return fmt.Errorf("logged %+v", f.Log)
		}
	}
	if b := r.GetBlock(); b != nil && (f.Log.Block != b.GetNumber() || f.Log.Time != seconds(b.GetTime()) || f.Hash != common.BytesToHash(b.GetHash())) {
		return fmt.Errorf("block %+v", f.Log)
	}
	if v := r.GetVault(); v != nil && (f.Log.Vault != common.BytesToAddress(v.GetAddress()) || f.Removed != v.GetRemoved()) {
		return fmt.Errorf("vault %s, removed %t", f.Log.Vault, f.Removed)
	}
	if got, said := fmt.Sprint(f.Event, f.Args), fmt.Sprint(argsOf(e)); got != said {
		return fmt.Errorf("arguments %s, want %s", got, said)
	}
	return nil
}

func amountOf(v *big.Int) (out Amount) {
	out.SetFromBig(v)
	return out
}

// argsOf puts an event's arguments where the fact has them.
func argsOf(e contracts.Event) (k contracts.Kind, a Args) {
	if e == nil {
		return contracts.KindUnknown, a
	}
	switch e := e.(type) {
	case contracts.DepositAccepted:
		a = Args{ID: e.DepositID.Uint64(), Owner: e.Owner, Other: e.Sender, Partner: e.PartnerID, Assets: amountOf(e.Assets), Shares: amountOf(e.Shares)}
	case contracts.WithdrawalRequested:
		a = Args{ID: e.RequestIndex.Uint64(), Owner: e.Owner, Other: e.Receiver, Partner: e.PartnerID, Shares: amountOf(e.Shares), Assets: amountOf(e.AssetsEstimate), Expires: e.ExpiresAt}
	case contracts.WithdrawalFunded:
		a = Args{ID: e.RequestIndex.Uint64(), Owner: e.Owner, Shares: amountOf(e.Shares), Assets: amountOf(e.Assets)}
	case contracts.WithdrawalClaimed:
		a = Args{ID: e.RequestIndex.Uint64(), Owner: e.Owner, Other: e.Receiver, Shares: amountOf(e.Shares), Assets: amountOf(e.Assets)}
	case contracts.WithdrawalCancelled:
		a = Args{ID: e.RequestIndex.Uint64(), Owner: e.Owner, Shares: amountOf(e.Shares)}
	case contracts.WithdrawalExpired:
		a = Args{ID: e.RequestIndex.Uint64(), Owner: e.Owner, Shares: amountOf(e.Shares)}
	case contracts.NavUpdated:
		a = Args{Other: e.Updater, Nav: amountOf(e.NavPerShare), Assets: amountOf(e.TotalAssets), Shares: amountOf(e.TotalSupply)}
	case contracts.DepositsSwept:
		a = Args{ID: e.FromDepositID.Uint64(), To: e.ToDepositID.Uint64(), Other: e.Custodian, Assets: amountOf(e.Assets)}
	case contracts.WithdrawalsSettled:
		a = Args{Other: e.Funder, Shares: amountOf(e.Shares), Assets: amountOf(e.Assets)}
	}
	return e.Kind(), a
}

// TestDecode: the decoder says what the libraries say, of random records and of
// records whose bytes were changed at random.
func TestDecode(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(12, 1))
	read, refused, quarantined := 0, 0, 0
	for range 20 {
		for _, r := range histories.Random(rng, 31337, 40).Records {
			r = proto.Clone(r).(*event.Record)
			if l := r.GetLog(); l != nil {
				spoil(rng, l)
			}
			value, err := proto.Marshal(r)
			must(t, err)
			f, err := One(chainlog.Raw{Value: value})
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
			f, err = One(chainlog.Raw{Value: value})
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
		t.Errorf("%d records read, %d refused, %d quarantined: the test proves little", read, refused, quarantined)
	}
}

// spoil changes now and then what must be noticed.
func spoil(rng *rand.Rand, l *event.Log) {
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
	}
}

// TestNumbers: the numbers by which facts name kinds and events are those that the
// tables give the names.
func TestNumbers(t *testing.T) {
	t.Parallel()
	numbers := enums(t, "../../schemas/readmodel/tables/records.sql")
	for _, k := range []Kind{LogKind, BlockKind, VaultKind, DecisionKind} {
		if n, ok := numbers["kind"][k.String()]; !ok || n != int(k) {
			t.Errorf("records.kind %s is %d, and not %d", k, n, k)
		}
	}
	for _, k := range append(contracts.Kinds(), contracts.KindUnknown) {
		f := Fact{Named: k}
		if n, ok := numbers["event"][k.String()]; !ok || n != int(f.EventNumber()) {
			t.Errorf("records.event %s is %d, and not %d", k, n, f.EventNumber())
		}
	}
	if n := numbers["event"][""]; n != int((&Fact{Kind: BlockKind}).EventNumber()) {
		t.Errorf("what is no log is event %d", n)
	}
}

// enums reads the numbers of the names of a table's columns.
func enums(t *testing.T, path string) map[string]map[string]int {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	out := map[string]map[string]int{}
	for _, column := range regexp.MustCompile(`(?s)(\w+) Enum8\((.*?)\)`).FindAllStringSubmatch(string(b), -1) {
		out[column[1]] = map[string]int{}
		for _, value := range regexp.MustCompile(`'(\w*)' = (\d+)`).FindAllStringSubmatch(column[2], -1) {
			out[column[1]][value[1]], err = strconv.Atoi(value[2])
			must(t, err)
		}
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestUnits: a batch is cut after each boundary, whatever pieces it came in, and
// each unit knows what it rewrites.
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
		f, err := One(chainlog.Raw{Seq: r.GetSeq(), Boundary: r.GetBoundary(), Value: value})
		must(t, err)
		facts = append(facts, f)
	}
	const never = math.MaxUint64
	want := []string{fmt.Sprint(1, 1, uint64(never), 0, false), "2 1 1 1 false", "3 1 2 2 false", "4 1 3 3 false", "7 3 2 3 true", fmt.Sprint(8, 1, uint64(never), 0, false)}
	for size := 1; size <= len(facts); size++ {
		var b Batch
		for piece := range slices.Chunk(facts, size) {
			b = append(b, piece)
		}
		var got []string
		seq := uint64(0)
		for _, u := range b.Units() {
			got = append(got, fmt.Sprint(u.End, u.Facts.Len(), u.Lowest, u.Highest, u.Rewrites))
			for f := range u.Facts.All() {
				if seq++; f.Seq != seq {
					t.Fatalf("in pieces of %d: seq %d where %d belongs", size, f.Seq, seq)
				}
			}
			if u.Facts.Last().Seq != u.End || u.Rewrites && u.Ancestor() != 1 {
				t.Errorf("in pieces of %d: unit %v ends with %v, ancestor %d", size, u, u.Facts.Last(), u.Ancestor())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("in pieces of %d: units %q, want %q", size, got, want)
		}
	}
	unit := Batch{facts}.Units()[4]
	kept, some := unit.Keep(func(f *Fact) bool { return f.Sign > 0 })
	if !some || kept.Facts.Len() != 1 || kept.End != unit.End || kept.Lowest != unit.Lowest || !kept.Rewrites || unit.Facts.Len() != 3 {
		t.Errorf("kept %+v of %+v", kept, unit)
	}
	if _, some := unit.Keep(func(*Fact) bool { return false }); some {
		t.Error("something is left of nothing")
	}
}

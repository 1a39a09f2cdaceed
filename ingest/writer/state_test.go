package writer

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// model is a random chain and log in memory: blocks with and without referrals, reorganisations, finality that moves
// and stalls, and confirmations that change with every restart.
type model struct {
	rng           *rand.Rand
	chain         []*rpc.Header // block n at index n
	branch        int           // makes the hashes of new branches unique
	records       []chainlog.Entry
	published     map[string]int // how often a log in a block was published
	confirmations uint64
	window        uint64
}

func (m *model) block() *rpc.Header {
	parent := m.chain[len(m.chain)-1]
	m.branch++
	h := &rpc.Header{Number: parent.Number + 1, Parent: parent.Hash, Time: parent.Time + 12}
	h.Hash = crypto.Keccak256Hash(fmt.Append(nil, h.Number, m.branch))
	m.chain = append(m.chain, h)
	return h
}

func (m *model) logs(h *rpc.Header) (unit []*event.Record) {
	for i := range m.rng.IntN(3) {
		topics, data, err := contracts.Encode(contracts.DepositAccepted{
			DepositID: big.NewInt(1), PartnerID: uint32(m.rng.IntN(3)), Assets: big.NewInt(5), Shares: big.NewInt(5),
		})
		if err != nil {
			panic(err)
		}
		l := &event.Log{BlockNumber: h.Number, BlockHash: h.Hash[:], LogIndex: uint32(i), Data: data}
		for _, t := range topics {
			l.Topics = append(l.Topics, t[:])
		}
		unit = append(unit, LogFacts(l)...)
	}
	return append(unit, BlockFact(h))
}

// commit does what Writer.Commit does, with a slice for a broker.
func (m *model) commit(s *State, c *Change) *event.Cursor {
	seq := s.Seq
	for _, unit := range c.Units {
		for _, r := range unit {
			seq++
			r.Seq = seq
			m.records = append(m.records, chainlog.Entry{Record: r, Offset: int64(seq)})
		}
	}
	for _, r := range s.apply(c, m.confirmations) {
		m.published[fmt.Sprintf("%x/%d", r.GetLog().GetBlockHash(), r.GetLog().GetLogIndex())]++
	}
	s.prune(m.window)
	return s.cursor(1, nil)
}

func (m *model) reorganise(s *State, depth int) *Change {
	ancestor := s.Head.Number - uint64(depth)
	m.chain = m.chain[:ancestor+1]
	var unit []*event.Record
	for _, lost := range s.Window.Above(ancestor) {
		unit = append(unit, Retraction(lost))
	}
	for range depth {
		unit = append(unit, m.logs(m.block())...)
	}
	return &Change{Units: [][]*event.Record{unit}, Head: m.chain[len(m.chain)-1], Ancestor: &ancestor}
}

// A state that is restored from its cursor and the records from window_seq must equal the original, after any history.
// No referral is published twice for one block, and none is lost.
func TestRestoredStateIsTheState(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		m := &model{rng: rand.New(rand.NewPCG(seed, 1)), chain: []*rpc.Header{{}}, published: map[string]int{},
			window: 6 + 10*(seed%3)}
		s := &State{Head: m.chain[0], logID: make([]byte, 16)}
		for n := range 300 {
			c := &Change{}
			depth := 1 + m.rng.IntN(5)
			switch {
			case m.rng.IntN(6) == 0 && s.Head.Number >= s.Final+uint64(depth):
				c = m.reorganise(s, depth)
			case m.rng.IntN(8) == 0:
				c.claim = true
			case m.rng.IntN(4) == 0: // finality moves, or stalls for a long time
				if m.rng.IntN(3) == 0 {
					c.Final = max(s.Final, s.Head.Number-min(s.Head.Number, uint64(m.rng.IntN(8))))
				}
			default:
				for range 1 + m.rng.IntN(2) {
					c.Head = m.block()
					c.Units = append(c.Units, m.logs(c.Head))
				}
			}
			cursor := m.commit(s, c)
			if m.rng.IntN(30) == 0 { // the next start has a larger window, which does not restore dropped records
				m.window += 2
			}
			restored := m.restore(cursor)
			if err := same(s, restored); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, n, err)
			}
			s = restored
			if m.rng.IntN(20) == 0 {
				m.confirmations = uint64(m.rng.IntN(5))
			}
			m.checkPublished(t, s, seed)
		}
	}
}

func (m *model) restore(cursor *event.Cursor) *State {
	if err := checkCursor(cursor); err != nil {
		panic(err)
	}
	s := stateOf(proto.Clone(cursor).(*event.Cursor))
	for _, e := range m.records[cursor.GetWindowSeq()-min(cursor.GetWindowSeq(), 1):] {
		s.Window.Apply(e)
		s.offset = e.Offset
	}
	s.prune(m.window)
	return s
}

func same(a, b *State) error {
	if a.Seq != b.Seq || a.Final != b.Final || a.published != b.published || a.floor != b.floor ||
		a.Head.Hash != b.Head.Hash {
		return fmt.Errorf("restored %+v, was %+v", b, a)
	}
	seqs := func(s *State) (all []uint64) {
		for _, e := range s.Window.entries {
			all = append(all, e.GetSeq())
		}
		return all
	}
	if !slices.Equal(seqs(a), seqs(b)) {
		return fmt.Errorf("the restored window has the records %v, it had %v", seqs(b), seqs(a))
	}
	if !maps.Equal(a.Window.Hashes(), b.Window.Hashes()) {
		return fmt.Errorf("the restored window has other blocks")
	}
	return nil
}

// checkPublished compares the published referrals with a fold of the whole log.
func (m *model) checkPublished(t *testing.T, s *State, seed uint64) {
	t.Helper()
	live := map[uint64]*event.Record{}
	for _, e := range m.records {
		if original := e.GetRetracts(); original != 0 {
			delete(live, original)
		} else {
			live[e.GetSeq()] = e.Record
		}
	}
	for _, r := range live {
		l := r.GetLog()
		if l == nil {
			continue
		}
		want := 0
		if l.GetBlockNumber() <= s.published && common.BytesToHash(l.GetTopics()[3]) != (common.Hash{}) {
			want = 1
		}
		if got := m.published[fmt.Sprintf("%x/%d", l.GetBlockHash(), l.GetLogIndex())]; got != want {
			t.Fatalf("seed %d: the log %d of block %d was published %d times with referral block %d, want %d", seed,
				l.GetLogIndex(), l.GetBlockNumber(), got, s.published, want)
		}
	}
}

// A log with the signature of a referral that cannot be decoded is not a referral.
func TestReferralOf(t *testing.T) {
	topics, data, err := contracts.Encode(contracts.WithdrawalRequested{
		RequestIndex: big.NewInt(0), PartnerID: 9, Shares: big.NewInt(1), AssetsEstimate: big.NewInt(1),
	})
	if err != nil {
		t.Fatal(err)
	}
	l := &event.Log{Data: data}
	for _, topic := range topics {
		l.Topics = append(l.Topics, topic[:])
	}
	if a := referralOf(l); a == nil || a.GetPartnerId() != 9 || KindOf(a) != event.Referral_KIND_WITHDRAWAL {
		t.Errorf("a request of partner 9 is %+v", a)
	}
	if a := referralOf(l); a.GetPartnerId() != 9 || a.GetKind() != event.Effect_KIND_REQUESTED ||
		!bytes.Equal(a.GetShares(), []byte{1}) || len(a.GetKey()) != 0 || a.GetQuarantined() != "" {
		t.Errorf("its effect is %v", a)
	}
	large := proto.Clone(l).(*event.Log)
	large.Data[32] = 0xff // of the shares, which cannot be summed: the referral is kept, and marked
	if a := referralOf(large); a == nil || a.GetPartnerId() != 9 || len(a.GetShares()) != 32 ||
		!strings.HasPrefix(a.GetQuarantined(), "shares is 1153") {
		t.Errorf("a request of too many shares is %+v", a)
	}
	l.Data = l.Data[1:]
	if a := referralOf(l); a != nil {
		t.Errorf("a log that is too short is %+v", a)
	}
	if a := referralOf(&event.Log{}); a != nil {
		t.Errorf("a log without topics is %+v", a)
	}
}

// Any bytes in the cursor topic give either a state, which has the same cursor again, or an error.
func FuzzCursor(f *testing.F) {
	for _, file := range []string{"cursor-1.bin", "cursor-2.bin"} {
		b, err := os.ReadFile("../../schemas/event/testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	vault := &event.Coverage{Address: make([]byte, 20), StartBlock: 1}
	for _, c := range []*event.Cursor{
		{},
		{LogId: make([]byte, 16), GenesisHash: make([]byte, 32)},
		{LogId: make([]byte, 16), GenesisHash: make([]byte, 31)},
		{LogId: make([]byte, 16), GenesisHash: make([]byte, 32), WindowSeq: 2, Seq: 1},
		{LogId: make([]byte, 16), GenesisHash: make([]byte, 32), WindowOffset: -1},
		{LogId: make([]byte, 16), GenesisHash: make([]byte, 32),
			Head: &event.Block{Number: math.MaxUint64, Hash: make([]byte, 32)}},
		{LogId: make([]byte, 16), GenesisHash: make([]byte, 32), Vaults: []*event.Coverage{vault, vault}},
		{LogId: make([]byte, 16), GenesisHash: make([]byte, 32), Vaults: []*event.Coverage{{Address: make([]byte, 20)}}},
	} {
		b, err := proto.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := new(event.Cursor)
		if proto.Unmarshal(b, c) != nil {
			return
		}
		if checkCursor(c) != nil {
			return
		}
		s := stateOf(c)
		s.prune(1024)
		s.publishTarget(3)
		cursor := s.cursor(c.GetChainId(), c.GetInstanceId())
		if err := checkCursor(cursor); err != nil {
			t.Fatalf("the cursor of a state is refused: %v", err)
		}
		again := stateOf(cursor)
		if !reflect.DeepEqual(again, s) {
			t.Errorf("the state\n%+v\nhas a cursor with the state\n%+v", s, again)
		}
	})
}

// Any bytes in the log are either accepted by the window or rejected as a record.
func FuzzTail(f *testing.F) {
	files, err := filepath.Glob("../../schemas/event/testdata/record-*.bin")
	if err != nil || len(files) == 0 {
		f.Fatalf("no records: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, b)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var w Window
		for n, b := range [][]byte{first, second} {
			record, err := chainlog.Decode(1, &kgo.Record{Value: b})
			if err != nil || record.GetBlock() != nil && !isComplete(record.GetBlock()) {
				return
			}
			record.Seq = uint64(n) + 1
			w.Apply(chainlog.Entry{Record: record})
		}
		w.Hashes()
		for _, lost := range w.Above(0) {
			Retraction(lost)
		}
		w.due(nil, 0, math.MaxUint64, 0)
		if w.prune(nil, math.MaxUint64, math.MaxUint64); len(w.entries) != 0 {
			t.Errorf("%d records are left when everything is final", len(w.entries))
		}
	})
}

// referralOf returns the effect of a log of the reference contracts.
func referralOf(l *event.Log) *event.Effect { return Attributions(nil, []*event.Log{l})[0] }

package histories

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// A Script writes the history of a chain as ingest would: blocks, backfills and
// reorganisations, in whole units.
type Script struct {
	// Records are the log so far; record i has seq i+1.
	Records []*event.Record
	// Blocks are not final yet, oldest first.
	Blocks []Block
	// Number of the newest block.
	Number uint64
	// First is the number of the first block.
	First   uint64
	chainID uint64
	// Time of the newest block.
	Time    uint64
	salt    uint64 // makes the hashes of another branch others
	fills   uint32 // backfills so far: each has log indexes of its own
	headers map[uint64]header
}

// header is what a backfill must know of a block that was entered before it.
type header struct {
	time uint64
	hash common.Hash
}

// Block is one block with its logs; kept says which records hold it now.
type Block struct {
	Number, Time uint64
	hash         common.Hash
	logs         []*event.Log
	kept         []*event.Record
}

// Said is an event and the vault that says it.
type Said = struct {
	Vault common.Address
	Event contracts.Event
}

// New is the log of a chain before its first record.
func New(chainID uint64) *Script {
	return &Script{chainID: chainID, First: 1, Time: 1_700_000_000, headers: map[uint64]header{}}
}

// Start makes this the number of the first block, before anything is appended.
func (s *Script) Start(first uint64) { s.First, s.Number = first, first-1 }

// Seq of the last record.
func (s *Script) Seq() uint64 { return uint64(len(s.Records)) }

func (s *Script) put(r *event.Record) *event.Record {
	r.Seq, r.ChainId = s.Seq()+1, s.chainID
	if r.Seq == 1 {
		r.Origin = &event.Origin{LogId: []byte("0123456789abcdef"), GenesisHash: make([]byte, 32)}
	}
	s.Records = append(s.Records, r)
	return r
}

// Boundary ends a unit.
func (s *Script) Boundary() { s.Records[len(s.Records)-1].Boundary = true }

func hashOf(parts ...uint64) common.Hash {
	var b []byte
	for _, p := range parts {
		b = binary.BigEndian.AppendUint64(b, p)
	}
	return crypto.Keccak256Hash(b)
}

// Make builds the next block, so many seconds after the last one, without appending it.
func (s *Script) Make(after uint64, logs ...Said) Block {
	s.salt++
	s.Number++
	s.Time += after
	b := Block{Number: s.Number, Time: s.Time, hash: hashOf(s.Number, s.salt)}
	for i, l := range logs {
		b.logs = append(b.logs, LogOf(b.Number, b.Time, b.hash, uint32(i), l))
	}
	return b
}

// LogOf is an event as a node gives it.
func LogOf(number, time uint64, hash common.Hash, index uint32, l Said) *event.Log {
	topics, data, err := contracts.Encode(l.Event)
	if err != nil {
		panic(err)
	}
	raw := &event.Log{Address: l.Vault.Bytes(), Data: data, BlockNumber: number, BlockHash: hash.Bytes(), BlockTime: time,
		TxHash: hashOf(number, uint64(index), binary.BigEndian.Uint64(hash[:8])).Bytes(), TxIndex: index, LogIndex: index}
	for _, t := range topics {
		raw.Topics = append(raw.Topics, t.Bytes())
	}
	return raw
}

// Enter appends a block, which ends no unit.
func (s *Script) Enter(b Block) {
	b.kept = nil
	for _, l := range b.logs {
		b.kept = append(b.kept, s.put(&event.Record{Fact: &event.Record_Log{Log: l}}))
	}
	b.kept = append(b.kept, s.put(&event.Record{Fact: &event.Record_Block{Block: &event.Block{
		Number: b.Number, Hash: b.hash.Bytes(), ParentHash: make([]byte, 32), Time: b.Time}}}))
	s.Blocks = append(s.Blocks, b)
	s.Number, s.Time = b.Number, b.Time
	s.headers[b.Number] = header{b.Time, b.hash}
}

// Mine appends a block, 12 seconds after the last one.
func (s *Script) Mine(logs ...Said) {
	s.Enter(s.Make(12, logs...))
	s.Boundary()
}

// Raw appends a block with a log that no Solidity compiler wrote.
func (s *Script) Raw(l *event.Log) {
	b := s.Make(12)
	l.BlockNumber, l.BlockTime, l.BlockHash = b.Number, b.Time, b.hash.Bytes()
	b.logs = append(b.logs, l)
	s.Enter(b)
	s.Boundary()
}

// Retract takes the newest blocks back, newest record first, and gives them.
func (s *Script) Retract(depth int) []Block {
	cut := len(s.Blocks) - depth
	gone := append([]Block(nil), s.Blocks[cut:]...)
	for i := len(gone) - 1; i >= 0; i-- {
		for j := len(gone[i].kept) - 1; j >= 0; j-- {
			s.put(&event.Record{Retracts: gone[i].kept[j].GetSeq(), Fact: gone[i].kept[j].Fact})
		}
	}
	s.Blocks = s.Blocks[:cut]
	if depth > 0 {
		s.Number, s.Time = gone[0].Number-1, gone[0].Time-1
	}
	return gone
}

// Backfill appends a log of a vault for each block after from, all of which were
// entered before and are final, in one unit that ends with the block they reach.
func (s *Script) Backfill(from uint64, logs ...Said) {
	s.fills++
	n := from
	for _, l := range logs {
		h := s.headers[n]
		s.put(&event.Record{Fact: &event.Record_Log{Log: LogOf(n, h.time, h.hash, 1000*s.fills, l)}})
		n++
	}
	h := s.headers[n]
	s.put(&event.Record{Fact: &event.Record_Block{Block: &event.Block{Number: n, Hash: h.hash.Bytes(), ParentHash: make([]byte, 32), Time: h.time}}})
	s.Boundary()
}

// Vault appends what is known of a vault that starts with the first block.
func (s *Script) Vault(a common.Address) {
	s.put(&event.Record{Fact: &event.Record_Vault{Vault: &event.Vault{Address: a.Bytes(), StartBlock: s.First, Name: "Vault " + a.Hex()[38:], Symbol: "V", Decimals: 18,
		Asset: &event.Token{Address: a.Bytes(), Symbol: "A", Decimals: 6}}}})
	s.Boundary()
}

// Decision appends what a person decided.
func (s *Script) Decision(kind string) {
	s.put(&event.Record{Fact: &event.Record_Decision{Decision: &event.Decision{Kind: kind, Reason: "test", Time: 1}}})
	s.Boundary()
}

// Units cuts records after each boundary.
func Units(records []*event.Record) (out [][]*event.Record) {
	for start, i := 0, 0; i < len(records); i++ {
		if records[i].GetBoundary() {
			out = append(out, records[start:i+1])
			start = i + 1
		}
	}
	return out
}

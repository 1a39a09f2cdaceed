// Package histories makes histories of a chain as ingest would log them: a Script lists what happens, block by block,
// and Random generates one that is determined by its random draws. The tests of projections and check/histories play
// them.
package histories

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// A Script writes the history of a chain as ingest would: blocks, backfills and reorganisations, in whole units.
type Script struct {
	// Records are the log so far; record i has seq i+1.
	Records []*event.Record
	// Blocks are the blocks that are not final yet, oldest first.
	Blocks []Block
	// Number of the newest block.
	Number uint64
	// First is the number of the first block.
	First   uint64
	chainID uint64
	// Time of the newest block.
	Time    uint64
	salt    uint64            // changes the hashes of each new branch
	fills   uint32            // number of backfills so far: each has its own log indexes
	headers map[uint64]header // of the chain's blocks
	final   uint64            // only an accepted reorganisation retracts blocks up to this one
	covered []*event.Coverage
	absent  map[common.Address]bool      // vaults that are removed or late: new blocks have none of their logs
	mapped  map[common.Address]*protocol // of vaults that do not have the reference contracts
	cursors map[uint64]*event.Cursor     // by the seq that ends the unit
}

// logID is the id of every scripted log.
var logID = []byte("0123456789abcdef")

// header is what a backfill needs to know about a block that was entered before it.
type header struct {
	time     uint64
	hash     common.Hash
	recorded bool // the log has a record of the block
}

// Block is one block with its logs.
type Block struct {
	Number, Time uint64
	hash         common.Hash
	logs         []*event.Log
}

// Emitted is what a vault emits: an event of the reference contracts (contracts.Event), or a *Log.
type Emitted = struct {
	Vault common.Address
	Event any
}

// began is the time of the block before the first one.
const began = 1_700_000_000

// New returns the log of a chain before its first record.
func New(chainID uint64) *Script {
	return &Script{chainID: chainID, First: 1, Time: began, headers: map[uint64]header{},
		absent: map[common.Address]bool{}, mapped: map[common.Address]*protocol{}, cursors: map[uint64]*event.Cursor{}}
}

// startAt sets the number of the first block. It must be called before anything is appended.
func (s *Script) startAt(first uint64) { s.First, s.Number = first, first-1 }

// Seq of the last record.
func (s *Script) Seq() uint64 { return uint64(len(s.Records)) }

func (s *Script) put(r *event.Record) {
	r.Seq, r.ChainId = s.Seq()+1, s.chainID
	if r.Seq == 1 {
		r.Origin = &event.Origin{LogId: logID, GenesisHash: make([]byte, 32)}
	}
	s.Records = append(s.Records, r)
}

// Boundary ends a unit.
func (s *Script) Boundary() {
	s.Records[len(s.Records)-1].Boundary = true
	c := &event.Cursor{LogId: logID, GenesisHash: make([]byte, 32), ChainId: s.chainID, InstanceId: logID, Seq: s.Seq()}
	if h := s.headers[s.Number]; h.recorded {
		c.Head = &event.Block{Number: s.Number, Hash: h.hash.Bytes(), ParentHash: make([]byte, 32), Time: h.time}
	}
	if len(s.Blocks) > 0 {
		s.final = max(s.final, s.Blocks[0].Number-1)
	}
	c.FinalBlock = s.final
	for _, v := range s.covered {
		c.Vaults = append(c.Vaults, proto.Clone(v).(*event.Coverage))
	}
	s.cursors[c.Seq] = c
}

// Cursor returns the cursor record that ingest commits with the unit that ends with this seq, or nil if no unit ends
// there.
func (s *Script) Cursor(seq uint64) *event.Cursor { return s.cursors[seq] }

// Covered reports whether there is a block at the end of a unit and the log is complete up to it for every vault.
func (s *Script) Covered(seq uint64) bool {
	c := s.cursors[seq]
	return c.GetHead() != nil && !slices.ContainsFunc(c.GetVaults(), func(v *event.Coverage) bool {
		return !v.GetRemoved() && v.GetCoveredTo() < c.GetHead().GetNumber()
	})
}

// coverage returns a vault's coverage, or nil before its first record.
func (s *Script) coverage(vault common.Address) *event.Coverage {
	for _, v := range s.covered {
		if bytes.Equal(v.GetAddress(), vault[:]) {
			return v
		}
	}
	return nil
}

func hashOf(parts ...uint64) common.Hash {
	var b []byte
	for _, p := range parts {
		b = binary.BigEndian.AppendUint64(b, p)
	}
	return crypto.Keccak256Hash(b)
}

// Make builds the next block, that many seconds after the last one, without appending it.
func (s *Script) Make(after uint64, logs ...Emitted) Block {
	s.salt++
	s.Number++
	s.Time += after
	b := Block{Number: s.Number, Time: s.Time, hash: hashOf(s.Number, s.salt)}
	for i, l := range logs {
		raw := LogOf(b.Number, b.Time, b.hash, uint32(i), l)
		if log, ok := l.Event.(*Log); ok && log.Joined {
			raw.TxHash, raw.TxIndex = b.logs[i-1].TxHash, b.logs[i-1].TxIndex
		}
		b.logs = append(b.logs, raw)
	}
	return b
}

// LogOf returns an event as a node returns it.
func LogOf(number, time uint64, hash common.Hash, index uint32, l Emitted) *event.Log {
	log, ok := l.Event.(*Log)
	if !ok {
		topics, data, err := contracts.Encode(l.Event.(contracts.Event))
		if err != nil {
			panic(err)
		}
		log = &Log{Contract: l.Vault, Topics: topics, Data: data}
	}
	raw := &event.Log{Address: log.Contract.Bytes(), Data: log.Data, BlockNumber: number, BlockHash: hash.Bytes(),
		BlockTime: time, TxHash: hashOf(number, uint64(index), binary.BigEndian.Uint64(hash[:8])).Bytes(), TxIndex: index,
		LogIndex: index}
	for _, t := range log.Topics {
		raw.Topics = append(raw.Topics, t.Bytes())
	}
	if log.Contract != l.Vault {
		raw.Vault = l.Vault.Bytes()
	}
	return raw
}

// Enter appends a block without ending the unit.
func (s *Script) Enter(b Block) {
	s.blocks(b)
	s.Blocks = append(s.Blocks, b)
}

// blocks appends the logs and samples of consecutive blocks and the record of the last one.
func (s *Script) blocks(of ...Block) {
	for _, b := range of {
		for _, l := range b.logs {
			s.put(&event.Record{Fact: &event.Record_Log{Log: l}})
		}
		s.headers[b.Number] = header{time: b.Time, hash: b.hash}
		for _, v := range s.covered {
			if !s.absent[common.Address(v.GetAddress())] && v.GetStartBlock() <= b.Number {
				s.sample(common.Address(v.GetAddress()), b.Number)
			}
		}
	}
	last := of[len(of)-1]
	s.record(last.Number)
	for _, v := range s.covered {
		if !s.absent[common.Address(v.GetAddress())] {
			v.CoveredTo = last.Number
		}
	}
	s.Number, s.Time = last.Number, last.Time
}

// record appends the record of a block.
func (s *Script) record(number uint64) {
	h := s.headers[number]
	h.recorded = true
	s.headers[number] = h
	s.put(&event.Record{Fact: &event.Record_Block{Block: &event.Block{Number: number, Hash: h.hash.Bytes(),
		ParentHash: make([]byte, 32), Time: h.time}}})
}

// Range appends consecutive blocks as ingest reads old ones: in one unit, with only the last block recorded. All of
// them, and the blocks before them, are final.
func (s *Script) Range(of ...Block) {
	s.blocks(of...)
	s.Blocks, s.final = nil, s.Number
	s.Boundary()
}

// Mine appends a block, 12 seconds after the last one.
func (s *Script) Mine(logs ...Emitted) {
	s.Enter(s.Make(12, logs...))
	s.Boundary()
}

// Raw appends a block with a log that no Solidity compiler would write.
func (s *Script) Raw(l *event.Log) {
	b := s.Make(12)
	l.BlockNumber, l.BlockTime, l.BlockHash = b.Number, b.Time, b.hash.Bytes()
	b.logs = append(b.logs, l)
	s.Enter(b)
	s.Boundary()
}

// Retract retracts the newest blocks, newest record first, and returns them.
func (s *Script) Retract(depth int) []Block {
	cut := len(s.Blocks) - depth
	gone := append([]Block(nil), s.Blocks[cut:]...)
	s.Blocks = s.Blocks[:cut]
	if depth > 0 {
		s.retractAbove(gone[0].Number - 1)
	}
	return gone
}

// retractAbove retracts all records about blocks above one, newest record first.
func (s *Script) retractAbove(ancestor uint64) {
	gone := map[uint64]bool{}
	for _, r := range slices.Backward(s.Records) { // a vault that joined late has records about old blocks with high seqs
		gone[r.GetRetracts()] = true
		number := max(r.GetBlock().GetNumber(), r.GetLog().GetBlockNumber(), r.GetSample().GetBlockNumber())
		if r.GetRetracts() == 0 && !gone[r.GetSeq()] && number > ancestor {
			s.put(&event.Record{Retracts: r.GetSeq(), Fact: r.Fact})
		}
	}
	maps.DeleteFunc(s.headers, func(n uint64, _ header) bool { return n > ancestor })
	s.Number, s.Time = s.First-1, began
	for n, h := range s.headers {
		if h.recorded && n >= s.Number {
			s.Number, s.Time = n, h.time
		}
	}
	for _, v := range s.covered {
		v.CoveredTo = min(v.CoveredTo, s.Number)
	}
}

// AcceptReorg retracts everything above a recorded block, or above the block before the first one, as an operator's
// command does: between two decisions, in as many units as there are blocks, which are in falling order.
func (s *Script) AcceptReorg(ancestors ...uint64) {
	s.Decision("accept-reorg:open")
	s.Blocks = nil
	for _, n := range ancestors {
		s.final = min(s.final, n)
		before := s.Seq()
		if s.retractAbove(n); s.Seq() > before {
			s.Boundary()
		}
	}
	s.Decision("accept-reorg:close")
}

// recorded returns the numbers of the recorded blocks, in order.
func (s *Script) recorded() []uint64 {
	return slices.DeleteFunc(s.known(0), func(n uint64) bool { return !s.headers[n].recorded })
}

// known returns the numbers of the chain's blocks from one on, in order.
func (s *Script) known(from uint64) []uint64 {
	all := slices.Sorted(maps.Keys(s.headers))
	i, _ := slices.BinarySearch(all, from)
	return all[i:]
}

// below adds that many blocks below the first one, which no vault had needed so far: none is recorded.
func (s *Script) below(blocks uint64) {
	time := uint64(began)
	if h, known := s.headers[s.First]; known {
		time = h.time
	}
	for ; blocks > 0; blocks-- {
		s.First, time = s.First-1, time-12
		s.headers[s.First] = header{time: time, hash: hashOf(s.First)}
	}
}

// Backfill appends logs of a vault, one in each block from one on, in one unit that ends with the block after them,
// which it records. All these blocks are final.
func (s *Script) Backfill(from uint64, logs ...Emitted) {
	s.fills++
	in := s.known(from)
	for n := max(from, s.Number+1); len(in) <= len(logs); n++ {
		in = append(in, n) // the head does not know it yet
	}
	for i, l := range logs {
		h := s.headers[in[i]]
		s.put(&event.Record{Fact: &event.Record_Log{Log: LogOf(in[i], h.time, h.hash, 1000*s.fills, l)}})
		s.sample(l.Vault, in[i])
	}
	last := in[len(logs)]
	s.record(last)
	for _, l := range logs {
		if v := s.coverage(l.Vault); v != nil {
			v.CoveredTo = max(v.CoveredTo, last)
			s.late(v)
		}
	}
	s.Boundary()
}

// late makes a vault that is not removed absent as long as the log does not have it up to the newest block.
func (s *Script) late(v *event.Coverage) {
	s.absent[common.Address(v.GetAddress())] = v.GetCoveredTo() < s.Number
}

// appendJoin appends, in one unit, a late vault's logs in the blocks that are not final yet, one log in each of the
// newest ones, and then the newest block's record again: up to there the log is now complete for this vault too. The
// logs belong to their blocks: they are retracted with them, and come back with them.
func (s *Script) appendJoin(vault common.Address, logs ...Emitted) {
	s.fills++
	blocks := s.Blocks[max(0, len(s.Blocks)-len(logs)):]
	for i := range blocks {
		b := &blocks[i]
		l := LogOf(b.Number, b.Time, b.hash, 1000*s.fills, logs[i])
		b.logs = append(slices.Clone(b.logs), l)
		s.put(&event.Record{Fact: &event.Record_Log{Log: l}})
		s.sample(vault, b.Number)
	}
	newest := s.Blocks[len(s.Blocks)-1].Number
	s.record(newest)
	v := s.coverage(vault)
	v.CoveredTo = newest
	s.late(v)
	s.Boundary()
}

// Vault appends the description of a vault that starts with the first block, or that was removed and is restored.
func (s *Script) Vault(a common.Address) {
	v := s.coverage(a)
	if v == nil {
		v = &event.Coverage{Address: a.Bytes(), StartBlock: s.First, CoveredTo: s.First - 1}
		s.covered = append(s.covered, v)
	}
	v.Removed = false
	s.late(v)
	described := &event.Vault{Address: a.Bytes(), StartBlock: v.GetStartBlock(), Name: "Vault " + a.Hex()[38:],
		Symbol: "V", Decimals: 18, Asset: &event.Token{Address: a.Bytes(), Symbol: "A", Decimals: 6}}
	if p := s.mapped[a]; p != nil {
		p.describe(described)
	}
	s.put(&event.Record{Fact: &event.Record_Vault{Vault: described}})
	s.Boundary()
}

// Removed appends a record that a vault was removed.
func (s *Script) Removed(a common.Address) {
	v := s.coverage(a)
	v.Removed, s.absent[a] = true, true
	s.put(&event.Record{Fact: &event.Record_Vault{Vault: &event.Vault{Address: a.Bytes(), StartBlock: v.GetStartBlock(),
		Removed: true}}})
	s.Boundary()
}

// Decision appends an operator's decision.
func (s *Script) Decision(kind string) {
	s.put(&event.Record{Fact: &event.Record_Decision{Decision: &event.Decision{Kind: kind, Reason: "test", Time: 1}}})
	s.Boundary()
}

// Units splits records after each boundary.
func Units(records []*event.Record) (out [][]*event.Record) {
	for start, i := 0, 0; i < len(records); i++ {
		if records[i].GetBoundary() {
			out = append(out, records[start:i+1])
			start = i + 1
		}
	}
	return out
}

// AsRead returns records as a reader of the log gives them. The offset of each is its seq.
func AsRead(records []*event.Record) ([]chainlog.Raw, error) {
	out := make([]chainlog.Raw, len(records))
	for i, r := range records {
		value, err := proto.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("encode record %d: %w", r.GetSeq(), err)
		}
		out[i] = chainlog.Raw{Seq: r.GetSeq(), Boundary: r.GetBoundary(), Offset: int64(r.GetSeq()), Value: value}
	}
	return out, nil
}

package ingest

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/time/rate"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// prover compares logs that were accepted unproven with the headers of their blocks, at a configured rate and in
// parallel to all other work: block after block of the vaults that are furthest behind, against the log. A block whose
// bloom contains more than the log has is read again and proven, even if the bloom is too full to be useful, because
// nothing unread counts as proven. Its progress is in the cursor of the next commit (coverage.proven). After it finds
// an error it reports it and stops: the log is append-only, so only a new log can correct it.
type prover struct {
	ingest  *Ingest
	mapped  *mapping.Vaults
	pace    *rate.Limiter
	atOnce  uint64 // headers in a batch
	index   index
	readFor map[common.Address]uint64 // the index has all logs of the vault up to this block
	last    *rpc.Header               // the last compared header; nil if the next one does not continue it

	mu      sync.Mutex
	covered []coverage                // as last committed
	final   uint64                    // as last committed
	proven  map[common.Address]uint64 // since the last commit
}

// index is the part of the log that a comparison needs, by block.
type index struct {
	blocks map[uint64]*held
	last   chainlog.Position // of the last record that was read
}

// held is a block that has logs in the log.
type held struct {
	hash common.Hash // from the newest record
	logs []digest
}

// digest identifies a log by its contents.
type digest struct {
	vault   common.Address
	address common.Address // of the contract
	topic   common.Hash    // the first one, zero if there is none
	index   uint32
	sum     uint64 // hash of everything else
}

// seed prevents a contract from crafting two logs with the same digest.
var seed = maphash.MakeSeed()

func digestOf(l *event.Log) digest {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, topic := range l.GetTopics() {
		h.Write(topic)
	}
	bounded := event.Log{Data: l.GetData(), DataLength: l.GetDataLength(), DataHash: l.GetDataHash()}
	if !bounded.Omitted() {
		bounded.SetData(l.GetData()) // a record of an earlier version may hold a little more
	}
	h.Write(bounded.Data)
	h.Write(bounded.DataHash)
	h.Write(l.GetTxHash())
	_ = binary.Write(&h, binary.BigEndian, l.GetBlockTime())
	d := digest{vault: mapping.VaultOf(l), address: common.Address(l.GetAddress()), index: l.GetLogIndex(), sum: h.Sum64()}
	if len(l.GetTopics()) > 0 {
		d.topic = common.BytesToHash(l.GetTopics()[0])
	}
	return d
}

// disprovenError means that the log contradicts the chain.
type disprovenError struct {
	block uint64
	hash  common.Hash
	node  string
	why   string
}

func (e *disprovenError) Error() string {
	return fmt.Sprintf("block %d (%s) at %s: %s; an endpoint of chain.rpc answered wrongly when the history was read: index the chain into a new log from another endpoint, or with chain.proof full", e.block, e.hash, e.node, e.why)
}

// newProver returns a prover if chain.prove enables it and proofs by bloom are on; otherwise nil.
func (i *Ingest) newProver(s *state) *prover {
	perSecond := float64(i.config.Prove)
	if perSecond == 0 || i.config.Proof == proof.None {
		return nil
	}
	p := &prover{ingest: i, mapped: s.mapped, atOnce: uint64(min(rpc.HeadersAtOnce, math.Ceil(perSecond))), proven: map[common.Address]uint64{}, readFor: map[common.Address]uint64{}}
	p.pace = rate.NewLimiter(rate.Limit(perSecond), int(p.atOnce))
	p.index.blocks = map[uint64]*held{}
	p.committed(s)
	return p
}

// run proves blocks until ctx ends or something is disproven.
func (p *prover) run(ctx context.Context) {
	for wait := rpc.NewBackoff(); ctx.Err() == nil; {
		did, err := p.step(ctx)
		var disproven *disprovenError
		switch {
		case errors.As(err, &disproven):
			p.ingest.log.Error("the log contradicts the chain", "error", err)
			p.ingest.metrics.disproven.Set(1)
			p.ingest.note(func(st *Status) { st.Disproven = err.Error() })
			return
		case err != nil && ctx.Err() == nil:
			p.ingest.log.Warn("proof of old blocks failed, retrying", "error", err)
			p.last = nil
			_ = wait.Sleep(ctx)
		case did:
			wait.Reset()
		default:
			_ = rpc.Sleep(ctx, time.Second)
		}
	}
}

// known returns the current coverage of the indexed vaults.
func (p *prover) known() []coverage {
	p.mu.Lock()
	defer p.mu.Unlock()
	var known []coverage
	for _, v := range p.ingest.watched() {
		for _, have := range p.covered {
			if have.address == v.address {
				have.proven = max(have.proven, p.proven[v.address])
				known = append(known, have)
			}
		}
	}
	return known
}

// next returns the vaults that are furthest behind, and the blocks to prove for them: until they meet the next vault,
// or up to the last unproven block. Blocks that are not final are not compared, although some were accepted unproven,
// such as those whose headers are not sealed: if a node has replaced such a block and the log has not yet, that is no
// error in the log, and a proof of it would not apply to the block that replaces it.
func (p *prover) next() (vaults []common.Address, from, to uint64) {
	p.mu.Lock()
	final := p.final
	p.mu.Unlock()
	known := slices.DeleteFunc(p.known(), func(c coverage) bool { return c.proven >= c.believed || c.provenTo() >= final })
	from, to = math.MaxUint64, final
	for _, c := range known {
		from = min(from, c.provenTo()+1)
	}
	for _, c := range known {
		if c.provenTo()+1 == from {
			vaults, to = append(vaults, c.address), min(to, c.believed)
		} else {
			to = min(to, c.provenTo())
		}
	}
	return vaults, from, to
}

// step proves a few blocks, and reports whether there were any.
func (p *prover) step(ctx context.Context) (did bool, err error) {
	vaults, from, to := p.next()
	if len(vaults) == 0 {
		return false, nil
	}
	to = min(to, from+p.atOnce-1)
	if slices.ContainsFunc(vaults, func(v common.Address) bool { return p.readFor[v] < to }) {
		if err := p.read(ctx); err != nil {
			return false, err
		}
	}
	if err := p.pace.WaitN(ctx, int(to-from+1)); err != nil {
		return false, err
	}
	n, err := p.ingest.nodes.Current(ctx)
	if err != nil {
		return false, err
	}
	headers, err := n.Headers(ctx, from, to)
	if err != nil {
		return false, err
	}
	if p.last != nil && p.last.Number+1 == from && headers[0].Parent != p.last.Hash {
		return false, fmt.Errorf("block %d at %s has the parent %s, but block %d is %s: the nodes of chain.rpc are not of one chain", from, n.Name, headers[0].Parent, p.last.Number, p.last.Hash)
	}
	for _, h := range headers {
		if !h.Sealed {
			return false, fmt.Errorf("the fields of the header of block %d at %s do not hash to its hash, so its bloom proves nothing", h.Number, n.Name)
		}
		if err := p.compare(ctx, n, h, vaults); err != nil {
			return false, err
		}
		p.last = h
		p.advance(vaults, h.Number)
	}
	return true, nil
}

// advance notes that a block of these vaults is proven, and removes it from the index.
func (p *prover) advance(vaults []common.Address, number uint64) {
	p.mu.Lock()
	for _, address := range vaults {
		p.proven[address] = number
	}
	p.mu.Unlock()
	if have := p.index.blocks[number]; have != nil {
		have.logs = slices.DeleteFunc(have.logs, func(d digest) bool { return slices.Contains(vaults, d.vault) })
		if len(have.logs) == 0 {
			delete(p.index.blocks, number)
		}
	}
	p.ingest.noteProven(p.known())
}

// compare compares what the log has of a block with its header and, if the header is not conclusive, with the logs of
// the block.
func (p *prover) compare(ctx context.Context, n *rpc.Node, h *rpc.Header, vaults []common.Address) error {
	if err := n.HasBloom(h); err != nil {
		return err
	}
	var ours []digest
	if have := p.index.blocks[h.Number]; have != nil {
		if have.hash != h.Hash {
			return &disprovenError{h.Number, h.Hash, n.Name, fmt.Sprintf("the log has it with the hash %s", have.hash)}
		}
		for _, d := range have.logs {
			if slices.Contains(vaults, d.vault) {
				ours = append(ours, d)
			}
		}
	}
	shapes := make([]*event.Log, len(ours))
	for i, d := range ours {
		shapes[i] = &event.Log{Address: d.address[:], Topics: [][]byte{d.topic[:]}}
	}
	w := proof.Watch(contractsOf(p.mapped, vaults))
	if !w.Lacks(&h.Bloom, shapes) {
		return nil
	}
	if err := p.pace.Wait(ctx); err != nil {
		return err
	}
	logs, err := n.OneBlock(ctx, h, w, proof.Head) // at any chain.proof: a second unproven response would prove nothing
	if err != nil {
		return err
	}
	logs = belonging(p.mapped, vaults, logs)
	theirs := make([]digest, len(logs))
	for i, l := range logs {
		theirs[i] = digestOf(l)
	}
	byIndex := func(a, b digest) int { return cmp.Compare(a.index, b.index) }
	slices.SortFunc(ours, byIndex)
	slices.SortFunc(theirs, byIndex)
	if !slices.Equal(ours, theirs) {
		return &disprovenError{h.Number, h.Hash, n.Name, fmt.Sprintf("it has %d logs of the vaults, the log has %d, and they are not the same", len(theirs), len(ours))}
	}
	return nil
}

// read reads the log up to its end. The index then contains all logs that were accepted before read began; later ones
// may be in it only partly.
func (p *prover) read(ctx context.Context) error {
	before := p.known()
	from := p.index.last
	if from.Seq > 0 {
		from.Seq-- // its offset is known, that of the next one is not
	}
	err := chainlog.ReadAfter(ctx, p.ingest.config.ID, from, func(e chainlog.Entry) error {
		if e.GetSeq() > p.index.last.Seq {
			p.index.apply(e)
			p.index.last = chainlog.Position{Seq: e.GetSeq(), Offset: e.Offset}
		}
		return nil
	}, p.ingest.kafka.Options()...)
	if err != nil {
		return fmt.Errorf("read the log for the proof of old blocks: %w", err)
	}
	for _, c := range before {
		p.readFor[c.address] = c.believed
	}
	p.forget()
	return nil
}

// forget drops what will not be compared: blocks that a session before this one has proven. Blocks above the last
// unproven one stay, although they were compared when they were read: that limit moves, and the proof continues below
// them. The logs of a removed vault stay too: a command may restore it while this index lives, and without them the log
// would seem to lack them.
func (p *prover) forget() {
	known := map[common.Address]coverage{}
	p.mu.Lock()
	for _, c := range p.covered {
		c.proven = max(c.proven, p.proven[c.address])
		known[c.address] = c
	}
	p.mu.Unlock()
	for number, have := range p.index.blocks {
		have.logs = slices.DeleteFunc(have.logs, func(d digest) bool {
			c, ours := known[d.vault]
			return !ours || number <= c.proven
		})
		if len(have.logs) == 0 {
			delete(p.index.blocks, number)
		}
	}
}

func (x *index) apply(e chainlog.Entry) {
	l := e.GetLog()
	if l == nil {
		return
	}
	number, d := l.GetBlockNumber(), digestOf(l)
	have := x.blocks[number]
	if original := e.GetRetracts(); original != 0 {
		if have != nil {
			if i := slices.Index(have.logs, d); i >= 0 {
				have.logs = slices.Delete(have.logs, i, i+1)
			}
		}
		return
	}
	if have == nil {
		have = &held{}
		x.blocks[number] = have
	}
	have.hash, have.logs = common.Hash(l.GetBlockHash()), append(have.logs, d)
}

// merge adds the progress of the proof to a state that is about to be committed.
func (p *prover) merge(s *state) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range s.covered {
		c := &s.covered[i]
		c.proven = max(c.proven, min(p.proven[c.address], c.believed))
	}
}

// committed notes a committed state.
func (p *prover) committed(s *state) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.covered, p.final = slices.Clone(s.covered), s.final
}

// ended reports whether the proof of a vault has completed since the last commit, which is worth a cursor of its own.
func (p *prover) ended() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.covered, func(c coverage) bool { return c.proven < c.believed && p.proven[c.address] >= c.believed })
}

package rpc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/schemas/event"
)

// A range of final blocks is read by a job, and several jobs are in flight; the
// pipeline keeps them in the order of their blocks. A job reads its blocks from
// the first on, as many at once as the endpoint gives and as fill an answer, and
// keeps its place: whether it was refused, failed, or has read as much as may be
// held at once, it goes on where it is.
//
//	          ┌───────────── longer ranges ◀── given ◀─┐
//	          ▼                                        │
//	headers ──▶ eth_getLogs ──▶ refused ──▶ shorter ───┤
//	                  │            └─ one block ──▶ by hash, receipts, vault by vault
//	                  ▼                                │
//	      blooms, round numbers ──▶ doubt ──▶ all logs of the block make up its bloom? ──▶ part
//
// A provider bills each header, and a history has thousands of blocks for each
// that has a log of ours. So only blocks that are nearer to the head than the
// window have their headers read, and with proof full all; of older ones an answer
// is believed that agrees with the question and with itself. Such a part has no
// block: the one that a commit ends with is read when it is known (seal).
const (
	// wantedAnswer is how many bytes an answer should have, and so a part of the
	// log; budget is what all jobs in flight may want at once.
	wantedAnswer = 3 << 20
	budget       = 24 << 20
	// proofsAtOnce is how many blocks of an answer that was caught with logs missing
	// are proven one by one; a longer one is asked for again.
	proofsAtOnce = 32
	// unclearTries is how often a single block is asked for in vain before it is asked
	// for in other ways.
	unclearTries = 3
)

// Part is what was read of some blocks in a row.
type Part struct {
	From, To uint64
	Parent   common.Hash // of block from, where it is known
	Blocks   []*Header   // that are to be recorded, the last of them block to; none where headers were not read
	Logs     []*event.Log
	// Samples are what Sampling asked for at blocks of the part, in their order.
	Samples []Sample
	// NoState is the last block at which a sample was due and whose state no endpoint has; 0 for none.
	NoState  uint64
	bytes    int
	Believed uint64 // the last of the blocks whose logs were taken without sealed headers; 0 for none
	parent   string // the trace context of its reading
}

// precedes compares the last logs of a part with the block that the next one goes
// on from, where both are of the same block.
func (p *Part) precedes(next *Part) error {
	if len(p.Logs) == 0 || next.Parent == (common.Hash{}) {
		return nil
	}
	if last := p.Logs[len(p.Logs)-1]; last.BlockNumber+1 == next.From && common.Hash(last.BlockHash) != next.Parent {
		return fmt.Errorf("the final block %d was given with the parent %s, but a log of block %d with the hash 0x%x: the nodes of chain.rpc are not of one chain; the blocks are read again", next.From, next.Parent, last.BlockNumber, last.BlockHash)
	}
	return nil
}

// End is the last block of the part, nil where it was not read.
func (p *Part) End() *Header {
	if len(p.Blocks) == 0 {
		return nil
	}
	return p.Blocks[len(p.Blocks)-1]
}

// Reader reads final blocks.
type Reader struct {
	pool    *Pool
	watched *proof.Watched
	proof   proof.Level
	most    uint64      // blocks of a range
	wanted  int         // bytes of an answer
	flight  int         // ranges at once
	atOnce  int         // parts without a block in a commit
	giant   *sync.Mutex // held while an answer of unusual length is in memory
	// sampling says what contracts are asked at blocks that are read; nil for nothing.
	sampling *Sampling
}

// NewReader reads final blocks, mostBlocks in a range and so many ranges at once. A
// commit waits for partsAtOnce parts without a block.
func (p *Pool) NewReader(addresses []common.Address, level proof.Level, mostBlocks uint64, inFlight, partsAtOnce int) *Reader {
	return &Reader{
		pool:    p,
		watched: proof.Watch(addresses), proof: level, most: mostBlocks, flight: inFlight, atOnce: partsAtOnce,
		wanted: min(wantedAnswer, budget/inFlight), giant: &p.giant,
	}
}

// job is a range of blocks that is being read.
type job struct {
	at, to      uint64 // blocks that are still to be read
	recordFrom  uint64 // blocks from this one on are recorded, each
	headersFrom uint64 // the logs of blocks from this one on are compared with their headers
	step        uint64 // how many to ask for next, 0 for what the limits say
	failures    int    // in a row, of the single block at
	headers     []*Header
	parts       []*Part
	held        int // bytes in parts

	running chan struct{}  // closed when the reading ended; nil before it began
	err     error          // after that
	node    *Node          // that is read from
	failed  map[*Node]bool // that failed since something was read
	had     int            // parts when it was dealt
}

func (j *job) done() bool { return j.at > j.to }

// run reads until the job is done or holds enough.
func (r *Reader) run(ctx context.Context, n *Node, j *job) error {
	for !j.done() && j.held < r.wanted {
		p, err := r.read(ctx, n, j)
		if err == nil && p != nil {
			err = r.sample(ctx, n, p)
		}
		if err != nil {
			j.headers = nil // the next endpoint may know better
			return fmt.Errorf("read the logs of final blocks from %d on: %w", j.at, err)
		}
		if p == nil {
			continue // less will be asked for
		}
		j.parts, j.held = append(j.parts, p), j.held+p.bytes
		j.at, j.failures = p.To+1, 0
		for len(j.headers) > 0 && j.headers[0].Number < j.at {
			j.headers = j.headers[1:]
		}
	}
	return nil
}

// read asks for the next blocks of a job once. It gives nil where the endpoint
// refuses and a shorter range comes next.
func (r *Reader) read(ctx context.Context, n *Node, j *job) (*Part, error) {
	l := n.limits
	compared := j.at >= j.headersFrom
	end := j.to
	if !compared {
		end = min(end, j.headersFrom-1)
		if err := r.vouch(ctx, n, j.at); err != nil {
			return nil, err
		}
	} else if len(j.headers) == 0 {
		var err error
		if j.headers, err = n.Headers(ctx, j.at, j.to); err != nil {
			return nil, err
		}
		for _, h := range j.headers {
			if err := n.HasBloom(h); err != nil {
				j.headers = nil
				return nil, err
			}
		}
	}
	width := j.step
	if width == 0 {
		width = l.next(r.most)
	}
	to := min(end, j.at+width-1)
	addresses := r.watched.Addresses
	if r.proof == proof.Full && r.dense(j.headers[:to-j.at+1]) {
		addresses = nil // all logs, which prove themselves
	}
	began := time.Now()
	a, err := r.ask(ctx, n, j.at, to, addresses)
	if err != nil {
		return r.less(ctx, n, j, to, err)
	}
	l.gave(to-j.at+1, a.given, a.bytes, r.wanted, time.Since(began))
	j.step = 0
	if len(a.removed) > 0 || a.disordered && l.cut(a.given) {
		// The node is of two minds about a block, or its answer may lack any log of the range.
		if j.step = (to - j.at + 1) / 2; j.step > 0 {
			return nil, nil
		}
		return r.alone(ctx, n, j)
	}
	if !compared {
		return r.believe(ctx, n, j, to, a)
	}
	return r.accept(ctx, n, j, to, a)
}

// vouchTries is how many headers are read at most to find a block that has logs.
const vouchTries = 4

// vouch refuses a node that has the headers of old blocks and has pruned their
// logs: it answers every range with nothing, and no header would tell. The first
// block with a bloom that a range begins with must have some log, whoever has
// emitted it. That is asked once of each node, and costs two calls.
func (r *Reader) vouch(ctx context.Context, n *Node, at uint64) error {
	if r.proof == proof.None {
		return nil
	}
	l := n.limits
	l.vouching.Lock()
	defer l.vouching.Unlock()
	if l.vouches == 0 {
		return nil
	}
	h, err := n.ByNumber(ctx, at)
	if err != nil {
		return err
	}
	if err := n.HasBloom(h); err != nil {
		return err
	}
	if h.Bloom == (types.Bloom{}) {
		l.vouches--
		return nil
	}
	logs, err := n.LogsByHash(ctx, h, nil)
	switch refusal := refusalOf(ctx, err, at).kind; {
	case refusal == tooMuch: // so there are some
	case refusal == unclear: // whatever it is, the range will show it
		l.vouches--
		return nil
	case err != nil:
		return err
	case len(logs) == 0:
		return &UnprovenError{h.Number, h.Hash, n.Name, "it has none at all"}
	}
	l.vouches = 0
	return nil
}

// ask asks for the logs of a range. Its answer is bounded, so that all that are
// in flight fit into memory together; what a single block needs more is there
// for one at a time.
func (r *Reader) ask(ctx context.Context, n *Node, from, to uint64, addresses []common.Address) (*answer, error) {
	a, err := n.logsOfRange(ctx, 3*r.wanted, from, to, addresses)
	if from < to || !errors.Is(err, errAnswerTooLong) {
		return a, err
	}
	r.giant.Lock()
	defer r.giant.Unlock()
	return n.logsOfRange(ctx, maxAnswer, from, to, addresses)
}

// dense says that most blocks may have logs of the vaults.
func (r *Reader) dense(headers []*Header) bool {
	hits := 0
	for _, h := range headers {
		if r.watched.MayHold(&h.Bloom) {
			hits++
		}
	}
	return 2*hits > len(headers)
}

// less decides what to do about a range that was not given. A failure, and an
// endpoint that does not answer in time, teach nothing about how much it gives:
// the next endpoint is asked, for less. An endpoint that does not have the blocks teaches
// nothing either, and less would not help.
func (r *Reader) less(ctx context.Context, n *Node, j *job, to uint64, err error) (*Part, error) {
	refusal, asked := refusalOf(ctx, err, j.at), to-j.at+1
	if refusal.kind == absent {
		return nil, err // another endpoint has the blocks, or this one will: as many as before are asked for
	}
	if asked > 1 {
		if refusal.kind == notRefused || refusal.kind == unanswered {
			j.step = asked / 2
			return nil, err
		}
		j.step = n.limits.refused(asked, j.at, refusal)
		return nil, nil
	}
	if refusal.kind == notRefused {
		return nil, err
	}
	if refusal.kind != tooMuch {
		if j.failures++; j.failures < unclearTries {
			return nil, err
		}
	}
	return r.alone(ctx, n, j)
}

// alone reads the next block of a job by its hash. Nobody compares it with its bloom
// afterwards, for it was read with its header.
func (r *Reader) alone(ctx context.Context, n *Node, j *job) (_ *Part, err error) {
	h := (*Header)(nil)
	if len(j.headers) > 0 {
		h = j.headers[0]
	} else if h, err = n.ByNumber(ctx, j.at); err != nil {
		return nil, err
	}
	logs, err := n.OneBlock(ctx, h, r.watched, r.proof)
	if err == nil && r.proof == proof.Bloom { // the other levels have proven it, or prove nothing
		logs, err = r.complete(ctx, n, h, logs)
	}
	if err != nil {
		return nil, err
	}
	p := &Part{From: j.at, To: j.at, Parent: h.Parent, Blocks: []*Header{h}, Logs: logs, bytes: wire(logs)}
	if !h.Sealed {
		p.Believed = h.Number
	}
	return p, nil
}

// wire is about how many bytes of an answer logs have taken.
func wire(logs []*event.Log) (bytes int) {
	for _, l := range logs {
		bytes += typicalLog + 2*len(l.Data) + int(l.DataLength)
	}
	return bytes
}

// accept makes a part of an answer about the next blocks of a job up to to, once
// nothing speaks against it.
func (r *Reader) accept(ctx context.Context, n *Node, j *job, to uint64, a *answer) (*Part, error) {
	l := n.limits
	cut := l.cut(a.given)
	asked := to
	if cut { // what comes after its last block is asked for again
		to = a.logs[len(a.logs)-1].BlockNumber
	}
	headers := j.headers[:to-j.at+1]
	if err := n.fit(headers, a.logs, r.watched.Addresses); err != nil {
		return nil, err
	}
	byBlock := split(headers, a.logs)
	doubtful := r.doubtful(headers, byBlock)
	if last := len(headers) - 1; cut {
		lost, err := r.prove(ctx, n, headers[last], &byBlock[last])
		if err != nil {
			return nil, err
		}
		if lost {
			l.cuts(a.given)
		} else if to == asked {
			l.whole(a.given)
		}
		doubtful[last] = false
	} else {
		l.whole(a.given)
	}
	if err := r.resolve(ctx, n, headers, byBlock, doubtful); err != nil {
		j.step = max(1, uint64(len(headers))/2)
		return nil, err
	}
	p := &Part{From: j.at, To: to, Parent: headers[0].Parent, bytes: a.bytes}
	for i, h := range headers {
		if !h.Sealed {
			p.Believed = h.Number
		}
		p.Logs = append(p.Logs, ours(byBlock[i], r.watched.Addresses)...)
		if h.Number >= j.recordFrom || h.Number == to {
			p.Blocks = append(p.Blocks, h)
		}
	}
	return p, nil
}

// fit checks logs against the headers of their blocks, and dates them.
func (n *Node) fit(headers []*Header, logs []*event.Log, addresses []common.Address) error {
	known := proof.Patterns{}
	for i := 0; i < len(logs); {
		h := headers[logs[i].BlockNumber-headers[0].Number]
		next := i + 1
		for next < len(logs) && logs[next].BlockNumber == h.Number {
			next++
		}
		if err := n.belong(logs[i:next], h); err != nil {
			return err
		}
		for _, l := range logs[i:next] {
			if !slices.Contains(addresses, common.Address(l.Address)) {
				continue
			}
			if err := n.foreign(h, l, known); err != nil {
				return err
			}
		}
		i = next
	}
	return nil
}

// split sorts logs by their blocks.
func split(headers []*Header, logs []*event.Log) [][]*event.Log {
	byBlock := make([][]*event.Log, len(headers))
	for i, h := range headers {
		n := 0
		for n < len(logs) && logs[n].BlockNumber == h.Number {
			n++
		}
		byBlock[i], logs = logs[:n:n], logs[n:]
	}
	return byBlock
}

// doubtful says of each block whether its logs must be proven: with proof full
// where it may have any, otherwise where its bloom says that there are more. A
// bloom that is too full to say anything counts only before the first log that
// was answered, where a pruned node has nothing, and after the last one, where a
// lagging one has nothing.
func (r *Reader) doubtful(headers []*Header, byBlock [][]*event.Log) []bool {
	doubtful := make([]bool, len(headers))
	first, last, mute := len(headers), -1, []int(nil)
	for i, h := range headers {
		if len(byBlock[i]) > 0 {
			first, last = min(first, i), i
		}
		switch {
		case r.proof == proof.Full:
			doubtful[i] = r.watched.MayHold(&h.Bloom)
		case !r.watched.Lacks(&h.Bloom, byBlock[i]):
		case proof.Telling(&h.Bloom):
			doubtful[i] = true
		default:
			mute = append(mute, i)
		}
	}
	if len(mute) > 0 {
		if i := mute[0]; i < first {
			doubtful[i] = true
		}
		if i := mute[len(mute)-1]; i > last {
			doubtful[i] = true
		}
	}
	return doubtful
}

// prove leaves the logs that the vaults have in a block in logs, and says whether
// the answer had lost some of them.
func (r *Reader) prove(ctx context.Context, n *Node, h *Header, logs *[]*event.Log) (lost bool, err error) {
	had := len(ours(slices.Clone(*logs), r.watched.Addresses))
	all, err := n.prove(ctx, h, r.watched, *logs)
	if err != nil {
		return false, err
	}
	*logs = ours(all, r.watched.Addresses)
	return len(*logs) > had, nil
}

// resolve proves the doubtful blocks. Where that shows that the answer had lost
// logs, nothing of it is believed without a proof.
func (r *Reader) resolve(ctx context.Context, n *Node, headers []*Header, byBlock [][]*event.Log, doubtful []bool) error {
	lossy := false
	for i, h := range headers {
		if !doubtful[i] {
			continue
		}
		lost, err := r.prove(ctx, n, h, &byBlock[i])
		if err != nil {
			return err
		}
		lossy = lossy || lost
	}
	if !lossy {
		return nil
	}
	var rest []int
	for i, h := range headers {
		if !doubtful[i] && r.watched.MayHold(&h.Bloom) {
			rest = append(rest, i)
		}
	}
	if len(rest) > proofsAtOnce {
		return fmt.Errorf("%s leaves logs out when it is asked for blocks %d to %d", n.Name, headers[0].Number, headers[len(headers)-1].Number)
	}
	for _, i := range rest {
		if _, err := r.prove(ctx, n, headers[i], &byBlock[i]); err != nil {
			return err
		}
	}
	return nil
}

// fit says that logs may be those of a block.
func (r *Reader) fit(n *Node, h *Header, logs []*event.Log) error {
	if err := n.belong(logs, h); err != nil || r.proof == proof.None {
		return err
	}
	if err := n.HasBloom(h); err != nil {
		return err
	}
	_, err := n.Native(h, logs)
	return err
}

// complete gives the logs that the vaults have in a block: those that are known,
// or all, where its bloom says that there are more.
func (r *Reader) complete(ctx context.Context, n *Node, h *Header, logs []*event.Log) ([]*event.Log, error) {
	if r.proof == proof.None || !r.watched.Lacks(&h.Bloom, logs) || !proof.Telling(&h.Bloom) {
		return logs, nil
	}
	_, err := r.prove(ctx, n, h, &logs)
	return logs, err
}

// believe makes a part of an answer about blocks whose headers are not read: it
// agrees with itself, and with the headers that are needed anyway, those of the
// blocks that are recorded and of blocks whose logs came without their time.
func (r *Reader) believe(ctx context.Context, n *Node, j *job, to uint64, a *answer) (*Part, error) {
	l := n.limits
	if !l.cut(a.given) {
		l.whole(a.given)
	} else {
		// The last block may be cut, and those after it missing: they come next.
		last := a.logs[len(a.logs)-1].BlockNumber
		if last == j.at && to > last {
			j.step = 1
			return nil, nil
		}
		if last == j.at {
			return r.alone(ctx, n, j)
		}
		to = last - 1
		for len(a.logs) > 0 && a.logs[len(a.logs)-1].BlockNumber > to {
			a.logs = a.logs[:len(a.logs)-1]
		}
	}
	p := &Part{From: j.at, To: to, Logs: a.logs, bytes: a.bytes, Believed: to}
	if j.recordFrom <= to {
		var err error
		if p.Blocks, err = n.Headers(ctx, max(j.at, j.recordFrom), to); err != nil {
			return nil, err
		}
		if p.Blocks[0].Number == p.From {
			p.Parent = p.Blocks[0].Parent
		}
	}
	if err := r.date(ctx, n, p); err != nil {
		return nil, err
	}
	return p, nil
}

// date gives the logs of a part their times, and compares them with the headers
// that were read for that or are recorded.
func (r *Reader) date(ctx context.Context, n *Node, p *Part) error {
	headers := make(map[common.Hash]*Header, len(p.Blocks))
	for _, h := range p.Blocks {
		headers[h.Hash] = h
	}
	var missing []common.Hash
	for _, g := range p.Logs {
		if hash := common.Hash(g.BlockHash); g.BlockTime == noTime && headers[hash] == nil {
			headers[hash] = &Header{}
			missing = append(missing, hash)
		}
	}
	found, err := n.headersByHash(ctx, missing)
	if err != nil {
		return err
	}
	maps.Copy(headers, found)
	known := proof.Patterns{}
	for i, g := range p.Logs {
		h := headers[common.Hash(g.BlockHash)]
		if h == nil && len(p.Blocks) > 0 && g.BlockNumber >= p.Blocks[0].Number {
			h = p.Blocks[g.BlockNumber-p.Blocks[0].Number]
		}
		if h != nil {
			if err := n.belong(p.Logs[i:i+1], h); err != nil {
				return err
			}
			if r.proof != proof.None {
				if err := n.foreign(h, g, known); err != nil {
					return err
				}
			}
		}
		if i == 0 {
			continue
		}
		before := p.Logs[i-1]
		if g.BlockTime < before.BlockTime || g.BlockTime != before.BlockTime && g.BlockNumber == before.BlockNumber {
			return fmt.Errorf("%s answers logs whose times contradict each other: %d in block %d after %d in block %d", n.Name, g.BlockTime, g.BlockNumber, before.BlockTime, before.BlockNumber)
		}
	}
	return nil
}

package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/schemas/event"
)

// A range of final blocks is read by a job. It reads its blocks in order, each time as many as the endpoint returns and
// a response of the intended size holds. After a refusal, a failure, or once it holds as much as it may, it continues
// where it was. A single block that is refused is read by its hash, from its receipts, or vault by vault. A provider
// bills each header, so headers are read only for blocks that are nearer to the head than the window. For older blocks
// a response is accepted if it is consistent with the request and with itself. Such a part has no block: the block at
// the end of a commit is read once the commit is known (Seal).
const (
	// targetBytes is the intended size of a response, and so of a part of the log; budget is that of all jobs in flight.
	targetBytes = 3 << 20
	budget      = 24 << 20
	// maxProofs is how many blocks of a response with missing logs are proven one by one; those after them are read
	// again.
	maxProofs = 32
	// unclearTries is how many times a single block is read as a range before other methods are used.
	unclearTries = 3
)

// Part holds what was read from consecutive blocks.
type Part struct {
	From, To uint64
	Parent   common.Hash // of block From, if known
	Blocks   []*Header   // to record, the last of them block To; none if headers were not read
	Logs     []*event.Log
	// Samples are the results that Sampling requires at blocks of the part, in their order.
	Samples []Sample
	// NoState is the last block at which a sample was due but whose state no endpoint has; 0 for none.
	NoState  uint64
	bytes    int
	Unproven uint64 // the last block whose logs were accepted unproven; 0 for none
	node     *Node  // that returned it
	parent   string // the trace context in which it was read
}

// precedes compares the last logs of a part with the parent of the next part, if both belong to the same block.
func (p *Part) precedes(next *Part) error {
	if len(p.Logs) == 0 || next.Parent == (common.Hash{}) {
		return nil
	}
	if last := p.Logs[len(p.Logs)-1]; last.BlockNumber+1 == next.From && common.Hash(last.BlockHash) != next.Parent {
		return fmt.Errorf("the final block %d was given with the parent %s, but a log of block %d with the hash 0x%x: the "+
			"nodes of chain.rpc are not of one chain; the blocks are read again", next.From, next.Parent, last.BlockNumber,
			last.BlockHash)
	}
	return nil
}

// End returns the last block of the part, nil if its header was not read.
func (p *Part) End() *Header {
	if len(p.Blocks) == 0 {
		return nil
	}
	return p.Blocks[len(p.Blocks)-1]
}

// Reader reads final blocks.
type Reader struct {
	pool      *Pool
	vaults    []common.Address
	proof     proof.Level
	maxBlocks uint64 // maximum blocks of a range
	target    int    // intended bytes of a response
	inFlight  int    // ranges in flight
	// sampling says which contracts to call at blocks that are read.
	sampling Sampling
}

// NewReader returns a reader of final blocks that reads ranges of up to mostBlocks blocks, inFlight of them at a time.
func (p *Pool) NewReader(addresses []common.Address, sampling Sampling, level proof.Level, mostBlocks uint64,
	inFlight int) *Reader {
	return &Reader{
		pool:   p,
		vaults: addresses, sampling: sampling, proof: level, maxBlocks: mostBlocks, inFlight: inFlight,
		target: min(targetBytes, budget/inFlight),
	}
}

type job struct {
	next, to    uint64 // blocks that are not read yet
	recordFrom  uint64 // from this block, each block is recorded
	headersFrom uint64 // from this block, logs are compared with the headers
	step        uint64 // blocks of the next range, 0 for the width from the limits
	failures    int    // consecutive failures at the single block at
	headers     []*Header
	parts       []*Part
	bytes       int // bytes in parts

	running chan struct{}  // closed when the current read ends; nil before it begins
	err     error          // its outcome, once running is closed
	node    *Node          // the endpoint in use
	failed  map[*Node]bool // endpoints that failed since something was read
	had     int            // parts when the job was dealt
}

func (j *job) done() bool { return j.next > j.to }

func (r *Reader) run(ctx context.Context, n *Node, j *job) error {
	for !j.done() && j.bytes < r.target {
		p, err := r.read(ctx, n, j)
		if err == nil && p != nil {
			err = r.sample(ctx, n, p)
		}
		if err != nil {
			j.headers = nil // the next endpoint may have other headers
			return fmt.Errorf("read the logs of final blocks from %d on: %w", j.next, err)
		}
		if p == nil {
			continue // a shorter range comes next
		}
		j.parts, j.bytes = append(j.parts, p), j.bytes+p.bytes
		j.next, j.failures = p.To+1, 0
		for len(j.headers) > 0 && j.headers[0].Number < j.next {
			j.headers = j.headers[1:]
		}
	}
	return nil
}

// read makes one attempt at the next blocks of a job; nil if a shorter range comes next.
func (r *Reader) read(ctx context.Context, n *Node, j *job) (*Part, error) {
	end := j.to
	if from := min(j.headersFrom, j.recordFrom); j.next < from {
		end = min(end, from-1)
	} else if len(j.headers) == 0 {
		var err error
		if j.headers, err = n.Headers(ctx, j.next, j.to); err != nil {
			return nil, err
		}
		for _, h := range j.headers {
			if err := n.HasBloom(h); err != nil && r.proof != proof.None {
				j.headers = nil // they are read again
				return nil, err
			}
		}
	}
	p, err := r.readRange(ctx, n, j, min(end, j.next+cmp.Or(j.step, n.limits.next(r.maxBlocks))-1))
	if errors.Is(err, errNoLogsResponse) {
		return r.readByHash(ctx, n, j)
	}
	return p, err
}

// readRange makes one attempt at the blocks of a job up to to, by one call. Logs that no headers prove are accepted
// only from a node that has had a log of the range's first block or of a lower one. Any other node is checked below the
// first log of the response, at up to maxLogChecks blocks. One that has returned no range yet may be silent at
// eth_getLogs, so it is checked before the call, too.
func (r *Reader) readRange(ctx context.Context, n *Node, j *job, to uint64) (*Part, error) {
	l, checked := n.limits, 0
	unproven := len(j.headers) == 0 && r.proof != proof.None
	if unproven {
		if !l.hasAnswered() && n.needsLogCheck(to) {
			checked = maxLogChecks
		}
		if err := r.checkHasLogs(ctx, n, j.next, to, checked); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	a, err := r.readLogs(ctx, n, j.next, to)
	if err != nil {
		return r.narrow(ctx, n, j, to, err)
	}
	l.rangeSucceeded(to-j.next+1, a.received, a.bytes, r.target, time.Since(began))
	begin, checks := to+1, maxLogChecks-checked
	if len(a.logs) > 0 {
		begin, checks = a.logs[0].BlockNumber, max(1, checked)
	}
	if unproven && begin > j.next {
		if err := r.checkHasLogs(ctx, n, j.next, begin-1, checks); err != nil {
			return nil, err
		}
	}
	if begin <= to {
		n.noteHasLog(begin)
	}
	j.step = 0
	if len(a.removed) > 0 || a.unsorted && l.maybeTruncated(a.received) {
		// The node contradicts itself about a block, or its response may lack any log of the range.
		if j.step = (to - j.next + 1) / 2; j.step > 0 {
			return nil, nil
		}
		return r.readByHash(ctx, n, j)
	}
	return r.part(ctx, n, j, to, a)
}

// maxLogChecks is the maximum number of blocks of a range whose blooms a check reads: in a sparse history each costs a
// call.
const maxLogChecks = 4

// errNoLogsResponse means that a node could not be checked because it does not respond to eth_getLogs. Its blocks must
// be read by their hashes, so that their blooms prove the logs.
var errNoLogsResponse = errors.New("the node does not respond to eth_getLogs")

// checkHasLogs returns an error for a node that has the headers of old blocks but has pruned their logs, which no
// header would reveal. The first of some blocks of the range that has a bloom must have a log, from any contract. A
// node is checked until it has returned a log, and again for lower blocks, and after a failure. Without checks,
// checkHasLogs only returns errNoLogsResponse for a node that cannot be checked.
func (r *Reader) checkHasLogs(ctx context.Context, n *Node, from, to uint64, checks int) error {
	n.logCheck.Lock()
	defer n.logCheck.Unlock()
	if !n.needsLogCheck(from) {
		return nil
	}
	if n.health.logsPaused() {
		return errNoLogsResponse
	}
	h, err := n.firstWithBloom(ctx, from, to, checks)
	if err != nil || h == nil {
		return err // without such a block, the next range is checked
	}
	logs, err := n.logsByHash(ctx, h, nil)
	if refusalOf(ctx, err).kind == unclear { // for example, it requires an address, or accepts no hash
		if logs, err = n.proveAll(ctx, h, nil); err != nil {
			return err
		}
		var a *answer
		a, err = n.logsOfRange(ctx, maxAnswer, h.Number, h.Number, []common.Address{common.Address(logs[0].Address)})
		if err == nil {
			logs = a.logs
		}
	}
	switch refusal := refusalOf(ctx, err).kind; {
	case refusal == tooMuch: // so there are some
	case refusal == unanswered:
		return errNoLogsResponse
	case err != nil:
		return err
	case len(logs) == 0:
		return &UnprovenError{h.Number, h.Hash, n.Name, "it has none at all"}
	}
	n.noteHasLog(h.Number)
	return nil
}

func (n *Node) needsLogCheck(block uint64) bool {
	from := n.health.snapshot().hasLogFrom
	return from == 0 || from > block
}

func (n *Node) noteHasLog(block uint64) {
	n.health.set(func(h *health) {
		if h.hasLogFrom == 0 || block < h.hasLogFrom {
			h.hasLogFrom = block
		}
	})
}

// firstWithBloom returns the first of so many blocks of a range, at equal distances, whose bloom is not empty; nil if
// there is none.
func (n *Node) firstWithBloom(ctx context.Context, from, to uint64, checks int) (*Header, error) {
	var which []any
	for at := from; at <= to && len(which) < checks; at += max(1, (to-from+2)/(maxLogChecks-1)) {
		which = append(which, hexutil.Uint64(at))
	}
	first := min(1, len(which))
	for _, some := range [][]any{which[:first], which[first:]} { // usually the first block has one
		headers, err := n.headers(ctx, "eth_getBlockByNumber", some)
		if err != nil {
			return nil, err
		}
		for _, h := range headers {
			if err := n.HasBloom(h); err != nil || h.Bloom != (types.Bloom{}) {
				return h, err
			}
		}
	}
	return nil, nil
}

// readLogs reads the logs of a range. The size of its response is bounded, so that all responses in flight fit into
// memory together; a single block that needs more is read on its own, one at a time.
func (r *Reader) readLogs(ctx context.Context, n *Node, from, to uint64) (*answer, error) {
	a, err := n.logsOfRange(ctx, 3*r.target, from, to, r.vaults)
	if from < to || !errors.Is(err, errAnswerTooLong) {
		return a, err
	}
	r.pool.longResponse.Lock()
	defer r.pool.longResponse.Unlock()
	return n.logsOfRange(ctx, maxAnswer, from, to, r.vaults)
}

// narrow decides how to continue after a range failed. A failure reveals nothing about the endpoint's limits, nor does
// a timeout by itself: the next endpoint is used, with a shorter range.
func (r *Reader) narrow(ctx context.Context, n *Node, j *job, to uint64, err error) (*Part, error) {
	refusal, asked := refusalOf(ctx, err), to-j.next+1
	if refusal.kind == blocksMissing {
		return nil, err // another endpoint has the blocks, or this one will: the range keeps its width
	}
	if asked > 1 {
		if !refusal.kind.splits() {
			j.step = asked / 2
			return nil, err
		}
		j.step = n.limits.refused(asked, refusal)
		if refusal.kind == unanswered {
			return nil, err
		}
		return nil, nil
	}
	if !refusal.kind.splits() {
		return nil, err
	}
	if refusal.kind != tooMuch {
		if j.failures++; j.failures < unclearTries {
			return nil, err
		}
	}
	return r.readByHash(ctx, n, j)
}

// readByHash reads the next block of a job by its hash, and compares the logs with the header's bloom.
func (r *Reader) readByHash(ctx context.Context, n *Node, j *job) (_ *Part, err error) {
	h := (*Header)(nil)
	if len(j.headers) > 0 {
		h = j.headers[0]
	} else if h, err = n.ByNumber(ctx, j.next); err != nil {
		return nil, err
	}
	logs, proven, err := n.OneBlock(ctx, h, r.vaults, r.proof)
	if err != nil {
		return nil, err
	}
	p := &Part{From: j.next, To: j.next, Parent: h.Parent, Blocks: []*Header{h}, Logs: logs}
	for _, l := range logs { // about as many bytes as they took in the response
		p.bytes += typicalLogBytes + 2*len(l.Data) + int(l.DataLength)
	}
	if !proven {
		p.Unproven = h.Number
	}
	return p, nil
}

// part makes a part from a response about the next blocks of a job up to to. The response must be consistent with
// itself and with the headers that are read: those of all blocks of the part or, below the window, those of blocks
// whose logs came without a time.
func (r *Reader) part(ctx context.Context, n *Node, j *job, to uint64, a *answer) (*Part, error) {
	if n.limits.maybeTruncated(a.received) {
		// Its last block may be truncated, and the blocks after that missing: they are read next.
		switch last := a.logs[len(a.logs)-1].BlockNumber; {
		case last > j.next:
			to = last - 1
		case to > last:
			j.step = 1
			return nil, nil
		default:
			return r.readByHash(ctx, n, j)
		}
		a.logs = slices.DeleteFunc(a.logs, func(l *event.Log) bool { return l.BlockNumber > to })
	}
	p := &Part{From: j.next, To: to, Logs: a.logs, bytes: a.bytes, Unproven: to}
	headers := j.headers[:min(uint64(len(j.headers)), to-j.next+1)]
	if err := r.setTimes(ctx, n, p, headers); err != nil || len(headers) == 0 {
		return p, err
	}
	p.Parent = headers[0].Parent
	if r.proof != proof.None {
		blocks, err := r.proveDoubtful(ctx, n, split(headers, a.logs))
		if err != nil {
			return nil, err
		}
		headers, p.To = headers[:len(blocks)], blocks[len(blocks)-1].Number
		p.Logs, p.Unproven = make([]*event.Log, 0, len(a.logs)), 0
		for _, b := range blocks {
			p.Logs = append(p.Logs, b.logs...)
			if !b.proven {
				p.Unproven = b.Number
			}
		}
	}
	for _, h := range headers {
		if h.Number >= j.recordFrom || h.Number == p.To {
			p.Blocks = append(p.Blocks, h)
		}
	}
	return p, nil
}

func (r *Reader) compare(n *Node, h *Header, logs []*event.Log) error {
	err := n.checkBlock(logs, h)
	if err == nil && r.proof != proof.None {
		_, err = n.Native(h, logs)
	}
	return err
}

type blockRead struct {
	*Header
	logs     []*event.Log
	doubtful bool // logs must be proven
	proven   bool // no logs of the vaults are missing, as far as the header shows
}

func split(headers []*Header, logs []*event.Log) []*blockRead {
	blocks := make([]*blockRead, len(headers))
	for i, h := range headers {
		n := 0
		for n < len(logs) && logs[n].BlockNumber == h.Number {
			n++
		}
		blocks[i], logs = &blockRead{Header: h, logs: logs[:n:n], proven: h.Sealed}, logs[n:]
	}
	return blocks
}

// markDoubtful marks the blocks whose blooms show that there are more logs. A bloom that is too full to be useful
// counts only before the first log of the response, where a pruned node returns nothing, and after the last one, where
// a lagging node returns nothing.
func (r *Reader) markDoubtful(blocks []*blockRead) {
	first, last, mute := len(blocks), -1, []int(nil)
	for i, b := range blocks {
		if len(b.logs) > 0 {
			first, last = min(first, i), i
		}
		switch {
		case !proof.Lacks(&b.Bloom, r.vaults, b.logs):
		case proof.Sparse(&b.Bloom):
			b.doubtful = true
		default:
			mute = append(mute, i)
		}
	}
	if len(mute) > 0 {
		if i := mute[0]; i < first {
			blocks[i].doubtful = true
		}
		if i := mute[len(mute)-1]; i > last {
			blocks[i].doubtful = true
		}
	}
}

// proveDoubtful proves the doubtful blocks. If one of them had lost logs, it proves the other blocks that may have logs
// of the vaults, too. It returns the blocks up to the first one that is not proven, and an error if there are none.
func (r *Reader) proveDoubtful(ctx context.Context, n *Node, blocks []*blockRead) ([]*blockRead, error) {
	r.markDoubtful(blocks)
	lossy, others := false, 0
	for _, doubtful := range []bool{true, false} {
		for i, b := range blocks {
			if b.doubtful != doubtful || !doubtful && !(lossy && proof.MayHold(&b.Bloom, r.vaults)) {
				continue
			}
			if !doubtful {
				if others++; others > maxProofs {
					return blocks[:i], nil
				}
			}
			had, err := len(b.logs), error(nil)
			if b.logs, b.proven, err = n.OneBlock(ctx, b.Header, r.vaults, proof.Headers); err != nil {
				if blocks = blocks[:i]; i == 0 {
					return nil, err
				}
				break
			}
			lossy = lossy || len(b.logs) > had
		}
	}
	return blocks, nil
}

// endOf returns the vaults' logs in the last block of a commit: the given ones or, if the bloom of its header shows
// that there are more, all. foreign is true if the logs belong to another chain than the header.
func (r *Reader) endOf(
	ctx context.Context, n *Node, h *Header, logs []*event.Log,
) (_ []*event.Log, foreign bool, err error) {
	if r.proof != proof.None {
		if err := n.HasBloom(h); err != nil {
			return nil, false, err
		}
	}
	if err := r.compare(n, h, logs); err != nil {
		return nil, true, err
	}
	if r.proof != proof.None && proof.Lacks(&h.Bloom, r.vaults, logs) && proof.Sparse(&h.Bloom) {
		logs, _, err = n.OneBlock(ctx, h, r.vaults, proof.Headers)
	}
	return logs, false, err
}

// setTimes sets the times of the logs of a part, and compares the logs with the given headers or, if there are none,
// with those that are read for this.
func (r *Reader) setTimes(ctx context.Context, n *Node, p *Part, headers []*Header) error {
	byHash := map[common.Hash]*Header{}
	var missing []any
	for _, l := range p.Logs {
		if hash := common.Hash(l.BlockHash); len(headers) == 0 && l.BlockTime == noTime && byHash[hash] == nil {
			byHash[hash] = &Header{}
			missing = append(missing, hash)
		}
	}
	dated, err := n.headers(ctx, "eth_getBlockByHash", missing)
	if err != nil {
		return err
	}
	for _, h := range dated {
		byHash[h.Hash] = h
	}
	for i, l := range p.Logs {
		h := byHash[common.Hash(l.BlockHash)]
		if len(headers) > 0 {
			h = headers[l.BlockNumber-p.From]
		}
		if h == nil { // the log came with its time
			continue
		}
		if err := r.compare(n, h, p.Logs[i:i+1]); err != nil {
			return err
		}
	}
	for i, l := range p.Logs[min(1, len(p.Logs)):] {
		before := p.Logs[i]
		if l.BlockTime < before.BlockTime || l.BlockTime != before.BlockTime && l.BlockNumber == before.BlockNumber {
			return fmt.Errorf("%s returned logs whose times contradict each other: %d in block %d after %d in block %d", n.Name,
				l.BlockTime, l.BlockNumber, before.BlockTime, before.BlockNumber)
		}
	}
	return nil
}

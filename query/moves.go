package query

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/holiman/uint256"
)

// The moves of a span are what each of its logs did to the vaults. They are read ahead
// and kept with the checkpoints, packed as these are, so that how the vaults stood at a
// past block is told without a question: from a checkpoint, and from the moves of the
// spans between it and the block. Nobody waits for them: where they are not kept, what
// happened between is asked of the engine, which is quicker than to read all of a span.

// spanMovesRow is what the logs of a span did to a vault, as text (see moveRow).
type spanMovesRow struct {
	Vault string `ch:"vault"`
	Users string `ch:"users"` // block, how many users more
	Logs  string `ch:"logs"`  // logMove
}

// logMove is what a log did to the queue.
type logMove struct {
	block, index, expires uint64 // expires: Unix seconds, 0 for never
	open, waiting         int    // requests that came into the queue or left it, and those that wait for their money
	made                  bool
	amount                uint256.Int // of a request that waits, or no longer waits
}

// expiring tells whether a request began to wait until its time, or does no longer.
func (m *logMove) expiring() bool { return m.waiting != 0 && m.expires != 0 }

// userMove is how many users a vault had more after a block.
type userMove struct {
	block uint64
	users int64
}

// readMoves reads the moves of a span ahead.
func (x *exchange) readMoves(s *spans, number uint64) error {
	_, err := x.snapshot.head.checkpoints.get(x.ctx, movesKey(s, number), func() (packed, error) {
		rows, err := pinned[spanMovesRow](x, x.snapshot.pin(), sqlSpanMoves, named("from", number*s.span), named("to", number*s.span+s.span-1))
		if err != nil {
			return nil, err
		}
		state := packed{}
		for _, r := range rows {
			users, logs, err := r.moves()
			if err != nil {
				return nil, fmt.Errorf("read what the logs of span %d did to vault %s: %w", number, toAddress(r.Vault).Hex(), err)
			}
			state = state.addBytes([]byte(r.Vault)).addBytes(packUsers(users)).addBytes(packLogs(logs))
		}
		return state, nil
	})
	return err
}

func movesKey(s *spans, number uint64) checkpointKey {
	return checkpointKey{of: "moves", edge: number, last: s.lastOf(number)}
}

func (r *spanMovesRow) moves() (users []userMove, logs []logMove, err error) {
	u := tupleReader{rest: r.Users}
	for u.more() {
		users = append(users, userMove{u.number(), int64(u.sign())})
	}
	l := tupleReader{rest: r.Logs}
	for l.more() {
		logs = append(logs, logMove{block: l.number(), index: l.number(), open: l.sign(), waiting: l.sign(), made: l.number() > 0, expires: l.number(), amount: l.wide()})
	}
	return users, logs, cmp.Or(u.err, l.err)
}

// packUsers sums up those of one block.
func packUsers(moves []userMove) (out packed) {
	slices.SortFunc(moves, func(a, b userMove) int { return cmp.Compare(a.block, b.block) })
	was := uint64(0)
	for i := 0; i < len(moves); {
		at, users := moves[i].block, int64(0)
		for ; i < len(moves) && moves[i].block == at; i++ {
			users += moves[i].users
		}
		out, was = out.add(at-was).addSigned(users), at
	}
	return out
}

// A log's kind says what it did but for numbers. Requests of one kind mostly follow
// each other: their indexes are told from the one before.
const (
	kindWaiting = 4 // times, beside open: both are -1 to 1, and more by one
	kindMade    = 16
	kindExpires = 32
	kinds       = 64
)

func packLogs(moves []logMove) (out packed) {
	slices.SortStableFunc(moves, func(a, b logMove) int { return cmp.Compare(a.block, b.block) })
	var was logMove
	var indexes [kinds]uint64
	for _, m := range moves {
		kind := uint64(m.open+1) + kindWaiting*uint64(m.waiting+1)
		if m.made {
			kind += kindMade
		}
		if m.expiring() {
			kind += kindExpires
		}
		out = out.add(m.block - was.block).add(kind).addSigned(int64(m.index - indexes[kind]))
		if m.waiting != 0 {
			out = out.addWide(&m.amount)
		}
		if m.expiring() {
			out, was.expires = out.addSigned(int64(m.expires-was.expires)), m.expires
		}
		was.block, indexes[kind] = m.block, m.index
	}
	return out
}

// keptMoves are what the logs between a border and a pin did, or false where the moves
// of a span are not kept.
func (x *exchange) keptMoves(p *pin, between border) ([]vaultMove, bool, error) {
	s, err := x.spans()
	if err != nil || p.seq != x.snapshot.seq {
		return nil, false, err
	}
	sums := make(map[string]map[uint64]*vaultMove) // by vault and bucket
	for i := s.before(between.from / s.span); i < len(s.list) && s.list[i].Number <= between.to/s.span; i++ {
		number := s.list[i].Number
		state := x.snapshot.head.checkpoints.use(movesKey(s, number))
		if state == nil || !x.snapshot.whole(s, number) {
			return nil, false, nil
		}
		for len(state) > 0 {
			vault := string(state.takeBytes())
			if sums[vault] == nil {
				sums[vault] = make(map[uint64]*vaultMove)
			}
			addUsers(sums[vault], vault, state.takeBytes(), between)
			addLogs(sums[vault], vault, state.takeBytes(), between)
		}
	}
	var out []vaultMove
	for _, of := range sums {
		for _, m := range of {
			out = append(out, *m)
		}
	}
	return out, true, nil
}

// moveOf is the sum for a bucket of a vault, which may be new.
func moveOf(sums map[uint64]*vaultMove, vault string, bucket uint64) *vaultMove {
	sum := sums[bucket]
	if sum == nil {
		sum = &vaultMove{vault: vault, bucket: bucket}
		sums[bucket] = sum
	}
	return sum
}

func addUsers(sums map[uint64]*vaultMove, vault string, moves packed, between border) {
	users, block := int64(0), uint64(0)
	for len(moves) > 0 {
		block += moves.take()
		n := moves.takeSigned()
		if block > between.to {
			break
		}
		if block >= between.from {
			users += n
		}
	}
	moveOf(sums, vault, 0).users += users
}

func addLogs(sums map[uint64]*vaultMove, vault string, moves packed, between border) {
	var m logMove
	var indexes [kinds]uint64
	expires := uint64(0) // of the last one that has a time
	sum := moveOf(sums, vault, 0)
	for len(moves) > 0 {
		m.block += moves.take()
		if m.block > between.to {
			return
		}
		kind := moves.take()
		indexes[kind] += uint64(moves.takeSigned())
		m.index, m.open, m.waiting, m.made = indexes[kind], int(kind%kindWaiting)-1, int(kind%kindMade/kindWaiting)-1, kind&kindMade != 0
		if m.waiting != 0 {
			m.amount = moves.takeWide()
		}
		if m.expires = 0; kind >= kindExpires {
			expires += uint64(moves.takeSigned())
			m.expires = expires
		}
		if m.block < between.from {
			continue
		}
		if bucket := m.index / bucketSize; bucket != sum.bucket {
			sum = moveOf(sums, vault, bucket)
		}
		sum.add(&m)
	}
}

// add adds what a log did to one of the bucket's requests.
func (v *vaultMove) add(m *logMove) {
	var bit uint256.Int
	setBit(&bit, m.index%bucketSize)
	switch {
	case m.open > 0:
		v.queued.Add(&v.queued, &bit)
	case m.open < 0:
		v.queued.Sub(&v.queued, &bit)
	}
	switch {
	case m.waiting > 0:
		v.amount.Add(&v.amount, &m.amount)
	case m.waiting < 0:
		v.amount.Sub(&v.amount, &m.amount)
	}
	v.unfunded += int64(m.waiting)
	if m.made {
		v.made = append(v.made, madeAt{m.index, m.block})
	}
	if m.expiring() {
		v.waits = append(v.waits, waitMove{wait{m.index, m.expires, m.amount}, m.waiting})
	}
}

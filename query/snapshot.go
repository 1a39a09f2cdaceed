package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

const (
	// lookTimeout is how long a look at the engines may take: at the registry, and
	// at the read models for a snapshot.
	lookTimeout = 2 * time.Second
	// trustedFor is how old what the loops saw may be for /readyz to be 200.
	trustedFor = 5 * time.Second
)

// snapshot is a consistent state of one generation that an answer can be
// pinned to.
type snapshot struct {
	generation
	seq     uint64
	block   uint64 // newest indexed block
	time    uint64 // of that block, Unix seconds
	records []vaultRecord
	vaults  []vault
	navs    map[common.Address]navRow // the newest of each vault
	head    *head
	cache   *cache
	seen    time.Time // when the cursors were last read

	news *news // since the snapshot before; nil where the snapshot was read whole

	position http.Header // what an answer about it says of where it is
}

// vault is what the newest record about a vault says of it.
type vault struct {
	address    common.Address
	written    string // the address with its checksum
	name       string
	symbol     string
	decimals   uint32
	asset      asset
	startBlock uint64
}

type asset struct {
	address  common.Address
	symbol   string
	decimals uint32
}

// vaultRecord is one row of records with kind vault.
type vaultRecord struct {
	Seq      uint64 `ch:"seq"`
	Sign     int8   `ch:"sign"`
	Retracts uint64 `ch:"retracts"`
	Payload  string `ch:"payload"`

	vault vault
}

type cursorRow struct {
	Seq uint64 `ch:"seq"`
}

type blockRow struct {
	Block uint64 `ch:"block"`
	Time  uint32 `ch:"ts"`
}

// follow keeps the snapshot fresh until ctx ends: it looks when it hears that
// there are new rows, and otherwise now and then.
func (q *Query) follow(ctx context.Context, conn driver.Conn) error {
	var last string
	for heard := false; ; {
		message, before := "", q.snapshot.Load()
		err := q.refresh(ctx, conn)
		if err != nil && ctx.Err() == nil {
			message = err.Error()
		}
		q.snapshotErr.Store(&err)
		if message != last { // once when it breaks and once when it is over, not ten times a second
			if message != "" {
				q.log.Warn("read models not readable", "error", message)
			} else {
				q.log.Info("read models readable")
			}
			last = message
		}
		wait := time.NewTimer(q.listener.pause(heard, message == "" && before.sameAs(q.snapshot.Load())))
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil
		case <-q.listener.notified:
			heard = true
		case <-wait.C:
			heard = false
		}
		wait.Stop()
	}
}

// sameAs says that two looks found the same.
func (s *snapshot) sameAs(other *snapshot) bool {
	return s != nil && other != nil && s.generation == other.generation && s.seq == other.seq
}

// predecessorOf is the snapshot where the other one follows it in the same
// generation, or nil.
func (s *snapshot) predecessorOf(other *snapshot) *snapshot {
	if s == nil || s.generation != other.generation || s.seq > other.seq {
		return nil
	}
	return s
}

// refresh looks at the live generation once.
func (q *Query) refresh(life context.Context, conn driver.Conn) error {
	ctx, cancel := context.WithTimeout(life, q.looks)
	defer cancel()
	live := q.registry.Load()
	if live == nil || !live.known {
		return plainError("the registry did not say yet which generation is live")
	}
	if live.fault != "" {
		q.show(nil)
		return plainError(live.fault)
	}
	now := q.now()
	g := generation{conn: conn, id: live.generation, database: q.readModel.Database(live.generation)}
	cursor, _, err := askOne[cursorRow](ctx, g, sqlCursor)
	if err != nil {
		return fmt.Errorf("read how far %s is: %w", g.database, err)
	}
	was := q.snapshot.Load()
	if was != nil && was.generation == g && was.seq == cursor.Seq {
		again := *was
		again.seen = now
		q.snapshot.Store(&again)
		return nil
	}
	s := &snapshot{generation: g, seq: cursor.Seq}
	before := was.predecessorOf(s)
	if err := q.read(ctx, s, before); err != nil {
		return err
	}
	s.seen, s.cache, s.head = now, newCache(q.cfg.CacheBytes), newHead(before, s.news, q.scale)
	s.head.prepare(ctx, s, q.prepares)
	q.show(s)
	if s.unlikeAssets() && (was == nil || !was.unlikeAssets()) {
		q.log.Warn("the assets of the vaults differ in decimals: a user's and a partner's totals add units of different size", "vaults", len(s.vaults))
	}
	q.warm(life, was, s) // which goes on after this look
	return nil
}

// show makes a snapshot the one that answers are pinned to, nil for none, and
// keeps when the generation of the one before was left.
func (q *Query) show(s *snapshot) {
	was := q.snapshot.Swap(s)
	if was != nil && (s == nil || s.id != was.id) {
		q.leaving.leave(was.id, q.now())
	}
}

// leaving is the generations that no new answer is pinned to, and when the last
// one was: answers that had begun then go on reading.
type leaving struct {
	mu   sync.Mutex
	last map[int32]time.Time
}

func (l *leaving) leave(id int32, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = make(map[int32]time.Time)
	}
	l.last[id] = now
}

// still lists the generations that an answer may be reading, which takes no
// longer than limit, and forgets the others.
func (l *leaving) still(now time.Time, limit time.Duration) (out []LeavingGeneration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(l.last)) {
		if left := limit - now.Sub(l.last[id]); left > 0 {
			out = append(out, LeavingGeneration{id, left.Milliseconds()})
		} else {
			delete(l.last, id)
		}
	}
	return out
}

// unlikeAssets tells whether a sum over vaults adds units of different size.
func (s *snapshot) unlikeAssets() bool {
	return slices.ContainsFunc(s.vaults, func(v vault) bool { return v.asset.decimals != s.vaults[0].asset.decimals })
}

// read reads what a snapshot says, or what it says more than the one before,
// which may be nil.
func (q *Query) read(ctx context.Context, s, before *snapshot) error {
	var err error
	if before == nil || s.seq-before.seq > q.newsAtMost {
		err = q.readWhole(ctx, s)
	} else {
		err = q.readNew(ctx, s, before)
	}
	s.position = position(s.generation, s.seq, s.block)
	return err
}

func (q *Query) readWhole(ctx context.Context, s *snapshot) error {
	group, asking := errgroup.WithContext(ctx)
	group.Go(func() error { return s.readBlock(asking) })
	group.Go(func() (err error) {
		if s.records, err = ask[vaultRecord](asking, s.generation, sqlVaults, named("seq", s.seq)); err != nil {
			return fmt.Errorf("read the vaults of %s: %w", s.database, err)
		}
		return q.decode(s.database, s.records)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	s.vaults = vaultsAt(s.records, s.seq)
	return s.readNavs(ctx)
}

func (s *snapshot) readBlock(ctx context.Context) error {
	row, ok, err := indexedBlock(ctx, s.generation, s.seq, math.MaxUint64)
	if err != nil {
		return fmt.Errorf("read the newest block of %s: %w", s.database, err)
	}
	if !ok {
		return plainError(s.database + " holds no indexed block yet: ingest and project have to get there first")
	}
	s.block, s.time = row.Block, uint64(row.Time)
	return nil
}

func (s *snapshot) readNavs(ctx context.Context) (err error) {
	s.navs, err = readLatestNavs(ctx, &pin{generation: s.generation, seq: s.seq, block: s.block, vaults: s.vaults})
	if err != nil {
		return fmt.Errorf("read the newest NAVs of %s: %w", s.database, err)
	}
	return nil
}

func (q *Query) decode(database string, records []vaultRecord) error {
	for i := range records {
		if err := records[i].decode(q.chainID); err != nil {
			return fmt.Errorf("vault record %d of %s: %w", records[i].Seq, database, err)
		}
	}
	return nil
}

// readNew reads the news, and NAVs where there are some among them. Where some
// were taken back, what is newest is looked for again.
func (q *Query) readNew(ctx context.Context, s, before *snapshot) error {
	since := []param{named("since", before.seq), named("seq", s.seq)}
	records, err := ask[newRecord](ctx, s.generation, sqlNewRecords, since...)
	if err != nil {
		return fmt.Errorf("read the new records of %s: %w", s.database, err)
	}
	if err := q.learn(s, before, records); err != nil {
		return err
	}
	if s.news.oldest == 0 {
		if err := s.readBlock(ctx); err != nil {
			return err
		}
	}
	var navs []signedNav
	if !s.news.silent(before.seq, contracts.KindNavUpdated) {
		if navs, err = ask[signedNav](ctx, s.generation, sqlNewNavs, since...); err != nil {
			return fmt.Errorf("read the new NAVs of %s: %w", s.database, err)
		}
	}
	s.vaults, s.navs = before.vaults, maps.Clone(before.navs)
	if len(s.records) > len(before.records) || slices.ContainsFunc(navs, func(n signedNav) bool { return n.Sign < 0 }) {
		s.vaults = vaultsAt(s.records, s.seq)
		return s.readNavs(ctx)
	}
	for _, n := range navs {
		s.navs[toAddress(n.Vault)] = n.navRow
	}
	return nil
}

// learn takes over what the records after the snapshot before say.
func (q *Query) learn(s, before *snapshot, records []newRecord) error {
	s.block, s.time, s.records = before.block, before.time, slices.Clone(before.records)
	s.news = &news{since: before.seq, oldest: math.MaxUint64, deposits: newLazy[[]newDeposit]()}
	for _, r := range records {
		switch {
		case r.Kind == "log":
			s.news.logs = append(s.news.logs, r)
		case r.Kind == "vault":
			s.records = append(s.records, r.vaultRecord)
		case r.Kind == "block" && r.Sign < 0:
			s.news.oldest = 0
		case r.Kind == "block":
			s.news.oldest = min(s.news.oldest, r.Block)
			if r.Block >= s.block {
				s.block, s.time = r.Block, uint64(r.Time)
			}
		}
	}
	return q.decode(s.database, s.records[len(before.records):])
}

// placesAtOnce is how many places of the chain are looked at for a live row:
// more than a reorganisation takes back.
const placesAtOnce = 1000

// placesFirst is how many rows are looked at before that: mostly the first is live,
// and to read a few takes the engine half as long as to plan what to do with many.
const placesFirst = 8

// indexedBlock is the newest block up to block that is live at seq; false when
// there is none.
func indexedBlock(ctx context.Context, g generation, seq, block uint64) (blockRow, bool, error) {
	type row struct {
		blockRow
		Sign int8 `ch:"sign"`
	}
	args := []param{named("seq", seq), named("block", block)}
	rows, err := ask[row](ctx, g, needed(sqlNewestBlocks, args), append(args, named("few", uint64(placesFirst)))...)
	if err != nil {
		return blockRow{}, false, err
	}
	newest, ok := newestLive(rows, func(r row) int8 { return r.Sign }, func(a, b row) bool { return a.Block == b.Block })
	if ok || len(rows) < placesFirst {
		return newest.blockRow, ok, nil
	}
	return askWide[blockRow](ctx, g, needed(sqlIndexedBlock, args), args...)
}

// newestLive is the first live one of rows that begin with the newest place in the
// chain. Of one place they begin with the newest row, which decides: retractions
// come newest first, so at most one fact is live there, and it is the last that was
// added.
func newestLive[T any](rows []T, sign func(T) int8, samePlace func(a, b T) bool) (live T, ok bool) {
	for i, r := range rows {
		if sign(r) > 0 && (i == 0 || !samePlace(rows[i-1], r)) {
			return r, true
		}
	}
	return live, false
}

// askWide looks for a live row at few places, and then at all.
func askWide[T any](ctx context.Context, g generation, question string, args ...param) (row T, ok bool, err error) {
	for _, scan := range []uint64{placesAtOnce, math.MaxInt64} {
		if row, ok, err = askOne[T](ctx, g, question, append(args, named("scan", scan))...); err != nil || ok {
			break
		}
	}
	return row, ok, err
}

func (r *vaultRecord) decode(chainID uint64) error {
	var record event.Record
	if err := proto.Unmarshal([]byte(r.Payload), &record); err != nil {
		return fmt.Errorf("its payload cannot be decoded: %w; rebuild the generation with `navlog projection rebuild`", err)
	}
	v := record.GetVault()
	if v == nil || len(v.GetAddress()) != common.AddressLength {
		return errors.New("its payload names no vault; rebuild the generation with `navlog projection rebuild`")
	}
	if record.GetChainId() != chainID {
		return fmt.Errorf("it is of chain %d and this program serves chain %d: give it the read models of its own chain", record.GetChainId(), chainID)
	}
	address := common.BytesToAddress(v.GetAddress())
	r.vault = vault{
		address: address, written: address.Hex(), name: v.GetName(), symbol: v.GetSymbol(),
		decimals: v.GetDecimals(), startBlock: v.GetStartBlock(),
		asset: asset{
			address: common.BytesToAddress(v.GetAsset().GetAddress()),
			symbol:  v.GetAsset().GetSymbol(), decimals: v.GetAsset().GetDecimals(),
		},
	}
	return nil
}

// vaultsAt folds the records up to seq, which are in seq order: the newest
// live record of an address counts. Vaults are listed by their start block,
// then by address.
func vaultsAt(records []vaultRecord, seq uint64) []vault {
	live := make(map[uint64]vault)
	for _, r := range records {
		if r.Seq > seq {
			break
		}
		if r.Sign > 0 {
			live[r.Seq] = r.vault
		} else {
			delete(live, r.Retracts)
		}
	}
	newest := make(map[common.Address]uint64)
	for s, v := range live {
		newest[v.address] = max(newest[v.address], s)
	}
	vaults := make([]vault, 0, len(newest))
	for _, s := range newest {
		vaults = append(vaults, live[s])
	}
	slices.SortFunc(vaults, func(a, b vault) int {
		return cmp.Or(cmp.Compare(a.startBlock, b.startBlock), a.address.Cmp(b.address))
	})
	return vaults
}

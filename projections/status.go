package projections

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/projections/write"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
)

// States of a projector.
const (
	Starting   = "starting"          // not running yet
	Waiting    = "waiting"           // the log has no record
	StandingBy = registry.StandingBy // another instance writes the generation
	Building   = registry.Building   // writes, but is not at the end of the log or has no lists yet
	Following  = registry.Following  // writes, has lists, and is at the end of the log
	Retrying   = registry.Retrying   // an engine is unavailable or fails, or another writer fenced this one
	Bad        = registry.Bad        // the generation cannot be written: the reason says what ends this
)

// Status is a projector's own status.
type Status struct {
	State      string `json:"state"`
	Generation int32  `json:"generation"`
	// Seq is the seq up to which both tables are written; Block is the newest block of those records and BlockTime
	// its time (null before the first).
	Seq       uint64     `json:"seq"`
	Block     uint64     `json:"block"`
	BlockTime *time.Time `json:"blockTime"`
	// Built reports whether the lists are built: without them nothing is served.
	Built bool `json:"derived"`
	// Lag is the number of remaining log offsets, 0 at the end.
	Lag              int64   `json:"lag"`
	RecordsPerSecond float64 `json:"recordsPerSecond"`
	// ETASeconds until the end of the log is reached, for a generation that is building; nil if unknown.
	ETASeconds *uint64 `json:"etaSeconds,omitempty"`
	// Building is the progress of the very first generation, while none is live.
	Building *registry.BuildingStatus `json:"building,omitempty"`
	// VaultWarnings name the vaults whose logs are all unknown.
	VaultWarnings []registry.VaultWarning `json:"vaultWarnings,omitempty"`
	// Reason is why the state is retrying or bad, or what is wrong although the generation is written.
	Reason string `json:"reason,omitempty"`
	// Others are the generations that are written besides the live one, by id.
	Others []Status `json:"others,omitempty"`
}

// board has the status, shared by the loops that change it and those that read it.
type board struct {
	mu     sync.Mutex
	status Status
	// Offset of the last record written, -1 before the first.
	offset int64
	// Offset of the last record that the log returned, -1 before the first, and whether it returned one since the
	// last look at its end.
	read  int64
	moved bool
	// Whether the lists are being built.
	listing bool
	// Seq at the last look, for the rate.
	seen uint64
	// When the engines last responded.
	answered time.Time
	// What is wrong although the generation is written: a transaction of the log hangs, so that records behind it cannot
	// be read, or records were deleted, or the live generation is outdated and its successor cannot be built. nil if
	// nothing is.
	fault error
	// Why the last term ended, until a later one has written or has nothing to write. Without it, a term that fails
	// again and again would look like one that is starting. An error that may end by itself hides no permanent one.
	failed error
}

func (b *board) get() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status
	switch begins := s.State == Starting || s.State == Building; {
	case permanent(b.failed) && (begins || s.State == Retrying):
		s.State, s.Reason = Bad, b.failed.Error()
	case b.failed != nil && begins:
		s.State, s.Reason = Retrying, b.failed.Error()
	}
	if s.State == Building && s.Built {
		s.ETASeconds = s.eta()
	}
	return s
}

// eta returns the seconds until the end of the log is reached; nil if unknown.
func (s *Status) eta() *uint64 {
	if s.RecordsPerSecond <= 0 {
		return nil
	}
	eta := uint64(float64(s.Lag)/s.RecordsPerSecond) + 1
	return &eta
}

// set changes the state; err may be nil.
func (b *board) set(state string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status.State, b.status.Reason = state, ""
	if err != nil {
		b.status.Reason = err.Error()
	}
	if state != Starting && (state != Retrying || !permanent(b.failed)) {
		b.failed = err
	}
}

func (b *board) reset(generation int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = Status{State: Starting, Generation: generation}
}

// open sets where the generation's writer begins: after the record with that seq and offset.
func (b *board) open(seq uint64, offset int64, built bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.status
	b.status = Status{State: Building, Generation: was.Generation, Seq: seq, Block: was.Block, BlockTime: was.BlockTime,
		Built: built}
	b.offset, b.read, b.moved, b.seen, b.answered = offset, -1, false, seq, time.Now()
	b.listing = false
}

func (b *board) warn(warnings []registry.VaultWarning) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status.VaultWarnings = warnings
}

// build sets whether the lists are being built, or are built.
func (b *board) build(listing, built bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listing, b.status.Built = listing, built
}

// building returns the progress of a generation that has no lists yet.
func (b *board) building() *registry.BuildingStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status
	out := &registry.BuildingStatus{Generation: s.Generation, Seq: s.Seq, RecordsLeft: s.Lag, Phase: registry.PhaseFacts}
	if b.listing || s.Built {
		out.Phase = registry.PhaseDeriving
	}
	if !b.listing {
		out.ETASeconds = s.eta()
	}
	return out
}

// noteRead records that the log returned records, the last of them at offset.
func (b *board) noteRead(offset int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read, b.moved = offset, true
}

// noteWritten records that a batch was written to the tables.
func (b *board) noteWritten(facts decode.Batch) {
	var newest *decode.Log
	for f := range facts.All() {
		if f.Kind == readmodel.BlockRecord && f.Sign > 0 {
			newest = &f.Log
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status.Seq, b.offset, b.failed = facts.Last().Seq, facts.Last().Offset, nil
	if newest != nil {
		at := time.Unix(int64(newest.Time), 0).UTC()
		b.status.Block, b.status.BlockTime = newest.Block, &at
	}
}

// update compares the position with end, the end of the log as it was just read, and returns the status. elapsed is the
// time since the last look; fault is what is wrong although the generation is written.
//
// Not every offset is a record: some are markers, or belong to aborted transactions. So the writer is at the end in
// two cases. Either one offset is left, the marker of its last record. Or more are left, but everything that the log
// returned is written, it returned nothing since the last look, and no transaction is open: behind an open one there
// may be records that cannot be read yet. Until the log has returned something, its silence means nothing, because
// the first response may still be on its way.
func (b *board) update(end chainlog.Tail, fault error, elapsed time.Duration) (Status, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fault
	s := &b.status
	if s.State == StandingBy {
		b.answered = time.Now()
	}
	if s.State != Building && s.State != Following {
		return *s, false
	}
	if s.Reason = ""; fault != nil {
		s.Reason = fault.Error()
	}
	if elapsed > 0 {
		s.RecordsPerSecond = float64(s.Seq-b.seen) / elapsed.Seconds()
	}
	s.Lag = max(0, end.Written-b.offset-1)
	if silent := b.read >= 0 && !b.moved; s.Lag <= 1 || silent && b.read <= b.offset && end.Stable == end.Written {
		s.Lag = 0
	}
	if s.Lag == 0 {
		b.failed = nil
	}
	if s.Lag == 0 && s.Built {
		s.State = Following
	} else if s.Lag > 1000 || !s.Built {
		s.State = Building
	}
	b.seen, b.moved, b.answered = s.Seq, false, time.Now()
	return *s, true
}

// maxSilence is how long the engines may be unresponsive before a projector that follows the log is no longer sure that
// it does.
const maxSilence = 10 * time.Second

// observe compares the position with the end of the log once a second.
func (p *Projections) observe(ctx context.Context) error {
	client, err := kgo.NewClient(p.kafka.Options()...)
	if err != nil {
		return fmt.Errorf("create a Kafka client: %w", err)
	}
	defer client.Close()
	admin, topic := kadm.NewClient(client), chainlog.LogTopic(p.chainID)
	watch := chainlog.NewWatch(admin, p.hanging, topic)
	var begins int64 // the first offset of the log
	var lost error   // its first records were deleted
	for last := time.Now(); write.Pause(ctx, p.every) == nil; {
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		ends, err := watch.Ends(limited)
		if err == nil {
			begins, lost, err = p.checkLogStart(limited, admin, begins, lost)
		}
		if err == nil {
			err = p.conn.Ping(limited)
		}
		cancel()
		if err != nil {
			p.log.Debug("the offsets of the log are unknown", "error", err)
			continue // the status stays the same, and expires soon
		}
		fault := cmp.Or(watch.Hanging(), lost)
		now, served := time.Now(), p.board()
		for _, k := range p.roster.all() {
			end := ends[topic][0]
			// nothing is known about a generation that is not written here
			seq, lag, foreign := math.NaN(), math.NaN(), math.NaN()
			wrong := fault
			if &k.board == served {
				wrong = cmp.Or(fault, p.roster.buildError())
			}
			if s, writing := k.board.update(end, wrong, now.Sub(last)); writing {
				seq, lag = float64(s.Seq), float64(s.Lag)
				if &k.board == served { // an older one may lack the mapping of the vault's events
					foreign = float64(len(s.VaultWarnings))
				}
			}
			k.metrics.seq.Set(seq)
			k.metrics.lag.Set(lag)
			k.metrics.foreign.Set(foreign)
			k.metrics.openTransaction.Set(watch.Open().Seconds())
		}
		last = now
	}
	return nil
}

// checkLogStart returns the first offset of the log, and an error if the log lacks its first records. A generation
// that has them stays correct and continues, but no other one can be built. The records are read only if the offset
// is another one than before, or they were lost.
func (p *Projections) checkLogStart(ctx context.Context, admin *kadm.Client, before int64, was error) (
	begins int64, lost, err error) {
	topic := chainlog.LogTopic(p.chainID)
	starts, err := chainlog.Checked(admin.ListStartOffsets(ctx, topic))
	if err != nil {
		return before, was, err
	}
	start, _ := starts.Lookup(topic, 0)
	if start.Offset == before && was == nil {
		return before, nil, nil
	}
	origin, err := chainlog.ReadOrigin(ctx, p.chainID, p.kafka.Options()...)
	switch {
	case is[*chainlog.HoleError](err), is[*chainlog.CorruptError](err), err == nil && origin == nil && start.Offset > 0:
		return start.Offset, fmt.Errorf("the records of %s before offset %d were deleted, so no generation can be built "+
			"from it any more: restore the topic from a replica or a backup", topic, start.Offset), nil
	case err != nil:
		return before, was, err
	}
	return start.Offset, nil, nil
}

// Status returns the status of the live generation and, under Others, of the other generations that the projector
// writes.
func (p *Projections) Status() Status {
	s := p.roster.live().get()
	for _, k := range p.roster.all() {
		if other := k.board.get(); other.Generation != s.Generation {
			s.Others = append(s.Others, other)
			if s.Generation == 0 {
				s.Building, s.VaultWarnings = k.board.building(), other.VaultWarnings
			}
		}
	}
	return s
}

// Ready returns nil while this projector fulfils its role: it follows the log with the live generation, or it stands
// by while another one writes it and could take over (StandsBy). Otherwise it returns the reason in one sentence.
func (p *Projections) Ready() error { return p.board().ready() }

// StandsBy reports whether another projector writes the live generation, and this one waits for it to end.
func (p *Projections) StandsBy() bool { return p.board().get().State == StandingBy }

// board returns that of the live generation, or of the very first one while it is built.
func (p *Projections) board() *board {
	b := p.roster.live()
	if all := p.roster.all(); len(all) > 0 && b.get().State == Waiting { // the very first generation is being built
		b = &all[len(all)-1].board
	}
	return b
}

func (b *board) ready() error {
	s := b.get()
	b.mu.Lock()
	fault, silent := b.fault, time.Since(b.answered) // for how long the engines have not responded
	b.mu.Unlock()
	switch s.State {
	case StandingBy:
		if silent > maxSilence {
			return fmt.Errorf("it stands by and could not take over: no response from Kafka or ClickHouse within %s", maxSilence)
		}
		return nil
	case Following:
		if fault == nil && silent > maxSilence {
			return fmt.Errorf("no response from Kafka or ClickHouse for %s: it is unknown whether generation %d is at the "+
				"end of the log", silent.Truncate(time.Second), s.Generation)
		}
		return fault
	case Building:
		if fault != nil {
			return fault
		}
		return fmt.Errorf("generation %d is being built: at seq %d, %d log offsets to go", s.Generation, s.Seq, s.Lag)
	case Waiting:
		return errors.New("the log has no record yet: is `navlog ingest` running?")
	case Starting:
		return errors.New("not running yet")
	default:
		return fmt.Errorf("%s: %s", s.State, s.Reason)
	}
}

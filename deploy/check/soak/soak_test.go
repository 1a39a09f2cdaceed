// Package soak lets all programs follow a day of a chain, compressed into minutes, and checks that no process grows:
// its memory, goroutines, open files and connections.
//
//	miner ──▶ anvil ──▶ ingest ──▶ Kafka ──▶ project ──▶ ClickHouse ──▶ serve ◀── readers
//	                                 │          ▲
//	                                 │          └── rebuilds: a new generation, and the end of the old one
//	                                 └──▶ dispatch ──▶ receiver, which fails at times
//
// A day has 7,200 blocks of 12 s. Most are empty, as on a real chain; in some the vaults are used, and some are
// reorganised. The miner is as fast as the programs: it waits while the API is too far behind. A sampler reads each
// process twice a second. At the end each value of the last quarter of the blocks is compared with that of the second
// quarter (see growth), the log and the webhooks are compared with the chain, and `navlog verify` compares the read
// model with the log.
package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/testkit/fleet"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

const (
	// blocksEnvironment is a larger number of blocks than a day has.
	blocksEnvironment = "NAVLOG_SOAK_BLOCKS"
	day               = 7200
	blockTime         = 12 * time.Second
	// interval between blocks if the programs keep up: a faster chain would only make more units of several blocks.
	interval = 20 * time.Millisecond
	// usedEvery is how often the vaults are used, in blocks: once in four minutes of the chain's time.
	usedEvery = 20
	// reorganisedEvery is how often the newest blocks are replaced, up to deepest of them.
	reorganisedEvery, deepest = 100, 6
	// behind is how many blocks the API may be behind before the miner waits: less than until blocks are final, so that
	// the programs always follow the head.
	behind = 32
	// rebuildsADay is so many that a leak of one for each rebuild exceeds what may grow (see limits).
	rebuildsADay = 12
	// samplesPerRebuild are taken after a rebuild before the next one may begin.
	samplesPerRebuild = 4
	// outagesADay is how often a partner's receiver is down, for outage: too short for an event to fail, whose retries
	// come 1, 6 and 21 s after the first attempt, and whose first attempt may be refused too.
	outagesADay, outage = 6, 5 * time.Second
	partners            = 3
	epoch               = 32 // slots, as on a real chain: 64 blocks are not final
)

// A system is the fleet with a day of traffic.
type system struct {
	*fleet.Fleet
	t        *testing.T
	blocks   uint64
	readers  *readers
	sampler  *sampler
	receiver *receiver

	used, reorganisations, rebuilds int
	waited                          time.Duration // of the miner, for the programs
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newSystem(t *testing.T, blocks uint64) *system {
	t.Helper()
	s := &system{t: t, blocks: blocks}
	o := fleet.Options{Partners: partners, SlotsInEpoch: epoch, Settings: []string{
		// The readers have one address.
		"NAVLOG_HTTP_PUBLIC_RATE_LIMIT=0", "NAVLOG_HTTP_PUBLIC_ENGINE_TIME=0", "NAVLOG_HTTP_PARTNER_RATE_LIMIT=1000000",
		// Frequent garbage collections, so that the memory shows what is in use.
		"GOGC=50",
		// A cache that is full before the first comparison.
		"NAVLOG_HTTP_CACHE_BYTES=1048576",
		// A generation is kept this long after a switch, because downloads may still read it: 15 minutes by default, in
		// which this run would collect all of its generations.
		"NAVLOG_HTTP_REQUEST_TIMEOUT=5s", "NAVLOG_HTTP_FILE_TIMEOUT=6s",
	}}
	s.Fleet = fleet.New(t, o)
	must(t, devchain.SetBlockTime(t.Context(), s.URL, blockTime))
	s.receiver = newReceiver(s.Receiver)
	s.Start("ingest", "project", "serve", "dispatch")
	s.Until(s.Ready)
	return s
}

// mine mines all blocks, and starts each rebuild in its turn. It returns when all rebuilds have ended.
func (s *system) mine(ctx context.Context) error {
	random := rand.New(rand.NewPCG(1, 1))
	scenario := s.Scenario()
	scenario.BlockTime = blockTime
	rebuilt := make(chan error, 1)
	rebuilt <- nil
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var nextUse, nextReorganisation, nextRebuild, nextOutage uint64 = usedEvery, reorganisedEvery, day / rebuildsADay,
		day / outagesADay
	for first, head := uint64(0), uint64(0); ; {
		at := s.Head()
		if first == 0 {
			first = at
		}
		head = at - first
		s.sampler.mined.Store(head)
		if head >= s.blocks {
			return <-rebuilt
		}
		if err := s.keepUp(ctx, at); err != nil {
			return err
		}
		switch {
		case head >= nextRebuild:
			nextRebuild += day / rebuildsADay
			if err := <-rebuilt; err != nil {
				return err
			}
			s.rebuilds++
			s.t.Logf("block %d, rebuild %d, %d samples so far", head, s.rebuilds, s.sampler.taken.Load())
			go func() { rebuilt <- s.rebuild(ctx) }()
		case head >= nextOutage:
			nextOutage += day / outagesADay
			s.receiver.fail(outage)
		case head >= nextReorganisation:
			nextReorganisation += reorganisedEvery
			s.reorganisations++
			if err := devchain.Reorg(ctx, s.URL, 1+random.Uint64N(deepest)); err != nil {
				return err
			}
		case head >= nextUse:
			nextUse += usedEvery
			s.used++
			if err := scenario.Steps(ctx, 1); err != nil {
				return err
			}
		default:
			if err := devchain.Mine(ctx, s.URL, 1); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// keepUp waits while the API is too far behind the chain's newest block.
func (s *system) keepUp(ctx context.Context, head uint64) error {
	began := time.Now()
	defer func() { s.waited += time.Since(began) }()
	return s.Await(ctx, func() error {
		if at := s.readers.block.Load(); head > at+behind {
			return fmt.Errorf("the chain is at block %d, and the API at %d", head, at)
		}
		return nil
	})
}

// rebuild makes a new generation live, and drops the old one as soon as no request reads it any more. So there is one
// generation between two rebuilds.
func (s *system) rebuild(ctx context.Context) error {
	old, err := s.liveGeneration(ctx)
	if err != nil {
		return err
	}
	if _, err := s.Try(ctx, "projection", "rebuild"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fleet.Patience)
	defer cancel()
	var last error
	err = wait.Poll(ctx, time.Second, func() (bool, error) {
		_, last = s.Try(ctx, "projection", "drop", strconv.Itoa(int(old)))
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("drop generation %d: %w", old, errors.Join(err, last))
	}
	before := s.sampler.taken.Load()
	return s.Await(ctx, func() error {
		if taken := s.sampler.taken.Load() - before; taken < samplesPerRebuild {
			return fmt.Errorf("%d samples were taken since the rebuild, want %d", taken, samplesPerRebuild)
		}
		return nil
	})
}

func (s *system) liveGeneration(ctx context.Context) (id int32, err error) {
	err = s.Pool.QueryRow(ctx, "SELECT id FROM generation WHERE state = 'live'").Scan(&id)
	return id, err
}

// blocks returns how many blocks to mine.
func blocks(t *testing.T) uint64 {
	t.Helper()
	text, ok := os.LookupEnv(blocksEnvironment)
	if !ok {
		return day
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < day {
		t.Fatalf("%s is %q and must be a number of blocks from %d, a day", blocksEnvironment, text, day)
	}
	return n
}

func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes, and the processes that it watches are not those of go test -race")
	}
	s := newSystem(t, blocks(t))
	began := time.Now()
	ctx, fail := context.WithCancelCause(t.Context())
	defer fail(nil)
	s.readers = newReaders(s)
	stopReaders := s.readers.start(ctx, fail)
	s.sampler = newSampler(s)
	stopSampler := s.sampler.start(ctx, fail)
	err := s.mine(ctx)
	mined := time.Since(began)
	stopSampler()
	stopReaders()
	if cause := context.Cause(ctx); cause != nil {
		err = cause // of err too
	}
	must(t, err)
	s.receiver.fail(0)
	verdict := s.Compare(s.Finish(s.Programs["ingest"], s.Programs["project"]))
	hours := (time.Duration(s.blocks) * blockTime).Hours()
	t.Logf("%d blocks (%.0f h) in %.0f s, of which the miner waited %.0f s for the programs: %d steps of traffic, %d "+
		"reorganisations, %d rebuilds",
		s.blocks, hours, mined.Seconds(), s.waited.Seconds(), s.used, s.reorganisations, s.rebuilds)
	requests, late := s.readers.requests.Load(), s.readers.late.Load()
	t.Logf("%d requests of readers, %d of them not served in time, %d streams; %d requests with webhooks were refused",
		requests, late, s.readers.streams.Load(), s.Receiver.Refused())
	if verdict.Repeated != 0 {
		t.Errorf("no program was killed, and the result is %s", verdict)
	}
	if s.Receiver.Refused() == 0 || verdict.Events < 20 || s.reorganisations < 50 || s.rebuilds < rebuildsADay-1 ||
		requests < 500 || late > requests/100 || s.readers.streams.Load() < 10 {
		t.Error("the run did too little")
	}
	table, faults := judge(s.sampler.samples, s.blocks)
	t.Log("\n" + table)
	for _, fault := range faults {
		t.Error(fault)
	}
}

package ingest

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Profile is a kind of chain. It says how often its head is looked at, how many blocks
// may be unfinal at once, and how long a range of final blocks may be. Finality is the
// node's finalized tag in all of them, which may name the head in none.
type Profile string

// The kinds of chains.
const (
	Ethereum Profile = "ethereum" // the default; also for chains of 12 s whose kind is not here
	Base     Profile = "base"
	Arbitrum Profile = "arbitrum"
	Optimism Profile = "optimism" // and other chains of the OP stack
	Polygon  Profile = "polygon"
	Fast     Profile = "fast" // several blocks a second, final after a few, as Monad's
)

// paces are what a profile sets.
//
// A window must hold what is not final even on a bad day. Ethereum's finalized block is
// two to three epochs of 32 blocks below the head, and was some hundred when finality
// was late. A rollup's is the newest one that Ethereum has finalised the batch of:
// 15 minutes at best, an hour when its batches are late, which is 1,800 blocks of 2 s and
// 14,400 of 0.25 s. Polygon's milestones finalise within seconds, and it was reorganised
// by 157 blocks before it had them. A fast chain's finality is two blocks below the head,
// and the window holds an hour of 0.4 s.
//
// A look costs two calls (one where finality is a depth), so the head is looked at about as often as there is a block, or
// twice, but for chains whose blocks are faster than looks should be: there one look
// brings several. Ranges are what providers give, or more where blocks hold less.
var paces = map[Profile]struct {
	poll   time.Duration
	window uint64
	batch  uint64
}{
	Ethereum: {time.Second, 1024, 10_000},
	Base:     {time.Second, 4096, 10_000},
	Optimism: {time.Second, 4096, 10_000},
	Arbitrum: {250 * time.Millisecond, 16_384, 50_000},
	Polygon:  {time.Second, 1024, 10_000},
	Fast:     {200 * time.Millisecond, 9_000, 50_000},
}

// Complete is the configuration with what its profile says where it says nothing
// itself. An unknown profile, which Validate names, is taken for Ethereum.
func (c Config) Complete() Config {
	if c.Profile == "" {
		c.Profile = Ethereum
	}
	p, known := paces[c.Profile]
	if !known {
		p = paces[Ethereum]
	}
	if c.PollInterval == 0 {
		c.PollInterval = p.poll
	}
	if c.Window == 0 {
		c.Window = p.window
	}
	if c.BatchBlocks == 0 {
		c.BatchBlocks = p.batch
	}
	return c
}

// profileNames are all of them, for a sentence.
func profileNames() string {
	var names []string
	for _, p := range slices.Sorted(maps.Keys(paces)) {
		names = append(names, string(p))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

package ingest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Profile is a kind of chain. It sets PollInterval, Window and BatchBlocks. Finality is the node's finalized tag in all
// profiles.
type Profile string

// The kinds of chains.
const (
	Ethereum Profile = "ethereum" // the default; also for other chains with blocks every 12 s
	Base     Profile = "base"
	Arbitrum Profile = "arbitrum"
	Optimism Profile = "optimism" // and other chains of the OP stack
	Polygon  Profile = "polygon"
	Fast     Profile = "fast" // several blocks a second, final after a few, such as Monad
)

// paces are the settings of the profiles.
//
// A window must hold all blocks that are not final, even on a bad day. Ethereum's finalized block is two to three
// epochs of 32 blocks below the head, and was some hundred blocks below it when finality was late. A rollup's finalized
// block is the newest one whose batch Ethereum has finalised: 15 minutes old at best, an hour when its batches are
// late, which is 1,800 blocks of 2 s and 14,400 of 0.25 s. Polygon's milestones finalise within seconds, and it had a
// reorganisation of 157 blocks before it had them. A fast chain's finality is two blocks below the head, and the window
// holds an hour of blocks of 0.4 s.
//
// A poll costs two calls (one if finality is a depth), so the head is polled about once or twice per block, except on
// chains whose blocks come faster than polls should: there each poll finds several. Ranges are as long as providers
// allow, or longer if blocks contain less.
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

// Complete returns the configuration with the profile's settings in place of missing ones. An unknown profile, which
// Validate reports, is treated as Ethereum.
func (c Config) Complete() Config {
	c.Profile = cmp.Or(c.Profile, Ethereum)
	p, known := paces[c.Profile]
	if !known {
		p = paces[Ethereum]
	}
	c.PollInterval = cmp.Or(c.PollInterval, p.poll)
	c.Window, c.BatchBlocks = cmp.Or(c.Window, p.window), cmp.Or(c.BatchBlocks, p.batch)
	return c
}

// profileNames returns all of them, for an error message.
func profileNames() string {
	var names []string
	for _, p := range slices.Sorted(maps.Keys(paces)) {
		names = append(names, string(p))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

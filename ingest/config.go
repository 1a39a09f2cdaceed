package ingest

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/vaults"
)

// Config is the section `chain` of the configuration.
type Config struct {
	// ID is the chain id, as returned by eth_chainId.
	ID uint64 `yaml:"id" env:"ID"`
	// Profile is the kind of chain; default "ethereum". It sets PollInterval, Window and BatchBlocks if they are 0.
	Profile Profile `yaml:"profile" env:"PROFILE"`
	// RPC are the chain's nodes, at least one. The first usable one provides the head. All except the spare ones share a
	// backfill.
	RPC []rpc.Endpoint `yaml:"rpc" env:"RPC" envPrefix:"RPC_"`
	// Agreement is how many endpoints must return the same block, with the same logs, before it is appended at the head,
	// and name a block, or a higher one of its chain, before it is final: 1 or 2, default 1. The logs of a final block are
	// read from one endpoint.
	Agreement int `yaml:"agreement" env:"AGREEMENT"`
	// Vaults to index: 1 to vaults.Max.
	Vaults []vaults.Config `yaml:"vaults" envPrefix:"VAULTS_"`
	// Finality defines which blocks can no longer change; default "tag".
	Finality Finality `yaml:"finality" env:"FINALITY"`
	// Confirmations that a referral needs before it is sent to its partner; default "final".
	Confirmations Confirmations `yaml:"confirmations" env:"CONFIRMATIONS"`
	// PollInterval is the pause between calls for the node's head: 10 ms to 1 min, default from the profile.
	PollInterval time.Duration `yaml:"pollInterval" env:"POLL_INTERVAL"`
	// Window is the number of unfinalised blocks that are kept, and so the deepest reorganisation that can be followed:
	// 1 to 100,000, default from the profile.
	Window uint64 `yaml:"window" env:"WINDOW"`
	// BatchBlocks is the largest range of final blocks that is read in one call: 1 to 1,000,000, default from the
	// profile. It is halved when a node rejects a range.
	BatchBlocks uint64 `yaml:"batchBlocks" env:"BATCH_BLOCKS"`
	// RangesInFlight is how many ranges of final blocks are read at the same time: 1 to 16, default 4.
	RangesInFlight int `yaml:"rangesInFlight" env:"RANGES_IN_FLIGHT"`
	// Prices are the units that the provider bills for one call of a method, such as eth_getLogs: 75; nil for none.
	// With them, the units are reported in addition to the calls. A method that is not named costs none.
	Prices map[string]uint64 `yaml:"prices" env:"PRICES"`
	// ReceiptsEvery is how often the final blocks that are not proven yet are proven by their receipts: 1 s to 8,760 h;
	// 0 for never, which is the default. The first run begins at the start.
	ReceiptsEvery time.Duration `yaml:"receiptsEvery" env:"RECEIPTS_EVERY"`
	// ReceiptsPerSecond is how many headers and receipts a second these proofs may read: above 0, up to 10,000, default
	// 50.
	ReceiptsPerSecond float64 `yaml:"receiptsPerSecond" env:"RECEIPTS_PER_SECOND"`
	// Proof defines whether logs are compared with the headers of their blocks; default "headers".
	Proof proof.Level `yaml:"proof" env:"PROOF"`
	// Standby is how long the ingest that writes the log must have been silent before another one takes over: 100 ms to 10
	// min, default 5 s; 0 takes over at once. A standby whose nodes respond replaces one that reaches no node after ten
	// times as long.
	Standby time.Duration `yaml:"standby" env:"STANDBY"`
}

// DefaultConfig has the defaults that neither depend on the chain nor come from the profile (Complete).
func DefaultConfig() Config {
	return Config{Profile: Ethereum, Agreement: 1, RangesInFlight: 4, Proof: proof.Headers, ReceiptsPerSecond: 50,
		Standby: 5 * time.Second}
}

// Finality is the rule by which a block becomes final: the node's `finalized` tag (zero value, text "tag"), a depth
// below the head (text "depth: 64"), or the tag on a chain whose blocks are final at once (text "instant").
type Finality rpc.Finality

var finalityText = regexp.MustCompile(`^(?:depth *: *)?([0-9]+)$`)

// UnmarshalText reads "tag", "instant", "depth: 64" or "64".
func (f *Finality) UnmarshalText(text []byte) error {
	switch s := string(text); s {
	case "tag", "":
		*f = Finality{}
	case "instant":
		*f = Finality{Instant: true}
	default:
		m := finalityText.FindStringSubmatch(s)
		if m == nil {
			return fmt.Errorf("finality %q must be tag, instant or a depth such as `depth: 64`", s)
		}
		depth, err := strconv.ParseUint(m[1], 10, 64)
		if err != nil || depth == 0 {
			return fmt.Errorf("finality depth %s must be 1 or more", m[1])
		}
		*f = Finality{Depth: depth}
	}
	return nil
}

// UnmarshalYAML also accepts the mapping {depth: 64}.
func (f *Finality) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.MappingNode && len(node.Content) == 2 {
		return mistake(node, f.UnmarshalText([]byte(node.Content[0].Value+":"+node.Content[1].Value)))
	}
	return scalar(node, f)
}

// scalar reads the text of a node. A node of another kind has no text, which would be read as the default.
func scalar(node *yaml.Node, into encoding.TextUnmarshaler) error {
	if node.Kind != yaml.ScalarNode {
		return mistake(node, fmt.Errorf("cannot unmarshal %s into %T", node.ShortTag(), into))
	}
	return mistake(node, into.UnmarshalText([]byte(node.Value)))
}

// mistake returns an error of the decoder's own type, after which it continues decoding.
func mistake(node *yaml.Node, err error) error {
	if err == nil {
		return nil
	}
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %v", node.Line, err)}}
}

// MarshalText is the inverse of UnmarshalText.
func (f Finality) MarshalText() ([]byte, error) {
	switch {
	case f.Instant:
		return []byte("instant"), nil
	case f.Depth == 0:
		return []byte("tag"), nil
	}
	return fmt.Appendf(nil, "depth: %d", f.Depth), nil
}

// Confirmations defines when a referral is published: 0 (text "final") when its block is final, n when its block has n
// confirmations (the head itself has 1) or is final, whichever comes first.
type Confirmations uint64

// UnmarshalText reads "final" or a number of at least 1.
func (c *Confirmations) UnmarshalText(text []byte) error {
	if s := string(text); s != "final" && s != "" {
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil || n == 0 {
			return fmt.Errorf("confirmations %q must be final or a number of at least 1", s)
		}
		*c = Confirmations(n)
		return nil
	}
	*c = 0
	return nil
}

// UnmarshalYAML reads the same.
func (c *Confirmations) UnmarshalYAML(node *yaml.Node) error {
	return scalar(node, c)
}

// MarshalText is the inverse of UnmarshalText.
func (c Confirmations) MarshalText() ([]byte, error) {
	if c == 0 {
		return []byte("final"), nil
	}
	return strconv.AppendUint(nil, uint64(c), 10), nil
}

// Limits of the proofs by receipts: a year, and more calls than a node answers.
const (
	maxReceiptsEvery     = 8760 * time.Hour
	maxReceiptsPerSecond = 10_000
)

// maxPrice keeps sums of units within 64 bits.
const maxPrice = 1_000_000_000

var methodText = regexp.MustCompile(`^[a-z]+_[a-zA-Z0-9]+$`)

// Validate reports every mistake at once.
func (c Config) Validate() error {
	return errors.Join(errors.Join(c.Complete().endpointFaults()...), c.ValidateWithoutNodes())
}

// ValidateWithoutNodes is Validate without chain.rpc and chain.agreement, for a machine that has no node's URL.
func (c Config) ValidateWithoutNodes() error {
	var faults []error
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf(format, a...)) }
	c = c.Complete()
	if _, known := paces[c.Profile]; !known {
		fault("chain.profile is %q and must be %s", c.Profile, profileNames())
	}
	if c.ID == 0 {
		fault("chain.id is missing: give the chain id, such as 1 for Ethereum")
	}
	faults = append(faults, vaults.Faults(c.Vaults)...)
	if c.PollInterval < 10*time.Millisecond || c.PollInterval > time.Minute {
		fault("chain.pollInterval is %s and must be 10ms to 1m", c.PollInterval)
	}
	if c.Standby != 0 && (c.Standby < 100*time.Millisecond || c.Standby > 10*time.Minute) {
		fault("chain.standby is %s and must be 100ms to 10m, or 0", c.Standby)
	}
	if c.Window < 1 || c.Window > 100_000 {
		fault("chain.window is %d and must be 1 to 100000", c.Window)
	}
	if c.Finality.Depth > c.Window {
		fault("chain.finality is a depth of %d, but chain.window keeps only %d blocks: make the window at least as large",
			c.Finality.Depth, c.Window)
	}
	if c.BatchBlocks < 1 || c.BatchBlocks > 1_000_000 {
		fault("chain.batchBlocks is %d and must be 1 to 1000000", c.BatchBlocks)
	}
	if c.RangesInFlight < 1 || c.RangesInFlight > 16 {
		fault("chain.rangesInFlight is %d and must be 1 to 16", c.RangesInFlight)
	}
	faultyPrices("chain.prices", c.Prices, fault)
	for i := range c.RPC {
		faultyPrices(fmt.Sprintf("chain.rpc[%d].prices", i), c.RPC[i].Prices, fault)
	}
	if e := c.ReceiptsEvery; e != 0 && (e < time.Second || e > maxReceiptsEvery) {
		fault("chain.receiptsEvery is %s and must be 1s to %s, or 0", e, maxReceiptsEvery)
	}
	if !(c.ReceiptsPerSecond > 0 && c.ReceiptsPerSecond <= maxReceiptsPerSecond) { // also rejects NaN
		fault("chain.receiptsPerSecond is %v and must be above 0, up to %d", c.ReceiptsPerSecond, maxReceiptsPerSecond)
	}
	if c.ReceiptsEvery > 0 && c.Proof == proof.None {
		fault("chain.receiptsEvery finds lost logs by blooms, but chain.proof none is for chains that do not fill them: " +
			"remove one of them")
	}
	switch c.Proof {
	case proof.None, proof.Headers:
	case "bloom", "head":
		fault("chain.proof is %q, a value of an earlier version: set it to headers", c.Proof)
	case "full":
		fault("chain.proof is %q, a value of an earlier version: set it to headers, and chain.receiptsEvery to prove "+
			"older blocks too", c.Proof)
	default:
		fault("chain.proof is %q and must be headers or none", c.Proof)
	}
	return errors.Join(faults...)
}

// endpointFaults reports every mistake in chain.rpc and chain.agreement.
func (c Config) endpointFaults() (faults []error) {
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf(format, a...)) }
	if len(c.RPC) == 0 {
		fault("chain.rpc is empty: give the URL of at least one node")
	}
	seen := map[string]int{}
	for i, e := range c.RPC {
		e.Faults(fmt.Sprintf("chain.rpc[%d]", i), fault)
		if first, twice := seen[e.Canonical()]; twice {
			fault("chain.rpc[%d] is the same URL as chain.rpc[%d]: remove one of them", i, first)
		} else {
			seen[e.Canonical()] = i
		}
	}
	switch {
	case c.Agreement < 1 || c.Agreement > 2:
		fault("chain.agreement is %d and must be 1 or 2", c.Agreement)
	case c.Agreement == 2 && len(c.RPC) < 2:
		fault("chain.agreement is 2, but chain.rpc has %d endpoints: give at least two, so that they can agree", len(c.RPC))
	}
	return faults
}

func faultyPrices(key string, prices map[string]uint64, fault func(format string, a ...any)) {
	for _, method := range slices.Sorted(maps.Keys(prices)) {
		if price := prices[method]; !methodText.MatchString(method) || price > maxPrice {
			fault("%s has %q: %d and must have names of RPC methods, such as eth_getLogs, with units from 0 to %d", key, method,
				price, uint64(maxPrice))
		}
	}
}

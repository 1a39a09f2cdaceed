package faultproxy

import (
	"errors"
	"fmt"
	"net/url"
	"time"
)

// Config is everything that a proxy's behaviour follows from.
type Config struct {
	// Seed of all draws.
	Seed uint64
	// Upstreams are the http or https URLs of honest nodes. Each request is
	// passed to one of them, drawn from the seed.
	Upstreams []string
	// Faults that may be drawn; none: the proxy is honest.
	Faults []Fault
	// Rate is the probability, 0 to 1, that a call is drawn for a fault.
	Rate float64
	// Behind is the most blocks that a stale backend is behind: 1 or more,
	// default 20.
	Behind uint64
	// Ahead is the most blocks that a block which does not exist is above the
	// head: 1 or more, default 1000.
	Ahead uint64
	// RangeLimit is the most blocks that a range may have where a fault limits
	// it: 1 or more, default 1000.
	RangeLimit uint64
	// ResultLimit is the most logs that an answer may have where a fault limits
	// them: 1 or more, default 10,000.
	ResultLimit int
	// CallsPerSecond is how many calls are answered in a second, those of a batch one
	// by one; what comes beyond them, a batch as a whole, gets a 429. 0 for no limit.
	CallsPerSecond int
	// Pause between the pieces of a slow body, 0 to 1 min, default 200 ms. It
	// decides nothing else.
	Pause time.Duration
}

// DefaultConfig has everything but the upstreams: all faults but lies, for one call in
// twenty.
func DefaultConfig() Config {
	return Config{Seed: 1, Faults: All(), Rate: 0.05, Behind: 20, Ahead: 1000, RangeLimit: 1000, ResultLimit: 10_000, Pause: 200 * time.Millisecond}
}

// Validate reports every mistake at once. It never repeats a URL, which may
// hold a key.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf(format, a...)) }
	if len(c.Upstreams) == 0 {
		fault("there is no upstream: give the URL of at least one node")
	}
	for i, raw := range c.Upstreams {
		if u, err := url.Parse(raw); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			fault("upstream %d is not a URL such as http://127.0.0.1:8545: only http and https are proxied", i+1)
		}
	}
	if _, err := groupsOf(c.Faults); err != nil {
		faults = append(faults, err)
	}
	if err := checkRate(c.Rate); err != nil {
		faults = append(faults, err)
	}
	if c.Behind < 1 {
		fault("a stale backend is %d blocks behind and must be 1 or more", c.Behind)
	}
	if c.Ahead < 1 {
		fault("a block that does not exist is %d blocks above the head and must be 1 or more", c.Ahead)
	}
	if c.RangeLimit < 1 {
		fault("the range limit is %d blocks and must be 1 or more", c.RangeLimit)
	}
	if c.ResultLimit < 1 {
		fault("the result limit is %d logs and must be 1 or more", c.ResultLimit)
	}
	if c.CallsPerSecond < 0 {
		fault("the limit of calls a second is %d and must be 0 or more", c.CallsPerSecond)
	}
	if c.Pause < 0 || c.Pause > time.Minute {
		fault("the pause of slow bodies is %s and must be 0 to 1m", c.Pause)
	}
	return errors.Join(faults...)
}

func checkRate(rate float64) error {
	if !(rate >= 0 && rate <= 1) {
		return fmt.Errorf("the rate is %v and must be 0 to 1", rate)
	}
	return nil
}

package faultproxy

import (
	"errors"
	"fmt"
	"net/url"
	"time"
)

// Config determines everything about a proxy's behaviour.
type Config struct {
	// Seed of all draws.
	Seed uint64
	// Upstreams are the http or https URLs of honest nodes. Each request is passed to one of them, drawn from the seed.
	Upstreams []string
	// Faults that may be drawn; without any, the proxy is honest.
	Faults []Fault
	// Rate is the probability, 0 to 1, that a fault is drawn for a call.
	Rate float64
	// Behind is the maximum number of blocks that a stale backend lags: 1 or more, default 20.
	Behind uint64
	// Ahead is the maximum number of blocks above the head for a block that does not exist: 1 or more, default 1000.
	Ahead uint64
	// RangeLimit is the maximum number of blocks in a range when a fault limits it: 1 or more, default 1000.
	RangeLimit uint64
	// ResultLimit is the maximum number of logs in a response when a fault limits it: 1 or more, default 10,000.
	ResultLimit int
	// CallsPerSecond is how many calls are answered per second, counting each call of a batch; requests beyond that get
	// a 429, a batch as a whole. 0 for no limit.
	CallsPerSecond int
	// Pause between the pieces of a slow body, 0 to 1 min, default 200 ms. It affects nothing else.
	Pause time.Duration
}

// DefaultConfig returns a configuration without upstreams: all faults except false responses, for one call in twenty.
func DefaultConfig() Config {
	return Config{Seed: 1, Faults: All(), Rate: 0.05, Behind: 20, Ahead: 1000, RangeLimit: 1000, ResultLimit: 10_000,
		Pause: 200 * time.Millisecond}
}

// validate reports all mistakes at once. It never repeats a URL, which may contain a key.
func (c Config) validate() error {
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
	for _, least := range []struct {
		n    uint64
		what string
	}{
		{c.Behind, "a stale backend is %d blocks behind"},
		{c.Ahead, "a block that does not exist is %d blocks above the head"},
		{c.RangeLimit, "the range limit is %d blocks"},
		{uint64(max(c.ResultLimit, 0)), "the result limit is %d logs"},
	} {
		if least.n < 1 {
			fault(least.what+" and must be 1 or more", least.n)
		}
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

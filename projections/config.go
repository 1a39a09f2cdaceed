package projections

import (
	"errors"
	"fmt"
	"time"
)

// Config is the section projections of navlog.yaml.
type Config struct {
	// MaxRows is how many log records a batch takes before it is inserted;
	// a single atomic unit may be larger. 1 to 1,000,000, default 50,000: at half of it
	// the engine took about a fifth more time for the same rows, at twice no less.
	MaxRows int `yaml:"maxRows" env:"MAX_ROWS"`
	// Linger is how long a batch that is not full waits for more records at the
	// end of the log; one of a thousand records or more waits at least 200 ms.
	// 0 to 10 s, default 5 ms. What arrives during an insert waits anyway.
	Linger time.Duration `yaml:"linger" env:"LINGER"`
}

// DefaultConfig is good for a machine of two cores.
func DefaultConfig() Config {
	return Config{MaxRows: 50_000, Linger: 5 * time.Millisecond}
}

// Validate reports every mistake at once.
func (c Config) Validate() error {
	var faults []error
	if c.MaxRows < 1 || c.MaxRows > 1_000_000 {
		faults = append(faults, fmt.Errorf("projections.maxRows is %d and must be 1 to 1000000", c.MaxRows))
	}
	if c.Linger < 0 || c.Linger > 10*time.Second {
		faults = append(faults, fmt.Errorf("projections.linger is %s and must be 0 to 10s", c.Linger))
	}
	return errors.Join(faults...)
}

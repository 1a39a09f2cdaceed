package projections

import (
	"errors"
	"fmt"
	"time"
)

// Config is the section projections of navlog.yaml.
type Config struct {
	// MaxRows is the maximum number of log records in a batch, except that a single atomic unit may be larger. 1 to
	// 1,000,000, default 50,000: with half as many, the engine took about a fifth more time for the same rows, with
	// twice as many no less.
	MaxRows int `yaml:"maxRows" env:"MAX_ROWS"`
	// Linger is how long a batch that is not full waits for more records at the end of the log; a batch of a thousand
	// records or more waits at least 200 ms. 0 to 10 s, default 5 ms. Records that arrive during an insert are
	// batched anyway.
	Linger time.Duration `yaml:"linger" env:"LINGER"`
	// Standbys is the number of standby generations to keep, the newest ones. Older ones are dropped once the live
	// generation follows the log and no query instance reads them. 1 to 100, default 2: a rollback stays possible,
	// even after a further rebuild that did not switch.
	Standbys int `yaml:"standbys" env:"STANDBYS"`
}

// DefaultConfig suits a machine with two cores.
func DefaultConfig() Config {
	return Config{MaxRows: 50_000, Linger: 5 * time.Millisecond, Standbys: 2}
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
	if c.Standbys < 1 || c.Standbys > 100 {
		faults = append(faults, fmt.Errorf("projections.standbys is %d and must be 1 to 100", c.Standbys))
	}
	return errors.Join(faults...)
}

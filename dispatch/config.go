package dispatch

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/navlog/navlog/schemas/chainlog"
)

// Config is the section `webhooks` of the configuration.
type Config struct {
	// PerPartnerConcurrency is the number of POSTs to one partner at a time: 1
	// to 100, default 4.
	PerPartnerConcurrency int `yaml:"perPartnerConcurrency" env:"PER_PARTNER_CONCURRENCY"`
	// Concurrency is the number of POSTs at a time over all partners: 1 to
	// 100,000, default 1024. It bounds sockets; partners take turns at it.
	Concurrency int `yaml:"concurrency" env:"CONCURRENCY"`
	// CAFile is a PEM file with root certificates that are trusted beside the
	// system's, for receivers in development; default none.
	CAFile string `yaml:"caFile" env:"CA_FILE"`
	// LeaseSeconds is how long a partner stays with a dispatcher that stopped
	// renewing: 3 to 300, default 10. After a crash its partners wait as long.
	LeaseSeconds int `yaml:"leaseSeconds" env:"LEASE_SECONDS"`
	// RetentionDays is for how long the details of attempts, test events and finished
	// commands are kept: 1 to 3650, default 90. Events and the last attempts of each
	// stay for ever.
	RetentionDays int `yaml:"retentionDays" env:"RETENTION_DAYS"`
	// ChainID of the deployment; a referral of another chain is refused.
	ChainID uint64 `yaml:"-" env:"-"`
}

// DefaultConfig has everything but the chain.
func DefaultConfig() Config {
	return Config{PerPartnerConcurrency: 4, Concurrency: 1024, LeaseSeconds: 10, RetentionDays: 90}
}

// Validate reports every mistake at once.
func (c Config) Validate() error {
	var faults []error
	inRange := func(name string, value, low, high int) {
		if value < low || value > high {
			faults = append(faults, fmt.Errorf("webhooks.%s is %d and must be %d to %d", name, value, low, high))
		}
	}
	inRange("perPartnerConcurrency", c.PerPartnerConcurrency, 1, 100)
	inRange("concurrency", c.Concurrency, 1, 100_000)
	inRange("leaseSeconds", c.LeaseSeconds, 3, 300)
	inRange("retentionDays", c.RetentionDays, 1, 3650)
	if _, err := c.roots(); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// roots are the trusted certificates; nil means the system's.
func (c Config) roots() (*x509.CertPool, error) {
	if c.CAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("webhooks.caFile: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a machine without certificates of its own
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("webhooks.caFile: %s holds no certificate in PEM form", c.CAFile)
	}
	return pool, nil
}

// timing is what tests shorten of the program's pauses; those of sending are
// lane.Timing.
type timing struct {
	scan     time.Duration // between looks at PostgreSQL for work that came in another way
	topics   time.Duration // between looks whether a topic was made anew
	command  time.Duration // that a statement of a command may take
	database time.Duration // that PostgreSQL may take for one read of the topics
	forget   time.Duration // between looks for what is older than the retention
	hanging  time.Duration // for how long a transaction of the topics may be open
	proof    time.Duration // for how long one read of the topics proves that they are read: longer than the next takes
}

// specified is the timing of every dispatcher but the tests'.
func specified() timing {
	return timing{
		scan:     time.Second,
		topics:   5 * time.Second,
		command:  5 * time.Second,
		database: 10 * time.Second,
		forget:   retentionInterval,
		hanging:  chainlog.HangingAfter,
		proof:    20 * time.Second,
	}
}

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
	// Concurrency is the number of POSTs at a time to all partners together: 1 to
	// 100,000, default 1024. It bounds the sockets.
	Concurrency int `yaml:"concurrency" env:"CONCURRENCY"`
	// CAFile is a PEM file with root certificates that are trusted in addition to
	// the system's, for receivers in development; default none.
	CAFile string `yaml:"caFile" env:"CA_FILE"`
	// LeaseSeconds is how long a partner stays with a dispatcher that stopped
	// renewing: 3 to 300, default 10. After a crash its partners wait that long.
	LeaseSeconds int `yaml:"leaseSeconds" env:"LEASE_SECONDS"`
	// RetentionDays is how long the details of attempts, test events and finished commands are kept: 1 to 3650, default
	// 90. Events and the last attempts of each are kept forever.
	RetentionDays int `yaml:"retentionDays" env:"RETENTION_DAYS"`
	// ChainID is the deployment's chain; referrals of other chains are dead letters.
	ChainID uint64 `yaml:"-" env:"-"`
}

// DefaultConfig returns the defaults; only ChainID has none.
func DefaultConfig() Config {
	return Config{PerPartnerConcurrency: 4, Concurrency: 1024, LeaseSeconds: 10, RetentionDays: 90}
}

// Validate returns every problem at once.
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

// roots returns the trusted root certificates; nil means the system's.
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
		pool = x509.NewCertPool() // a machine without system certificates
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("webhooks.caFile: %s holds no certificate in PEM form", c.CAFile)
	}
	return pool, nil
}

// timing holds the pauses and limits that tests shorten; lane.Timing has those of
// sending.
type timing struct {
	scan     time.Duration // between scans for work that did not come through this process
	topics   time.Duration // between checks whether a topic was recreated
	command  time.Duration // limit of one statement of a command
	database time.Duration // limit of one step of reading the topics, and of one transaction that prunes
	prune    time.Duration // between scans for details past their retention
	hanging  time.Duration // how long a Kafka transaction may stay open
	proof    time.Duration // how long one successful read proves health; longer than a read takes
}

// specified returns the timing that every dispatcher outside of tests uses.
func specified() timing {
	return timing{
		scan:     time.Second,
		topics:   5 * time.Second,
		command:  5 * time.Second,
		database: 10 * time.Second,
		prune:    retentionInterval,
		hanging:  chainlog.HangingAfter,
		proof:    20 * time.Second,
	}
}

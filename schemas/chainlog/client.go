// Package chainlog is the contract on Kafka: the topics and their configuration, the encoding
// of records, and a reader of the log that proves that it missed nothing.
//
//	chain.<id>.log                   one partition, kept forever; event.Record, seq contiguous from 1
//	chain.<id>.cursor                one partition, compacted; event.Cursor, committed with the records
//	chain.<id>.referral.deposits     event.Referral, keyed by partner id, kept forever
//	chain.<id>.referral.withdrawals  event.Referral, keyed by partner id, kept forever
//
// The chain's id is in every name, so that deployments of several chains can share a cluster.
//
// Offsets have gaps (transaction markers, aborted records); seq has none. A position is
// therefore a seq, with an offset as a hint.
package chainlog

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/input"
)

// Config is the section `kafka` of the configuration.
type Config struct {
	// Brokers are the bootstrap brokers as host:port: at least one.
	Brokers []string `yaml:"brokers" env:"BROKERS"`
	// TLS uses TLS 1.2 or later; default false.
	TLS bool `yaml:"tls" env:"TLS"`
	// Certificates are for brokers with a certificate of a private authority, or that require a client certificate.
	Certificates certs.Files `yaml:"certificates" envPrefix:"CERTIFICATES_"`
	SASL         SASL        `yaml:"sasl" envPrefix:"SASL_"`
	// ReplicationFactor of topics that navlog creates: 1 to 9, default 1.
	ReplicationFactor int16 `yaml:"replicationFactor" env:"REPLICATION_FACTOR"`
	// ReferralPartitions of the referral topics: 1 to 1000, default 8.
	ReferralPartitions int32 `yaml:"referralPartitions" env:"REFERRAL_PARTITIONS"`
	// Hooks observe the traffic of every client with the brokers; nil for none. They are not part of a configuration file.
	Hooks []kgo.Hook `yaml:"-" json:"-"`

	// latest is the latest result of Reach, for new clients; nil unless the configuration is Tracked.
	latest *atomic.Pointer[[]string]
}

// DefaultConfig returns the defaults; only Brokers has none.
func DefaultConfig() Config { return Config{ReplicationFactor: 1, ReferralPartitions: 8} }

// Tracked returns a copy of which new clients, also those of its own copies, do not call the brokers that were silent
// when Reach was last called. It is for programs, which call Reach again when Kafka fails.
func (c Config) Tracked() Config {
	c.latest = new(atomic.Pointer[[]string])
	return c
}

// Topology returns the part of the configuration that shapes new topics.
func (c Config) Topology() Topology {
	return Topology{ReplicationFactor: c.ReplicationFactor, ReferralPartitions: c.ReferralPartitions}
}

// Validate returns every problem at once.
func (c Config) Validate() error {
	var faults []error
	if len(c.Brokers) == 0 {
		faults = append(faults, errors.New("kafka.brokers is empty: name at least one broker as host:port"))
	}
	for _, b := range c.Brokers {
		if !input.Address(b) {
			faults = append(faults, fmt.Errorf("kafka.brokers: %q is not host:port", b))
		}
	}
	if err := c.Certificates.Validate("kafka", c.TLS); err != nil {
		faults = append(faults, err)
	}
	if c.ReplicationFactor < 1 || c.ReplicationFactor > 9 {
		faults = append(faults, fmt.Errorf("kafka.replicationFactor is %d and must be 1 to 9", c.ReplicationFactor))
	}
	if c.ReferralPartitions < 1 || c.ReferralPartitions > 1000 {
		faults = append(faults, fmt.Errorf("kafka.referralPartitions is %d and must be 1 to 1000", c.ReferralPartitions))
	}
	if err := c.SASL.validate(c.TLS); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// dialTimeout limits how long connecting may take; it is franz-go's default.
const dialTimeout = 10 * time.Second

func (c Config) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	secure, err := c.Certificates.Config()
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTimeout}, Config: secure}).DialContext(ctx, network, addr)
}

// Options returns the client options that all programs share.
func (c Config) Options() []kgo.Opt {
	if c.latest != nil {
		if brokers := c.latest.Load(); brokers != nil {
			return c.options(*brokers)
		}
	}
	return c.options(c.Brokers)
}

func (c Config) options(brokers []string) []kgo.Opt {
	options := []kgo.Opt{
		kgo.SeedBrokers(brokers...),
		kgo.ClientID("navlog"),
		kgo.ProducerBatchMaxBytes(MaxBatchBytes),
		// Otherwise every client, even one that reads a single record, would send its own metrics
		// when it closes, which needs 8 MiB. The programs' metrics cover their clients.
		kgo.DisableClientMetrics(),
		kgo.WithHooks(c.Hooks...),
	}
	if c.TLS {
		options = append(options, kgo.Dialer(c.dial))
	}
	if login := c.SASL.mechanism(); login != nil {
		options = append(options, kgo.SASL(login))
	}
	return options
}

const (
	// transactionTimeout is how long a dead writer without a successor can delay readers.
	transactionTimeout = time.Minute
	// CommitTimeout bounds one transaction; it must be shorter than transactionTimeout.
	CommitTimeout = 45 * time.Second
)

// WriterOptions returns the options of the client that writes a chain's log.
func (c Config) WriterOptions(chainID uint64) []kgo.Opt {
	return append(c.Options(), kgo.TransactionalID(TransactionalID(chainID)), kgo.TransactionTimeout(transactionTimeout),
		// The fastest level packs these records as small as the default one, in half the time.
		kgo.ProducerBatchCompression(kgo.ZstdCompression().WithLevel(1), kgo.SnappyCompression(), kgo.NoCompression()))
}

// othersWithin is how long Reach waits for other brokers after the first one has responded.
const othersWithin = time.Second

// Reach returns the brokers of the list that respond, those that were faster first, and those that failed at once. It
// fails if none responds within the time limit. The silent ones are in neither list: a client calls each broker of its
// list again and again, and waits ten seconds, which is as long as most calls may take, for one that accepts
// connections and does not respond, or whose machine is down. New clients of a Tracked configuration call the brokers
// of both lists, or all if none responds.
func (c Config) Reach(ctx context.Context, limit time.Duration) (up, down []string, _ error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// Without its own context, the client waits for a broker that accepts a connection and does not respond.
	client, err := kgo.NewClient(append(c.options(c.Brokers), kgo.WithContext(limited))...)
	if err != nil {
		return nil, nil, fmt.Errorf("create a Kafka client: %w", err)
	}
	defer client.Close()
	type answer struct {
		broker string
		err    error
	}
	brokers := client.SeedBrokers()
	answers := make(chan answer, len(brokers))
	for i, b := range brokers {
		go func() {
			request := kmsg.NewPtrMetadataRequest()
			request.Topics = []kmsg.MetadataRequestTopic{} // none
			_, err := b.Request(limited, request)
			answers <- answer{c.Brokers[i], err}
		}()
	}
	for range brokers {
		switch a := <-answers; {
		case a.err == nil:
			if up = append(up, a.broker); len(up) == 1 {
				time.AfterFunc(othersWithin, cancel) // the requests that are left fail then
			}
		case limited.Err() == nil:
			down = append(down, a.broker)
			fallthrough
		default:
			err = a.err
		}
	}
	if c.latest != nil && ctx.Err() == nil {
		c.latest.Store(nil)
		if called := slices.Concat(up, down); len(up) > 0 {
			c.latest.Store(&called)
		}
	}
	switch {
	case len(up) > 0:
		return up, down, nil
	case errors.Is(ctx.Err(), context.Canceled):
		err = ctx.Err()
	case limited.Err() != nil:
		err = fmt.Errorf("no response within %s: %w; check that a broker is up there", limit, context.DeadlineExceeded)
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		err = Explain(err)
	default:
		err = fmt.Errorf("%w; check that a broker is up there", err)
	}
	return nil, nil, fmt.Errorf("reach Kafka at %s (kafka.brokers): %w", strings.Join(c.Brokers, ", "), err)
}

// Fence ends every older client with the transactional id of this one, and its transaction.
func Fence(ctx context.Context, client *kgo.Client) error {
	ctx, cancel := context.WithTimeout(ctx, CommitTimeout)
	defer cancel()
	if _, _, err := client.ProducerID(ctx); err != nil {
		return fmt.Errorf("fence the previous writer: %w", Explain(err))
	}
	return nil
}

// EndTransaction commits or aborts the transaction of a client. The broker must have confirmed all its records, and
// topics are those that they belong to. It returns the error of ctx if the client does not learn the partitions of a
// topic, and that of franz-go's EndTransaction.
//
// franz-go (1.22.3) sends the first records of a topic before it stores the topic's partitions. If its EndTransaction
// runs between the two, it overlooks the topic: it aborts a transaction without other topics and returns nil; otherwise
// the topic's next records continue their sequence numbers under a new epoch, and the broker rejects them. Therefore
// this waits until the partitions are stored.
func EndTransaction(ctx context.Context, client *kgo.Client, how kgo.TransactionEndTry, topics ...string) error {
	for _, topic := range topics {
		for !stored(client, topic) {
			select {
			case <-ctx.Done():
				return fmt.Errorf("wait for the partitions of %s: %w", topic, ctx.Err())
			case <-time.After(time.Millisecond):
			}
		}
	}
	return client.EndTransaction(ctx, how)
}

// stored reports whether a client has stored the partitions of a topic, which it does for all of them at once.
func stored(client *kgo.Client, topic string) bool {
	leader, epoch, _ := client.PartitionLeader(topic, 0)
	return leader >= 0 || epoch >= 0
}

// Checked returns the answer of brokers to a request, and the first error in it, with what to do about it (Explain).
func Checked[T interface{ Error() error }](answer T, err error) (T, error) {
	if err == nil {
		err = answer.Error()
	}
	return answer, Explain(err)
}

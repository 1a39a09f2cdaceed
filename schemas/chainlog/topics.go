package chainlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// MaxBatchBytes is the maximum size of a produced record batch: by default brokers reject more than 1 MB.
const MaxBatchBytes = 1_000_000

// LogTopic returns the topic of a chain's log: one partition, kept forever.
func LogTopic(chainID uint64) string { return "chain." + strconv.FormatUint(chainID, 10) + ".log" }

// CursorTopic returns the compacted topic with the cursor of a chain.
func CursorTopic(chainID uint64) string { return fmt.Sprintf("chain.%d.cursor", chainID) }

// ReferralDeposits returns the topic of a chain with one event.Referral, keyed by partner id,
// for each deposit that names a partner.
func ReferralDeposits(chainID uint64) string {
	return fmt.Sprintf("chain.%d.referral.deposits", chainID)
}

// ReferralWithdrawals returns the same topic for withdrawal requests.
func ReferralWithdrawals(chainID uint64) string {
	return fmt.Sprintf("chain.%d.referral.withdrawals", chainID)
}

// Topics returns all topics of a chain: the log, the cursor, and those of referrals.
func Topics(chainID uint64) []string {
	return []string{LogTopic(chainID), CursorTopic(chainID), ReferralDeposits(chainID), ReferralWithdrawals(chainID)}
}

// Topology is how missing topics are created.
type Topology struct {
	// ReplicationFactor of new topics; 1 for a single broker, 3 in production.
	ReplicationFactor int16
	// ReferralPartitions of each referral topic, 1 to 1000. It can never change, because the key determines the partition.
	ReferralPartitions int32
}

type topic struct {
	name       string
	partitions int32
	ordered    bool // exactly one partition; the referral topics may have any number
	configs    map[string]string
}

// required are the settings that are checked at every start if a topic has them, together with what unsafe checks; the
// others only apply to new topics.
var required = []string{"cleanup.policy", "retention.bytes", "retention.ms"}

// maxMessageBytes is the broker's own default, which fits a batch of MaxBatchBytes.
const maxMessageBytes = 1_048_588

func topics(chainID uint64, t Topology) []topic {
	minISR := strconv.Itoa(max(1, int(t.ReplicationFactor)-1))
	keep := func(name string, partitions int32, ordered bool) topic {
		return topic{name, partitions, ordered, map[string]string{
			"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1",
			"min.insync.replicas": minISR, "unclean.leader.election.enable": "false",
			"message.timestamp.type": "CreateTime", "max.message.bytes": strconv.Itoa(maxMessageBytes),
			// Records carry the block's time, which on a development chain may be far ahead; by
			// default the broker rejects more than an hour.
			"message.timestamp.after.max.ms": "9223372036854775807",
		}}
	}
	return []topic{
		keep(LogTopic(chainID), 1, true),
		{CursorTopic(chainID), 1, true, map[string]string{
			"cleanup.policy": "compact", "segment.ms": "3600000", "min.cleanable.dirty.ratio": "0.1",
			"min.insync.replicas": minISR, "unclean.leader.election.enable": "false",
			"max.message.bytes": strconv.Itoa(maxMessageBytes),
		}},
		keep(ReferralDeposits(chainID), t.ReferralPartitions, false),
		keep(ReferralWithdrawals(chainID), t.ReferralPartitions, false),
	}
}

// A new topic is not known to every broker at once. These are how long to wait for it, and the pause between checks.
const (
	visibleWithin = 15 * time.Second
	visiblePause  = 50 * time.Millisecond
)

// EnsureTopics creates the missing topics and checks the existing ones. It rejects a log whose records can expire or
// that has more than one partition, a cursor that is not compacted, and a topic that can lose acknowledged records or
// rejects a batch of MaxBatchBytes. It returns all problems at once. A single replica is accepted: see SingleReplicas.
func EnsureTopics(ctx context.Context, adm *kadm.Client, chainID uint64, t Topology) error {
	for _, w := range topics(chainID, t) {
		// A cluster that lacks a broker may not respond to a request to create a topic, not even one that exists.
		if found, err := ListTopics(ctx, adm, w.name); err == nil && found.Has(w.name) {
			continue
		}
		configs := make(map[string]*string, len(w.configs))
		for k, v := range w.configs {
			configs[k] = kadm.StringPtr(v)
		}
		r, err := adm.CreateTopic(ctx, w.partitions, t.ReplicationFactor, configs, w.name)
		if err == nil {
			err = r.Err
		}
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w (are there %d brokers?)", w.name, Explain(err), t.ReplicationFactor)
		}
	}
	visible, cancel := context.WithTimeout(ctx, visibleWithin)
	defer cancel()
	for {
		err := CheckTopics(ctx, adm, chainID, t)
		if !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return err
		}
		select {
		case <-visible.Done():
			return err
		case <-time.After(visiblePause):
		}
	}
}

// ListTopics describes topics without kadm's cache, which would remember for five seconds that a topic is missing;
// requesting the authorized operations, which no caller needs, bypasses it. Each topic has its own error.
func ListTopics(ctx context.Context, adm *kadm.Client, names ...string) (kadm.TopicDetails, error) {
	return adm.ListTopics(kadm.WithAuthorizedOps(ctx), names...)
}

// CheckTopics checks the topics of a chain without creating any. For a missing topic the
// error is kerr.UnknownTopicOrPartition.
func CheckTopics(ctx context.Context, adm *kadm.Client, chainID uint64, t Topology) error {
	names := Topics(chainID)
	details, err := ListTopics(ctx, adm, names...)
	if err != nil {
		return fmt.Errorf("list topics: %w", Explain(err))
	}
	described, err := adm.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return fmt.Errorf("read topic configurations: %w", Explain(err))
	}
	var faults []error
	for _, w := range topics(chainID, t) {
		if err := details[w.name].Err; err != nil {
			faults = append(faults, fmt.Errorf("look up topic %s: %w", w.name, Explain(err)))
			continue
		}
		config, err := described.On(w.name, nil)
		if err == nil {
			err = config.Err
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("read configuration of topic %s: %w", w.name, Explain(err)))
			continue
		}
		faults = append(faults, w.faults(details[w.name], config)...)
	}
	return errors.Join(faults...)
}

func (w topic) faults(detail kadm.TopicDetail, config kadm.ResourceConfig) (faults []error) {
	if n := len(detail.Partitions); w.ordered && n != 1 {
		faults = append(faults, fmt.Errorf(
			"topic %s has %d partitions and must have exactly 1, because its order is the chain's order, and Kafka removes no "+
				"partition: recreate it if it is empty; if not, its records are in partition 0, so do not delete it before "+
				"`navlog backup` has copied them, and restore them with `navlog restore`", w.name, n,
		))
	}
	have := map[string]string{}
	for _, c := range config.Configs {
		have[c.Key] = c.MaybeValue()
	}
	for _, key := range required {
		if want, set := w.configs[key]; set && have[key] != want {
			faults = append(
				faults, w.fault(key, have[key], strconv.Quote(want), "or records that cannot be replaced would be deleted", want),
			)
		}
	}
	return append(faults, w.unsafe(replicas(detail), have)...)
}

func (w topic) fault(key, have, must, why, set string) error {
	return fmt.Errorf("topic %s has %s=%q and must have %s, %s: run kafka-configs.sh --bootstrap-server HOST:PORT "+
		"--alter --entity-type topics --entity-name %s --add-config %s=%s", w.name, key, have, must, why, w.name, key, set)
}

// unsafe returns the settings with which a topic with this number of replicas can lose acknowledged records or reject
// batches. It does not check keys that the broker does not report.
func (w topic) unsafe(replicas int, have map[string]string) (faults []error) {
	const isr, unclean, size = "min.insync.replicas", "unclean.leader.election.enable", "max.message.bytes"
	if n, err := strconv.Atoi(have[isr]); err == nil && replicas > 2 && n < 2 {
		faults = append(faults, w.fault(isr, have[isr], "2 or more", fmt.Sprintf(
			"or only one of its %d replicas would acknowledge, and records would be lost with it", replicas,
		), "2"))
	} else if err == nil && n > replicas && replicas > 0 {
		faults = append(faults, w.fault(
			isr, have[isr], fmt.Sprintf("%d at most", max(1, replicas-1)),
			fmt.Sprintf("or its %d replicas would acknowledge nothing", replicas), strconv.Itoa(max(1, replicas-1)),
		))
	}
	if have[unclean] == "true" && replicas > 1 {
		faults = append(faults, w.fault(
			unclean, have[unclean], "false", "or a replica that lacks acknowledged records could become the leader", "false",
		))
	}
	if n, err := strconv.Atoi(have[size]); err == nil && n < maxMessageBytes {
		faults = append(faults, w.fault(
			size, have[size], fmt.Sprintf("%d or more", maxMessageBytes), "or batches would be rejected",
			strconv.Itoa(maxMessageBytes),
		))
	}
	return faults
}

// replicas returns the number of replicas of the partition with the fewest.
func replicas(detail kadm.TopicDetail) int {
	fewest := 0
	for i, p := range detail.Partitions.Sorted() {
		if n := len(p.Replicas); i == 0 || n < fewest {
			fewest = n
		}
	}
	return fewest
}

// SingleReplicas returns the topics of a chain with a single replica: a lost disk loses their
// records. That is enough for development.
func SingleReplicas(ctx context.Context, adm *kadm.Client, chainID uint64) ([]string, error) {
	details, err := Checked(ListTopics(ctx, adm, Topics(chainID)...))
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	var single []string
	for _, d := range details.Sorted() {
		if replicas(d) == 1 {
			single = append(single, d.Topic)
		}
	}
	return single, nil
}

package engines

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"
)

// clusterHeap is the heap of a broker of a cluster: one with three of them uses about 350 MB of memory each.
const clusterHeap = "256m"

// An ApacheKafkaCluster is several brokers of Apache Kafka, each of which is also a controller. With three of them
// every internal topic has three replicas, and a write is acknowledged when two have it.
type ApacheKafkaCluster struct {
	Brokers []*ApacheKafka // broker i has the node id i + 1
}

// A kafkaPlan is what all brokers of a cluster know about each other.
type kafkaPlan struct {
	id    string
	nodes []kafkaNode
}

// StartApacheKafkaCluster starts n brokers with their data in dir, and returns when all of them respond. The brokers
// notice a dead one within about two seconds, instead of nine by default: a broker cannot be killed and restarted often
// in a short time otherwise.
func StartApacheKafkaCluster(ctx context.Context, dir string, n int) (*ApacheKafkaCluster, error) {
	plan := &kafkaPlan{id: newClusterID()}
	for i := range n {
		node := kafkaNode{cluster: plan, id: i + 1}
		if err := node.ports.claim(); err != nil {
			return nil, err
		}
		plan.nodes = append(plan.nodes, node)
	}
	c := &ApacheKafkaCluster{Brokers: make([]*ApacheKafka, n)}
	group, groupCtx := errgroup.WithContext(ctx)
	for i, node := range plan.nodes {
		group.Go(func() (err error) {
			c.Brokers[i], err = startApacheKafka(groupCtx, filepath.Join(dir, fmt.Sprint("broker-", node.id)), node)
			return err
		})
	}
	err := group.Wait()
	if err == nil {
		err = c.complete(ctx)
	}
	if err != nil {
		c.Kill()
		return nil, err
	}
	return c, nil
}

// complete waits until the brokers know each other.
func (c *ApacheKafkaCluster) complete(ctx context.Context) error {
	return c.Brokers[0].waitReady(ctx, func(ctx context.Context) error {
		_, err := c.metadata(ctx, c.Addrs()...)
		return err
	})
}

// Addrs returns the addresses to bootstrap from.
func (c *ApacheKafkaCluster) Addrs() (addrs []string) {
	for _, k := range c.Brokers {
		addrs = append(addrs, k.Addr)
	}
	return addrs
}

// Kill kills all brokers that were started.
func (c *ApacheKafkaCluster) Kill() {
	for _, k := range c.Brokers {
		if k != nil {
			k.Kill()
		}
	}
}

// InSync returns nil if every broker is up and every partition of every topic has all its replicas in sync, or an error
// that names what is missing. All brokers are asked: one that was frozen does not know at first that it was missing.
func (c *ApacheKafkaCluster) InSync(ctx context.Context) error {
	for _, k := range c.Brokers {
		all, err := c.metadata(ctx, k.Addr)
		if err != nil {
			return err
		}
		for _, t := range all.Topics {
			for _, p := range t.Partitions {
				if len(p.ISR) < len(p.Replicas) || p.Leader < 0 {
					return fmt.Errorf("partition %d of %s is led by broker %d, and %d of %d replicas are in sync",
						p.Partition, *t.Topic, p.Leader, len(p.ISR), len(p.Replicas))
				}
			}
		}
	}
	return nil
}

// metadata returns the topics as one of some brokers knows them. It is an error if a broker is not known.
func (c *ApacheKafkaCluster) metadata(
	ctx context.Context, brokers ...string,
) (all *kmsg.MetadataResponse, err error) {
	err = ask(brokers, func(client *kgo.Client) error {
		if all, err = kmsg.NewPtrMetadataRequest().RequestWith(ctx, client); err != nil {
			return err
		}
		if len(all.Brokers) < len(c.Brokers) {
			return fmt.Errorf("%d of %d brokers have registered", len(all.Brokers), len(c.Brokers))
		}
		return nil
	})
	return all, err
}

// Controller returns the index of the broker that is the active controller.
func (c *ApacheKafkaCluster) Controller(ctx context.Context) (leader int, err error) {
	partition := kmsg.NewDescribeQuorumRequestTopicPartition()
	topic := kmsg.NewDescribeQuorumRequestTopic()
	topic.Topic, topic.Partitions = "__cluster_metadata", append(topic.Partitions, partition)
	request := kmsg.NewPtrDescribeQuorumRequest()
	request.Topics = append(request.Topics, topic)
	err = ask(c.Addrs(), func(client *kgo.Client) error {
		response, err := request.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
			return err
		}
		if len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1 {
			return errors.New("the response does not describe the quorum")
		}
		leader = int(response.Topics[0].Partitions[0].LeaderID) - 1
		return kerr.ErrorForCode(response.Topics[0].Partitions[0].ErrorCode)
	})
	if err == nil && (leader < 0 || leader >= len(c.Brokers)) {
		err = errors.New("the quorum has no leader")
	}
	if err != nil {
		return 0, fmt.Errorf("find the active controller: %w", err)
	}
	return leader, nil
}

// Coordinator returns the index of the broker that coordinates the transactions of a transactional id.
func (c *ApacheKafkaCluster) Coordinator(ctx context.Context, transactionalID string) (broker int, err error) {
	err = ask(c.Addrs(), func(client *kgo.Client) error {
		found := kadm.NewClient(client).FindTxnCoordinators(ctx, transactionalID)
		broker = int(found[transactionalID].NodeID) - 1
		return found.Error()
	})
	if err != nil {
		return 0, fmt.Errorf("find the coordinator of %s: %w", transactionalID, err)
	}
	return broker, nil
}

func ask(brokers []string, question func(*kgo.Client) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return err
	}
	defer client.Close()
	return question(client)
}

// properties returns the configuration of a broker of the cluster.
func (p *kafkaPlan) properties(data string, node kafkaNode) string {
	var voters []string
	for _, n := range p.nodes {
		voters = append(voters, fmt.Sprintf("%d@%s", n.id, addr(n.ports[1])))
	}
	replicas, acknowledging := strconv.Itoa(len(p.nodes)), strconv.Itoa(len(p.nodes)/2+1)
	return strings.Join([]string{
		serverProperties(data, node.ports[0], node.ports[1]),
		// Of two lines with the same name, the later one counts.
		"node.id=" + strconv.Itoa(node.id),
		"controller.quorum.voters=" + strings.Join(voters, ","),
		"offsets.topic.replication.factor=" + replicas,
		"transaction.state.log.replication.factor=" + replicas,
		"transaction.state.log.min.isr=" + acknowledging,
		"share.coordinator.state.topic.replication.factor=" + replicas,
		"share.coordinator.state.topic.min.isr=" + acknowledging,
		"default.replication.factor=" + replicas,
		"min.insync.replicas=" + acknowledging,
		"broker.heartbeat.interval.ms=500",
		"broker.session.timeout.ms=2000",
		"controller.quorum.election.timeout.ms=500",
		"controller.quorum.fetch.timeout.ms=1000",
		"replica.lag.time.max.ms=5000",
		"",
	}, "\n")
}

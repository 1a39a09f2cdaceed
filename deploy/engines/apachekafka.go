package engines

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const apacheKafkaName = "Apache Kafka"

// An ApacheKafka is a running broker of Apache Kafka itself: one node that is its own controller.
type ApacheKafka struct {
	Addr string // host:port to bootstrap from
	// Admin is host:port of the superuser's listener, if the broker has access control.
	Admin string
	*process

	jvm  jvm
	node kafkaNode
}

// A kafkaNode is what distinguishes a broker from others. The zero value is a single broker on ports to be chosen.
type kafkaNode struct {
	guarded *Guarded // nil for a broker without access control
	ports   kafkaPorts
	cluster *kafkaPlan // nil for a single broker
	id      int        // in the cluster, from 1
}

// kafkaPorts are the ports of the broker, the controller and the superuser's listener; 0 for one that is not chosen
// yet.
type kafkaPorts [3]int

// claim chooses the ports that are not chosen yet, and checks that the others are free.
func (p *kafkaPorts) claim() (err error) {
	for i := range p {
		if p[i], err = claimPort(apacheKafkaName, p[i]); err != nil {
			return err
		}
	}
	return nil
}

// A Guarded describes a broker with logins and access control, as it is deployed.
type Guarded struct {
	// Properties of the broker, as in deploy/docker/kafka/server.properties; ports and folders are replaced by those of
	// this machine.
	Properties string
	// Secrets is the folder that the broker reads instead of /run/secrets.
	Secrets string
	// Login is used on the superuser's listener to check whether the broker responds.
	Login kgo.Opt
}

// log4jConfig is written next to the broker's configuration.
//
//go:embed kafka/log4j2.properties
var log4jConfig string

// ApacheKafkaAvailable returns an error that says what StartApacheKafka would lack on this machine, or nil.
func ApacheKafkaAvailable() error {
	_, _, err := apacheKafkaFiles()
	return err
}

// javaProgram returns the path of the java program.
func javaProgram(what string) (string, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return "", fmt.Errorf("find %s: there is no java in PATH: install a Java runtime, version 17 or later", what)
	}
	return java, nil
}

// apacheKafkaFiles returns the paths of the java program and of the folder with the broker's jars.
func apacheKafkaFiles() (java, lib string, err error) {
	if java, err = javaProgram(apacheKafkaName); err != nil {
		return "", "", err
	}
	if lib, err = enginesDir(filepath.Join("kafka", "lib"), "kafka"); err != nil {
		return "", "", err
	}
	if jars, _ := filepath.Glob(filepath.Join(lib, "kafka_2.13-*.jar")); len(jars) != 1 {
		return "", "", fmt.Errorf("find %s: folder %s holds %d jars of the broker instead of one: empty it and run `make "+
			"kafka`", apacheKafkaName, lib, len(jars))
	}
	return java, lib, nil
}

// StartApacheKafka starts a broker with its data in dir on a free port. Requests never create topics automatically. It
// returns when the broker responds, which takes a few seconds.
func StartApacheKafka(ctx context.Context, dir string) (*ApacheKafka, error) {
	return startApacheKafka(ctx, dir, kafkaNode{})
}

// StartGuardedApacheKafka is StartApacheKafka for a broker with logins and access control.
func StartGuardedApacheKafka(ctx context.Context, dir string, g Guarded) (*ApacheKafka, error) {
	return startApacheKafka(ctx, dir, kafkaNode{guarded: &g})
}

func startApacheKafka(ctx context.Context, dir string, node kafkaNode) (*ApacheKafka, error) {
	java, lib, err := apacheKafkaFiles()
	if err != nil {
		return nil, err
	}
	k := &ApacheKafka{node: node, jvm: jvm{java: java, lib: lib, heap: "512m"}}
	if node.cluster != nil {
		k.jvm.heap = clusterHeap
	}
	k.process, err = start(ctx, apacheKafkaName, dir, func(dir string) (childSpec, error) {
		k.jvm.dir = dir
		return javaSpec(java, dir, k.jvm.args("kafka.Kafka", k.jvm.properties())), k.prepare(ctx)
	}, k.answers)
	if err != nil {
		return nil, err
	}
	return k, nil
}

// javaSpec describes how the supervisor runs and stops a program in Java.
func javaSpec(java, dir string, args []string) childSpec {
	return childSpec{Kind: supervisorKind, Path: java, Dir: dir, Args: append([]string{java}, args...),
		Stop: []stopStep{{int(syscall.SIGTERM), 20 * time.Second}}}
}

// Restart starts the broker again at its addresses and with its data. If it still runs, it is killed first.
func (k *ApacheKafka) Restart(ctx context.Context) error {
	k.Kill()
	again, err := startApacheKafka(ctx, k.jvm.dir, k.node)
	if err == nil {
		*k = *again
	}
	return err
}

// Tool runs one of Kafka's own tools, given its class, and returns its output. The tools exit with 0 even if the broker
// rejects their requests.
func (k *ApacheKafka) Tool(ctx context.Context, class string, args ...string) ([]byte, error) {
	return exec.CommandContext(ctx, k.jvm.java, k.jvm.args(class, args...)...).CombinedOutput()
}

// answers returns nil once the broker has registered with its controller, which is itself or one of its cluster.
func (k *ApacheKafka) answers(ctx context.Context) error {
	options := []kgo.Opt{kgo.SeedBrokers(k.Addr)}
	if g := k.node.guarded; g != nil {
		options = []kgo.Opt{kgo.SeedBrokers(k.Admin), g.Login}
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	resp, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
	if err == nil && len(resp.Brokers) == 0 {
		err = errors.New("the broker has not registered yet")
	}
	return err
}

// A jvm runs classes from the broker's jars on the files in dir, with at most that much heap.
type jvm struct{ java, lib, dir, heap string }

func (j jvm) properties() string { return filepath.Join(j.dir, "server.properties") }

func (j jvm) args(class string, args ...string) []string {
	return append([]string{
		// it lives for seconds: a fast start matters more than fast code
		"-Xmx" + j.heap, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"-Dlog4j2.configurationFile=" + filepath.Join(j.dir, "log4j2.properties"),
		"-cp", filepath.Join(j.lib, "*"), class,
	}, args...)
}

// prepare writes the configuration, choosing ports unless k has them already, and formats the storage if necessary.
func (k *ApacheKafka) prepare(ctx context.Context) error {
	j := k.jvm
	if err := k.node.ports.claim(); err != nil {
		return err
	}
	ports, clusterID := k.node.ports, newClusterID()
	data := filepath.Join(j.dir, "data")
	k.Addr = addr(ports[0])
	properties := serverProperties(data, ports[0], ports[1])
	if plan := k.node.cluster; plan != nil {
		properties, clusterID = plan.properties(data, k.node), plan.id
	}
	if g := k.node.guarded; g != nil {
		k.Admin = addr(ports[2])
		var err error
		if properties, err = g.here(data, ports); err != nil {
			return fmt.Errorf("start %s: %w", apacheKafkaName, err)
		}
	}
	for path, text := range map[string]string{
		j.properties(): properties,
		filepath.Join(j.dir, "log4j2.properties"): log4jConfig,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("start %s: write its configuration: %w", apacheKafkaName, err)
		}
	}
	if _, err := os.Stat(filepath.Join(data, "meta.properties")); err == nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, j.java,
		j.args("kafka.tools.StorageTool", "format", "--cluster-id", clusterID, "--config", j.properties())...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("start %s: format its storage: %w: %s", apacheKafkaName, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// here returns the properties with the ports and folders of this machine in place of the container's. Each of those
// must occur, and nothing else is changed.
func (g Guarded) here(data string, ports kafkaPorts) (string, error) {
	text := g.Properties
	for _, change := range [][2]string{
		{"PROGRAMS://:9092", "PROGRAMS://" + addr(ports[0])},
		{"PROGRAMS://kafka:9092", "PROGRAMS://" + addr(ports[0])},
		{"127.0.0.1:9093", addr(ports[1])},
		{"127.0.0.1:9094", addr(ports[2])},
		{"=/var/lib/kafka/data", "=" + data},
		{":/run/secrets:", ":" + g.Secrets + ":"},
	} {
		if !strings.Contains(text, change[0]) {
			return "", fmt.Errorf("its properties do not have %s, which must become %s here", change[0], change[1])
		}
		text = strings.ReplaceAll(text, change[0], change[1])
	}
	return text, nil
}

// newClusterID returns a random id in Kafka's format. Its first character is a letter, because a dash would be parsed
// as a flag.
func newClusterID() string {
	id := make([]byte, 16)
	rand.Read(id) // never fails
	id[0] &= 0x7f
	return base64.RawURLEncoding.EncodeToString(id)
}

func serverProperties(data string, port, controller int) string {
	return strings.Join([]string{
		"process.roles=broker,controller",
		"node.id=1",
		"controller.quorum.voters=1@" + addr(controller),
		"listeners=PLAINTEXT://" + addr(port) + ",CONTROLLER://" + addr(controller),
		"advertised.listeners=PLAINTEXT://" + addr(port),
		"inter.broker.listener.name=PLAINTEXT",
		"controller.listener.names=CONTROLLER",
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs=" + data,
		"auto.create.topics.enable=false",
		"offsets.topic.replication.factor=1",
		"offsets.topic.num.partitions=1",
		"transaction.state.log.replication.factor=1",
		"transaction.state.log.min.isr=1",
		"transaction.state.log.num.partitions=2",
		"share.coordinator.state.topic.replication.factor=1",
		"share.coordinator.state.topic.min.isr=1",
		"group.initial.rebalance.delay.ms=0",
		"",
	}, "\n")
}

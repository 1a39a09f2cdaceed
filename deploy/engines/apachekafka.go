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

// An ApacheKafka is a running broker of the original, one node that is its own controller.
type ApacheKafka struct {
	Addr string // host:port to bootstrap from
	Pid  int
	// Admin is host:port of the door for the superuser of a broker with rights.
	Admin string

	jvm     jvm
	guarded *Guarded // nil for a broker without rights
	ports   kafkaPorts
	proc    *process
}

// kafkaPorts are those of the broker, the controller and the superuser; 0 for one that is to be chosen.
type kafkaPorts [3]int

// A Guarded broker is one with logins and rights, as it is shipped.
type Guarded struct {
	// Properties of the broker, as in deploy/docker/kafka/server.properties, of which
	// ports and folders are changed for those of this machine.
	Properties string
	// Secrets is the folder that the broker reads instead of /run/secrets.
	Secrets string
	// Login is of who asks whether the broker is there, at the door for the superuser.
	Login kgo.Opt
}

// log4jConfig is written beside the broker's configuration.
//
//go:embed kafka/log4j2.properties
var log4jConfig string

// ApacheKafkaAvailable says in one sentence what StartApacheKafka would miss on this machine, or nothing.
func ApacheKafkaAvailable() error {
	_, _, err := apacheKafkaFiles()
	return err
}

// apacheKafkaFiles are the java program and the folder of the broker's jars.
func apacheKafkaFiles() (java, lib string, err error) {
	if java, err = exec.LookPath("java"); err != nil {
		return "", "", fmt.Errorf("find %s: there is no java in PATH: install a Java runtime, version 17 or later", apacheKafkaName)
	}
	if lib, err = enginesDir(filepath.Join("kafka", "lib"), "kafka"); err != nil {
		return "", "", err
	}
	if jars, _ := filepath.Glob(filepath.Join(lib, "kafka_2.13-*.jar")); len(jars) != 1 {
		return "", "", fmt.Errorf("find %s: folder %s holds %d jars of the broker instead of one: empty it and run `make kafka`", apacheKafkaName, lib, len(jars))
	}
	return java, lib, nil
}

// StartApacheKafka starts a broker with its data in dir on a free port. Topics are never created by being asked for. It
// returns when the broker answers, which takes some seconds.
func StartApacheKafka(ctx context.Context, dir string) (*ApacheKafka, error) {
	return startApacheKafka(ctx, dir, nil, kafkaPorts{})
}

// StartGuardedApacheKafka is StartApacheKafka for a broker with logins and rights.
func StartGuardedApacheKafka(ctx context.Context, dir string, g Guarded) (*ApacheKafka, error) {
	return startApacheKafka(ctx, dir, &g, kafkaPorts{})
}

func startApacheKafka(ctx context.Context, dir string, g *Guarded, ports kafkaPorts) (*ApacheKafka, error) {
	java, lib, err := apacheKafkaFiles()
	if err != nil {
		return nil, err
	}
	dir, lock, err := lockDir(ctx, apacheKafkaName, dir)
	if err != nil {
		return nil, err
	}
	j := jvm{java: java, lib: lib, dir: dir}
	k := &ApacheKafka{jvm: j, guarded: g, ports: ports}
	if err := j.prepare(ctx, k, g); err != nil {
		lock.Close()
		return nil, err
	}
	asks := []kgo.Opt{kgo.SeedBrokers(k.Addr)}
	if g != nil {
		asks = []kgo.Opt{kgo.SeedBrokers(k.Admin), g.Login}
	}
	k.proc, err = launch(apacheKafkaName, dir, lock, childSpec{
		Kind: wardenKind, Path: java, Dir: dir,
		Args: append([]string{java}, j.args("kafka.Kafka", j.properties())...),
		Stop: []stopStep{{int(syscall.SIGTERM), 20 * time.Second}},
	})
	if err != nil {
		return nil, err
	}
	k.Pid = k.proc.pid
	if err := k.proc.waitReady(ctx, func(ctx context.Context) error { return answers(ctx, asks) }); err != nil {
		return nil, err
	}
	return k, nil
}

// Close stops the broker in good order and waits until it is gone.
func (k *ApacheKafka) Close() error { return k.proc.stop() }

// Kill ends the broker by SIGKILL and waits until it is gone.
func (k *ApacheKafka) Kill() { k.proc.kill() }

// Restart starts the broker again at its addresses, on the data that it has. One that still runs is killed before.
func (k *ApacheKafka) Restart(ctx context.Context) error {
	k.Kill()
	again, err := startApacheKafka(ctx, k.jvm.dir, k.guarded, k.ports)
	if err == nil {
		*k = *again
	}
	return err
}

// Tool runs one of Kafka's own tools, by its class, and gives all that it says. They end with 0 also where the broker
// refuses them.
func (k *ApacheKafka) Tool(ctx context.Context, class string, args ...string) ([]byte, error) {
	return exec.CommandContext(ctx, k.jvm.java, k.jvm.args(class, args...)...).CombinedOutput()
}

// answers is nil once the broker has told its controller, which is itself, that it is there.
func answers(ctx context.Context, options []kgo.Opt) error {
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

// A jvm runs classes of the broker's jars on the files in dir.
type jvm struct{ java, lib, dir string }

func (j jvm) properties() string { return filepath.Join(j.dir, "server.properties") }

func (j jvm) args(class string, args ...string) []string {
	return append([]string{
		"-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", // it lives for seconds: quick to start beats quick to run
		"-Dlog4j2.configurationFile=" + filepath.Join(j.dir, "log4j2.properties"),
		"-cp", filepath.Join(j.lib, "*"), class,
	}, args...)
}

// prepare writes the configuration, with ports that k gets or has, and formats the storage where that has not been done.
func (j jvm) prepare(ctx context.Context, k *ApacheKafka, g *Guarded) error {
	for i := range k.ports {
		var err error
		if k.ports[i], err = claimPort(apacheKafkaName, k.ports[i]); err != nil {
			return err
		}
	}
	ports := k.ports
	data := filepath.Join(j.dir, "data")
	k.Addr = addr(ports[0])
	properties := serverProperties(data, ports[0], ports[1])
	if g != nil {
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
	cmd := exec.CommandContext(ctx, j.java, j.args("kafka.tools.StorageTool", "format", "--cluster-id", newClusterID(), "--config", j.properties())...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("start %s: format its storage: %w: %s", apacheKafkaName, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// here gives the properties with the ports and folders of this machine: those of the container, each of which must be
// there, are changed, and nothing else.
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
			return "", fmt.Errorf("its properties do not say %s, which is to be %s here", change[0], change[1])
		}
		text = strings.ReplaceAll(text, change[0], change[1])
	}
	return text, nil
}

// newClusterID is a random id as Kafka writes it. Its first character is a letter: a dash would be taken for a flag.
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

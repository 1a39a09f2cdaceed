package local

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

	proc *process
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
	java, lib, err := apacheKafkaFiles()
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("start %s: %w", apacheKafkaName, err)
	}
	lock, err := lockDir(ctx, apacheKafkaName, dir)
	if err != nil {
		return nil, err
	}
	j := jvm{java: java, lib: lib, dir: dir}
	port, err := j.prepare(ctx)
	if err != nil {
		lock.Close()
		return nil, err
	}
	k := &ApacheKafka{Addr: addr(port)}
	k.proc, err = launch(apacheKafkaName, dir, lock, childSpec{
		Kind: wardenKind, Path: java, Dir: dir,
		Args: append([]string{java}, j.args("kafka.Kafka", j.properties())...),
		Stop: []stopStep{{int(syscall.SIGTERM), 20 * time.Second}},
	})
	if err != nil {
		return nil, err
	}
	k.Pid = k.proc.pid
	if err := k.proc.waitReady(ctx, k.answers); err != nil {
		return nil, err
	}
	return k, nil
}

// Close stops the broker in good order and waits until it is gone.
func (k *ApacheKafka) Close() error { return k.proc.stop() }

// Kill ends the broker by SIGKILL and waits until it is gone.
func (k *ApacheKafka) Kill() { k.proc.kill() }

// answers is nil once the broker has told its controller, which is itself, that it is there.
func (k *ApacheKafka) answers(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Addr))
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
		"-Xmx512m", "-XX:TieredStopAtLevel=1", // it lives for seconds: quick to start beats quick to run
		"-Dlog4j2.configurationFile=" + filepath.Join(j.dir, "log4j2.properties"),
		"-cp", filepath.Join(j.lib, "*"), class,
	}, args...)
}

// prepare writes the configuration and formats the storage where that has not been done. It returns the broker's port.
func (j jvm) prepare(ctx context.Context) (int, error) {
	port, err := claimPort(apacheKafkaName, 0)
	if err != nil {
		return 0, err
	}
	controller, err := claimPort(apacheKafkaName, 0)
	if err != nil {
		return 0, err
	}
	data := filepath.Join(j.dir, "data")
	for path, text := range map[string]string{
		j.properties(): serverProperties(data, port, controller),
		filepath.Join(j.dir, "log4j2.properties"): log4jConfig,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return 0, fmt.Errorf("start %s: write its configuration: %w", apacheKafkaName, err)
		}
	}
	if _, err := os.Stat(filepath.Join(data, "meta.properties")); err == nil {
		return port, nil
	}
	cmd := exec.CommandContext(ctx, j.java, j.args("kafka.tools.StorageTool", "format", "--cluster-id", newClusterID(), "--config", j.properties())...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("start %s: format its storage: %w: %s", apacheKafkaName, err, strings.TrimSpace(string(out)))
	}
	return port, nil
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

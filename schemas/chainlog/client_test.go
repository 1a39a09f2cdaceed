package chainlog

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/certs/certstest"
)

// TestOwnCertificates checks that brokers with a private authority that require a client certificate accept a client
// that has the files, and reject one without them.
func TestOwnCertificates(t *testing.T) {
	t.Parallel()
	authority := certstest.New(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(authority.Server()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	connect := func(files certs.Files) error {
		c := DefaultConfig()
		c.Brokers, c.TLS, c.Certificates = cluster.ListenAddrs(), true, files
		if err := c.Validate(); err != nil {
			return err
		}
		client, err := kgo.NewClient(c.Options()...)
		if err != nil {
			return err
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return client.Ping(ctx)
	}
	if err := connect(authority.Files()); err != nil {
		t.Errorf("with the files: %v", err)
	}
	if err := connect(certs.Files{}); err == nil ||
		!strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("without the files: %v", err)
	}
	if err := connect(certs.Files{CA: authority.Files().CA}); err == nil {
		t.Error("a client without a certificate gets a response")
	}
	if err := connect(certs.Files{CA: authority.Files().CA, Cert: "gone", Key: "gone"}); err == nil ||
		!strings.Contains(err.Error(), "kafka.certificates: read the client's certificate gone") {
		t.Errorf("missing files: %v", err)
	}
}

// EndTransaction waits for the partitions of each topic, because that of franz-go overlooks a topic whose partitions the
// client has not stored.
func TestEndTransaction(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "first", "second"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.TransactionalID("commit"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	produce := func(topic string) {
		t.Helper()
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}

	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce("first")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = EndTransaction(ctx, client, kgo.TryCommit, "first", "second")
	if err == nil || !strings.Contains(err.Error(), "wait for the partitions of second: context deadline exceeded") {
		t.Errorf("a topic of which the client knows no partition: %v", err)
	}
	if epoch := epochOf(t, client); epoch != 0 {
		t.Errorf("the transaction ended: the epoch is %d", epoch)
	}
	produce("second")
	if err := EndTransaction(t.Context(), client, kgo.TryCommit, "first", "second"); err != nil {
		t.Error(err)
	}
	if epoch := epochOf(t, client); epoch != 1 {
		t.Errorf("the epoch is %d after one transaction", epoch)
	}
}

// epochOf returns the epoch of a producer, which the end of a transaction increments.
func epochOf(t *testing.T, client *kgo.Client) int16 {
	t.Helper()
	_, epoch, err := client.ProducerID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return epoch
}

// One broker that responds is enough, although the first one accepts connections and does not respond.
func TestReachBesideASilentBroker(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts connections
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	live, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	dead, closed, up := silent.Addr().String(), "127.0.0.1:1", live.ListenAddrs()[0]
	c := Config{Brokers: []string{dead, closed, up}}
	respond, failed, err := c.Reach(t.Context(), time.Minute)
	if err != nil || !slices.Equal(respond, []string{up}) || !slices.Equal(failed, []string{closed}) {
		t.Errorf("of %v respond %v, and failed %v: %v", c.Brokers, respond, failed, err)
	}
	tracked := c.Tracked()
	copied := tracked
	calls := func(brokers ...string) {
		t.Helper()
		client, err := kgo.NewClient(copied.Options()...)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if seeds := client.OptValue(kgo.SeedBrokers); !slices.Equal(seeds.([]string), brokers) {
			t.Errorf("new clients call %v instead of %v", seeds, brokers)
		}
	}
	calls(dead, closed, up)
	if _, _, err := tracked.Reach(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	calls(up, closed)
	live.Close()
	if _, _, err := tracked.Reach(t.Context(), 100*time.Millisecond); err == nil {
		t.Error("a closed broker responds")
	}
	calls(dead, closed, up)
	_, _, err = Config{Brokers: []string{dead}}.Reach(t.Context(), 100*time.Millisecond)
	if !errors.Is(err, context.DeadlineExceeded) ||
		!strings.HasPrefix(err.Error(), "reach Kafka at "+dead+" (kafka.brokers): no response within 100ms") {
		t.Errorf("of a silent broker only: %v", err)
	}
}

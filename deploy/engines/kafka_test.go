package engines

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/schemas/chainlog"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const topic = "log"

func TestKafkaRestartKeepsData(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		k, err := StartKafka(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			createTopic(t, k.Addr)
		}
		p := producer(t, k.Addr)
		commit(t, p, fmt.Sprintf("record %d", i))
		p.Close()
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
		if err := k.Close(); err != nil {
			t.Fatalf("second Close: %v", err)
		}
	}
	k := startKafkaFor(t, dir)
	want := []string{"record 0", "record 1", "record 2"}
	if got := committed(t, k.Addr); !slices.Equal(got, want) {
		t.Fatalf("read %q, want %q", got, want)
	}
}

// The broker's process dies twice inside a transaction of the same producer. After each restart exactly what was
// committed must be readable, including what is committed later.
func TestKafkaDiesInsideTransaction(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range 3 {
		broker := startParent(t, "kafka", dir)
		if i == 0 {
			createTopic(t, broker.Addr)
		}
		if got := committed(t, broker.Addr); !slices.Equal(got, want) {
			t.Fatalf("after %d deaths: read %q, want %q", i, got, want)
		}
		p := producer(t, broker.Addr)
		for j := range 2 {
			value := fmt.Sprintf("committed %d.%d", i, j)
			commit(t, p, value)
			want = append(want, value)
		}
		if got := committed(t, broker.Addr); !slices.Equal(got, want) {
			t.Fatalf("after %d deaths and a commit: read %q, want %q", i, got, want)
		}
		begin(t, p, fmt.Sprintf("lost %d", i))
		broker.kill()
		p.CloseAllowingRebalance()
	}
	// A graceful stop in between must not bring the aborted records back either.
	for range 2 {
		k, err := StartKafka(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := committed(t, k.Addr); !slices.Equal(got, want) {
			t.Fatalf("in the end: read %q, want %q", got, want)
		}
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The broker's process dies between the markers of one commit: what is committed in one partition must be committed in
// all, at once and after each further restart, and what the producer commits later must not be lost.
func TestKafkaDiesInsideCommit(t *testing.T) {
	for first := range int32(2) {
		t.Run(fmt.Sprintf("after the marker of partition %d", first), func(t *testing.T) {
			dir := t.TempDir()
			broker := startParent(t, "kafka", dir)
			createTopic(t, broker.Addr)
			p := producer(t, broker.Addr)
			commit(t, p, "whole")
			begin(t, p, "torn")
			if err := p.ProduceSync(t.Context(),
				&kgo.Record{Topic: topic, Partition: 1, Value: []byte("torn")}).FirstErr(); err != nil {
				t.Fatal(err)
			}
			id, epoch, err := p.ProducerID(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			mark(t, broker.Addr, first, id, epoch)
			broker.kill()
			p.CloseAllowingRebalance()

			want := []string{"whole", "torn"}
			for i := range 4 {
				broker := startParent(t, "kafka", dir)
				for part, want := range [][]string{want, want[1:2]} {
					if got := committedIn(t, broker.Addr, int32(part)); !slices.Equal(got, want) {
						t.Fatalf("after %d restarts: partition %d holds %q, want %q", i+1, part, got, want)
					}
				}
				p := producer(t, broker.Addr)
				value := fmt.Sprintf("later %d", i)
				commit(t, p, value)
				want = append(want, value)
				begin(t, p, "lost")
				broker.kill()
				p.CloseAllowingRebalance()
			}
		})
	}
}

// heal distinguishes transactions by the producer's epoch, which must therefore rise at each end.
func TestKafkaRaisesEpoch(t *testing.T) {
	k := startKafkaFor(t, t.TempDir())
	createTopic(t, k.Addr)
	p := producer(t, k.Addr)
	last := int16(-1)
	for _, how := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		begin(t, p, "")
		_, epoch, err := p.ProducerID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if epoch <= last {
			t.Fatalf("epoch %d after epoch %d", epoch, last)
		}
		last = epoch
		if err := chainlog.EndTransaction(t.Context(), p, how, topic); err != nil {
			t.Fatal(err)
		}
	}
}

// A broker that dies after an earlier one ended gracefully leaves the same faults as a first one.
func TestKafkaDiesAfterAGracefulStop(t *testing.T) {
	dir := t.TempDir()
	first := startKafkaFor(t, dir)
	createTopic(t, first.Addr)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	broker := startParent(t, "kafka", dir)
	p := producer(t, broker.Addr)
	commit(t, p, "kept")
	begin(t, p, "lost")
	broker.kill()
	p.CloseAllowingRebalance()
	k := startKafkaFor(t, dir)
	p = producer(t, k.Addr)
	commit(t, p, "later")
	if got, want := committed(t, k.Addr), []string{"kept", "later"}; !slices.Equal(got, want) {
		t.Fatalf("read %q, want %q", got, want)
	}
}

// If a transaction is open when the broker is stopped gracefully, the broker continues it, and heal must not abort it.
func TestKafkaStopInsideTransaction(t *testing.T) {
	k := startKafkaFor(t, t.TempDir())
	createTopic(t, k.Addr)
	p := producer(t, k.Addr)
	begin(t, p, "across a restart")
	if err := k.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := chainlog.EndTransaction(t.Context(), p, kgo.TryCommit, topic); err != nil {
		t.Fatal(err)
	}
	if got, want := committed(t, k.Addr), []string{"across a restart"}; !slices.Equal(got, want) {
		t.Fatalf("read %q, want %q", got, want)
	}
}

// A program that does not use claims takes a port after it was chosen: another one is chosen, a few times at most.
func TestKafkaPortTakenMeanwhile(t *testing.T) {
	quicker := 0
	listen = func(network, address string) (net.Listener, error) {
		if quicker > 0 {
			quicker--
			l, err := net.Listen(network, address)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { l.Close() })
		}
		return net.Listen(network, address)
	}
	defer func() { listen = net.Listen }()
	quicker = portsTaken
	k, err := StartKafka(t.Context(), t.TempDir())
	if err != nil || quicker > 0 {
		t.Fatalf("%d ports more would have been taken: %v", quicker, err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	quicker = portsTaken + 1
	if _, err = StartKafka(t.Context(), t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), "cannot be listened on") {
		t.Errorf("every port was taken, and it says %v", err)
	}
	quicker = 1
	if err := k.Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be listened on") {
		t.Errorf("its own port was in use, and the error is %v", err)
	}
}

func TestKafkaRefuses(t *testing.T) {
	t.Run("a port in use", func(t *testing.T) {
		k := startKafkaFor(t, t.TempDir())
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
		use(t, k.Addr)
		wantPortError(t, k.Restart(t.Context()), k.port)
	})
	t.Run("a folder in use", func(t *testing.T) {
		dir := t.TempDir()
		startKafkaFor(t, dir)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := StartKafka(ctx, dir)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("in use by another process (pid %d)", os.Getpid())) {
			t.Fatalf("a second broker on the same folder: %v", err)
		}
	})
	t.Run("a topic that was not created", func(t *testing.T) {
		k := startKafkaFor(t, t.TempDir())
		client, err := kgo.NewClient(kgo.SeedBrokers(k.Addr), kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(0))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		err = client.ProduceSync(t.Context(), &kgo.Record{Topic: "typo"}).FirstErr()
		if err == nil || !strings.Contains(err.Error(), kerr.UnknownTopicOrPartition.Message) {
			t.Fatalf("produced to an unknown topic: %v", err)
		}
	})
}

func startKafkaFor(t *testing.T, dir string) *Kafka {
	t.Helper()
	k, err := StartKafka(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

func createTopic(t *testing.T, addr string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 2, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
}

// producer returns the transactional producer of the topic's first partition, always with the same id.
func producer(t *testing.T, addr string) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID("writer"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func begin(t *testing.T, p *kgo.Client, value string) {
	t.Helper()
	if err := p.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := p.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// mark writes the commit marker of one partition, as a broker does while it ends a transaction.
func mark(t *testing.T, addr string, part int32, producer int64, epoch int16) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	resp, err := kadm.NewClient(client).WriteTxnMarkers(t.Context(), kadm.TxnMarkers{
		ProducerID: producer, ProducerEpoch: epoch, Commit: true,
		Topics: kadm.TopicsSet{topic: {part: {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	resp.EachPartition(func(r kadm.TxnMarkersPartitionResponse) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	})
}

func commit(t *testing.T, p *kgo.Client, value string) {
	t.Helper()
	begin(t, p, value)
	if err := chainlog.EndTransaction(t.Context(), p, kgo.TryCommit, topic); err != nil {
		t.Fatal(err)
	}
}

// committed reads the topic's first partition as a careful consumer does: read_committed, up to the last stable offset.
// That must be the end of the log, because a transaction that never ends would block every reader.
func committed(t *testing.T, addr string) []string {
	t.Helper()
	return committedIn(t, addr, 0)
}

func committedIn(t *testing.T, addr string, part int32) []string {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {part: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, part)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var values []string
	for next := int64(0); next < end.Offset; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("read up to %d of %d: %v", next, end.Offset, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			if !r.Attrs.IsControl() {
				values = append(values, string(r.Value))
			}
		})
	}
	return values
}

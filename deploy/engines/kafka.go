package engines

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

const kafkaName = "Kafka"

// A Kafka is a running broker in this process (franz-go's kfake), with its data on disk and synced: acknowledged
// records survive the death of the process. Requests never create topics automatically. A record batch above 1 MB is
// rejected, as it is by Kafka's default.
type Kafka struct {
	Addr string // host:port to bootstrap from

	dir   string
	port  int
	close func() error
}

// StartKafka starts the broker with its data in dir on a free port. It binds the port at once, to detect a conflict,
// but accepts clients only after it has ended the transactions that a crashed predecessor left open (see heal).
func StartKafka(ctx context.Context, dir string) (*Kafka, error) { return startKafka(ctx, dir, 0) }

// Restart closes the broker, if it still runs, and starts it again at its address and with its data.
func (k *Kafka) Restart(ctx context.Context) error {
	if err := k.Close(); err != nil {
		return err
	}
	again, err := startKafka(ctx, k.dir, k.port)
	if err == nil {
		*k = *again
	}
	return err
}

func startKafka(ctx context.Context, dir string, port int) (*Kafka, error) {
	dir, lock, err := lockDir(ctx, kafkaName, dir)
	if err != nil {
		return nil, err
	}
	cluster, port, err := healedCluster(ctx, dir, port)
	if err != nil {
		lock.Close()
		return nil, err
	}
	k := &Kafka{Addr: addr(port), dir: dir, port: port}
	k.close = sync.OnceValue(func() error {
		cluster.Close()
		return lock.Close()
	})
	return k, nil
}

// healedCluster starts the broker, heals its log and opens it to clients. If healing completed a commit, the broker is
// restarted; then there is nothing left to heal. It listens on the given port, or on a free one if that is 0.
func healedCluster(ctx context.Context, dir string, given int) (*kfake.Cluster, int, error) {
	port, err := claimPort(kafkaName, given)
	if err != nil {
		return nil, 0, err
	}
	for taken := 0; ; {
		cluster, door, err := openCluster(dir, port)
		if given == 0 && errors.Is(err, syscall.EADDRINUSE) && taken < portsTaken {
			// A program that does not use claims was faster.
			taken++
			if port, err = claimPort(kafkaName, 0); err != nil {
				return nil, 0, err
			}
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("start %s on %s: %w", kafkaName, dir, err)
		}
		again, err := heal(ctx, addr(port), door.dial)
		if err == nil && !again {
			door.Open()
			return cluster, port, nil
		}
		cluster.Close()
		if err == nil {
			err = forgetSnapshots(dir)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("start %s: end the transactions that its predecessor left open: %w", kafkaName, err)
		}
	}
}

// portsTaken is how many times a chosen port may be taken by another program before it is bound.
const portsTaken = 5

// listen is net.Listen; tests replace it with one that is too late.
var listen = net.Listen

// openCluster starts the broker behind a closed gate.
func openCluster(dir string, port int) (*kfake.Cluster, *gate, error) {
	var door *gate
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.Ports(port), kfake.ClusterID("navlog"),
		kfake.DataDir(dataDir(dir)), kfake.SyncWrites(),
		kfake.ListenFn(func(network, address string) (net.Listener, error) {
			l, err := listen(network, address)
			if err != nil {
				return nil, portError(kafkaName, port, err)
			}
			door = newGate(l)
			return door, nil
		}),
	)
	if err != nil && door != nil {
		door.Close()
	}
	return cluster, door, err
}

func dataDir(dir string) string { return filepath.Join(dir, "data") }

// forgetSnapshots removes a stopped broker's snapshots of its partitions, so that it reads them again from the log.
func forgetSnapshots(dir string) error {
	return filepath.WalkDir(dataDir(dir), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "snapshot.json" {
			err = os.Remove(path)
		}
		return err
	})
}

// Close writes the broker's data and stops it. Open transactions stay open, as they do when a broker restarts.
func (k *Kafka) Close() error { return k.close() }

// A gate is a listener that keeps clients in the backlog until it is opened. Until then it accepts only connections
// made with dial.
type gate struct {
	net.Listener
	inside    chan net.Conn
	opened    chan struct{}
	closed    chan struct{}
	closeOnce sync.Once
}

func newGate(l net.Listener) *gate {
	return &gate{Listener: l, inside: make(chan net.Conn), opened: make(chan struct{}), closed: make(chan struct{})}
}

func (g *gate) Accept() (net.Conn, error) {
	select {
	case conn := <-g.inside:
		return conn, nil
	case <-g.opened:
		return g.Listener.Accept()
	case <-g.closed:
		return nil, net.ErrClosed
	}
}

// Open lets all clients in. It is called once.
func (g *gate) Open() { close(g.opened) }

func (g *gate) Close() error {
	g.closeOnce.Do(func() { close(g.closed) })
	return g.Listener.Close()
}

// dial connects to the broker past the gate. Its signature is kgo's.
func (g *gate) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case g.inside <- theirs:
		return ours, nil
	case <-g.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

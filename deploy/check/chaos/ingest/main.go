// Command ingest is `make chaos-ingest`: it tries to make ingest lose or duplicate a log, and reports whether it did.
//
// A seed determines what happens (see PlanOf). Only the order of things that happen at the same time is left to chance.
// Of every three seeds, one has an endpoint that lies about finality and the head, one has an endpoint that lies about
// the head and the headers of blocks, and one has no liar. A liar is accompanied by two honest endpoints, and
// chain.agreement is 2.
//
//	script ──────▶ anvil: traffic, empty blocks, reorganisations, branches that come back
//	                 │
//	           fault proxies, one per endpoint, each with faults, rates and draws of its own
//	                 │
//	              ingest, a process of its own ──▶ Kafka (embedded or Apache)
//	                 │                                │
//	deaths ──▶ SIGKILL at a step of a transaction     │
//	           or at some moment; SIGSTOP and a rival │
//	                                                  ▼
//	anvil, by block hash, past the proxies ──────▶ oracle
//
// Processes that die are restarted. At the end of the script the proxies become honest, and ingest must reach the head
// by itself; then the oracle compares. It shares no code with ingest: it folds the raw records of the topics, and reads
// every branch of the chain, before it is orphaned, from block receipts and from logs by block hash.
//
//	go run ./deploy/check/chaos/ingest --seeds 20 --first 1 --kafka embedded
//
// The last line of output is `seeds=N cases=M lost=0 doubled=0`, and the exit code is 1 if a seed failed. A case is one
// thing that was done to ingest: a fault, a death, a reorganisation.
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
	Child()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func run() error {
	var o Options
	flag.IntVar(&o.Seeds, "seeds", 20, "how many seeds to try")
	flag.Uint64Var(&o.First, "first", 1, "the first seed; the others follow it")
	flag.StringVar(&o.Kafka, "kafka", "embedded", "embedded, or apache for Apache Kafka itself")
	flag.IntVar(&o.Workers, "workers", 2, "seeds at the same time")
	flag.BoolVar(&o.JSON, "json", false, "write JSON, one object a line")
	flag.Parse()
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unknown arguments: %q", flag.Args())
	case o.Seeds < 1 || o.Workers < 1:
		return fmt.Errorf("--seeds is %d and --workers %d: both must be 1 or more", o.Seeds, o.Workers)
	case o.Kafka != "embedded" && o.Kafka != "apache":
		return fmt.Errorf("--kafka is %q and must be embedded or apache", o.Kafka)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := Run(ctx, o, os.Stdout)
	if err == nil && !ok {
		os.Exit(1)
	}
	return err
}

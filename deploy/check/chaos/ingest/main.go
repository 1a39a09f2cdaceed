// Command ingest (of package chaos) tries ingest with random chains, faults and deaths:
//
//	go run ./deploy/check/chaos/ingest --seeds 20 --first 1 --kafka embedded
//
// It ends with one line, `seeds=N cases=M lost=0 doubled=0`, and with exit code 1 where a seed failed. A case is one
// thing that was done to ingest: a fault, a death, a reorganisation.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/navlog/navlog/deploy/check/chaos"
)

func main() {
	chaos.Child()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func run() error {
	var o chaos.Options
	flag.IntVar(&o.Seeds, "seeds", 20, "how many seeds to try")
	flag.Uint64Var(&o.First, "first", 1, "the first seed; the others follow it")
	flag.StringVar(&o.Kafka, "kafka", "embedded", "embedded, or apache for Apache Kafka itself")
	flag.IntVar(&o.Workers, "workers", 2, "seeds at the same time")
	flag.BoolVar(&o.JSON, "json", false, "write JSON, one object a line")
	flag.Parse()
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("there are arguments that it does not know: %q", flag.Args())
	case o.Seeds < 1 || o.Workers < 1:
		return fmt.Errorf("--seeds is %d and --workers %d: both must be 1 or more", o.Seeds, o.Workers)
	case o.Kafka != "embedded" && o.Kafka != "apache":
		return fmt.Errorf("--kafka is %q and must be embedded or apache", o.Kafka)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := chaos.Run(ctx, o, os.Stdout)
	if err == nil && !ok {
		os.Exit(1)
	}
	return err
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/deploy/faultproxy"
)

// faultproxyCmd serves package faultproxy, for tests of indexers.
type faultproxyCmd struct {
	Seed        uint64        `default:"1" help:"Seed of the faults: the same seed and requests get the same faults."`
	Upstream    []string      `required:"" env:"NAVLOG_FAULTPROXY_UPSTREAM" secret:"NAVLOG_FAULTPROXY_UPSTREAM" placeholder:"URL" sep:"none" help:"An honest node, http or https. Several are backends behind one address."`
	Listen      string        `default:"127.0.0.1:0" help:"Address to serve on; port 0 takes a free one."`
	Faults      []string      `default:"all" help:"Faults to draw from, comma-separated: ${faults}. all: every fault except false responses and those of samples. lies: false responses (${lies}); with one endpoint, an indexer cannot detect most of them. samples: ${samples}; of the call that measures NAV."`
	Rate        float64       `default:"0.05" help:"Probability that a call gets a fault, 0 to 1."`
	Behind      uint64        `default:"20" help:"Maximum number of blocks that a stale backend is behind."`
	Ahead       uint64        `default:"1000" help:"Maximum number of blocks that a nonexistent block is above the head."`
	RangeLimit  uint64        `default:"1000" help:"Maximum blocks in a range, for the fault that limits ranges."`
	ResultLimit int           `default:"10000" help:"Maximum logs in a response, for the fault that limits responses."`
	PerSecond   int           `default:"0" help:"Maximum calls a second, where each call of a batch counts; 0 for no limit."`
	Pause       time.Duration `default:"200ms" help:"Pause between the pieces of a slow body."`
	JSON        bool          `help:"Print one JSON object a line: the address first, each injected fault, the counts at the end."`
}

// Help is what `navlog-dev faultproxy --help` adds.
func (faultproxyCmd) Help() string {
	return "For tests only: it gives false responses on purpose. It prints each injected fault as one line, without a " +
		"time, so that two equal runs print equal lines."
}

func (cmd faultproxyCmd) Run(ctx context.Context, s *cli.Streams) error {
	c := faultproxy.Config{
		Seed: cmd.Seed, Upstreams: cmd.Upstream, Rate: cmd.Rate, Behind: cmd.Behind, Ahead: cmd.Ahead,
		RangeLimit: cmd.RangeLimit, ResultLimit: cmd.ResultLimit, CallsPerSecond: cmd.PerSecond, Pause: cmd.Pause,
	}
	for _, name := range cmd.Faults {
		switch name {
		case "all":
			c.Faults = append(c.Faults, faultproxy.All()...)
		case "lies":
			c.Faults = append(c.Faults, faultproxy.FalseResponses()...)
		case "samples":
			c.Faults = append(c.Faults, faultproxy.Samples()...)
		default:
			c.Faults = append(c.Faults, faultproxy.Fault(name))
		}
	}
	proxy, err := faultproxy.New(c, func(i faultproxy.Injection) { cmd.print(s, i.String(), i) })
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cmd.Listen)
	if err != nil {
		return fmt.Errorf("listen on --listen: %w; choose another address", err)
	}
	url := "http://" + listener.Addr().String()
	cmd.print(s, fmt.Sprintf("listening on %s, seed %d", url, cmd.Seed),
		map[string]any{"listening": url, "seed": cmd.Seed})
	err = proxy.Serve(ctx, listener)
	counts := proxy.Counts()
	text := "injected"
	for _, f := range slices.Sorted(maps.Keys(counts)) {
		text += fmt.Sprintf(" %s=%d", f, counts[f])
	}
	cmd.print(s, text, map[string]any{"injected": counts})
	return err
}

// print writes one line. It ignores errors: a closed reader is no reason to stop serving.
func (cmd faultproxyCmd) print(s *cli.Streams, text string, object any) {
	if cmd.JSON {
		_ = json.NewEncoder(s.Out).Encode(object)
		return
	}
	_, _ = fmt.Fprintln(s.Out, text)
}

// faultNames lists faults for the help text.
func faultNames(faults []faultproxy.Fault) (names string) {
	for i, f := range faults {
		if i > 0 {
			names += ", "
		}
		names += string(f)
	}
	return names
}

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/navlog/navlog/deploy/bench"
)

// The bounds of the figures.
const (
	mostRatio      = 1.6 // navlog's time as a multiple of plain HTTP's
	leastSpeedup   = 15  // navlog's rate as a multiple of Ponder's
	mostIngestPeak = 256 // MiB
	mostHeadDelay  = 250 // ms, p99
	mostCalls      = 120 // for a sparse history of a million blocks
	leastSparse    = 200_000
	mostFastLag    = 2 // blocks, p99
)

const mib = 1 << 20

// print writes the figures for human readers.
func (f *figures) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	row := func(name, format string, a ...any) { fmt.Fprintf(w, "  %s\t%s\n", name, fmt.Sprintf(format, a...)) }
	if d := f.Dense; d != nil {
		fmt.Fprintf(w, "dense: %d logs in %d blocks\n", d.Logs, d.Blocks)
		row("chain", "built in %.1f s, node's peak %d MiB", d.BuildSeconds, d.NodePeak/mib)
		row("plain HTTP", "%.2f s, %.0f logs/s, %d ranges, %.0f MiB (runs: %.2f)", d.Plain, float64(d.Logs)/d.Plain, d.Ranges, float64(d.PlainBytes)/mib, d.PlainSeconds)
		row("ranges", "%d give each block once; navlog asked for %d more, again or in vain", d.Ranges, d.Again)
		row("navlog", "%.2f s, %.0f logs/s; all in the log after %.2f s", d.Seconds, float64(d.Logs)/d.Seconds, d.Ingested)
		row("CPU seconds", "%s", each(d.CPU, "%s %.1f"))
		row("ratio to plain HTTP", "%.2f", d.Ratio)
		row("peak of navlog ingest", "%.0f MiB", float64(d.IngestPeak)/mib)
		row("calls of the node", "%s", d.Traffic)
		if p := d.Ponder; p != nil && p.Why != "" {
			row("Ponder", "not measured: %s", p.Why)
		} else if p != nil {
			row("Ponder", "%.1f s, %.0f logs/s; navlog is %.1f times as fast", p.Seconds, float64(d.Logs)/p.Seconds, d.speedup())
		}
	}
	if r := f.Receipts; r != nil {
		fmt.Fprintf(w, "receipts: one amount changed among %d logs\n", r.Logs)
		row("proven", "%d of %d blocks in %.1f s, %.0f logs/s", r.Proven, r.Chosen, r.Seconds, float64(r.Logs)/r.Seconds)
		row("found in block", "%d: %s", r.Block, r.Why)
	}
	if s := f.Sparse; s != nil {
		fmt.Fprintf(w, "sparse: %d logs in %d blocks\n", s.Logs, s.Blocks)
		row("chain", "built in %.1f s, node's peak %d MiB", s.Build, s.NodePeak/mib)
		row("navlog", "all in the log after %.2f s, %.0f blocks/s; in an answer after %.2f s", s.Ingested, float64(s.Blocks)/s.Ingested, s.Seconds)
		row("headers", "%d asked for, %.0f headers/s, %d spared", s.Headers, float64(s.Headers)/s.Ingested, s.Spared)
		row("calls of the node", "%s", s.Traffic)
		row("of the history", "%d, and %.0f for a million blocks; the window costs %d headers beside that", s.History, s.Calls, window)
	}
	if h := f.Head; h != nil {
		fmt.Fprintf(w, "head: %d blocks of %d logs; navlog learns of a block %s\n", h.Blocks, h.LogsPerBlock, h.Learns)
		row("announced to visible", "p50 %.0f ms, p90 %.0f ms, p99 %.0f ms, max %.0f ms", h.P50, h.P90, h.P99, h.Max)
	}
	if x := f.Fast; x != nil {
		fmt.Fprintf(w, "fast: %d blocks of %d logs, one each %.0f ms; navlog learns of a block %s\n", x.Blocks, x.LogsPerBlock, x.Interval, x.Learns)
		row("behind the chain", "p50 %.2f blocks, p99 %.2f, max %.2f", x.P50, x.P99, x.Max)
	}
}

func (t traffic) String() string {
	return fmt.Sprintf("%s; %d requests, %.1f MiB sent, %.1f MiB received", each(t.Calls, "%s %d"), t.Bodies, float64(t.Sent)/mib, float64(t.Got)/mib)
}

// each lists the figures with their names, sorted by name.
func each[V any](figures map[string]V, format string) string {
	list := make([]string, 0, len(figures))
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		list = append(list, fmt.Sprintf(format, name, figures[name]))
	}
	return strings.Join(list, ", ")
}

// speedup returns navlog's rate as a multiple of Ponder's, or 0 if Ponder could not be measured.
func (d *denseResult) speedup() float64 { return d.Ponder.Seconds / d.Seconds }

// bars returns the figures that have a bound.
func (f *figures) bars() (bars []bench.Bar) {
	if d := f.Dense; d != nil {
		bars = append(bars,
			bench.Bar{Name: "wall-ratio", Value: d.Ratio, Bound: mostRatio},
			bench.Bar{Name: "ingest-peak-mib", Value: float64(d.IngestPeak) / mib, Bound: mostIngestPeak})
		if d.Ponder != nil {
			bars = append(bars, bench.Bar{Name: "ponder-speedup", Value: d.speedup(), Bound: leastSpeedup, Least: true})
		}
	}
	if r := f.Receipts; r != nil {
		bars = append(bars, bench.Bar{Name: "changed-amounts-found", Value: float64(r.Found), Bound: 1, Least: true})
	}
	if s := f.Sparse; s != nil {
		bars = append(bars,
			bench.Bar{Name: "calls-per-million-sparse-blocks", Value: s.Calls, Bound: mostCalls},
			bench.Bar{Name: "sparse-blocks-s", Value: float64(s.Blocks) / s.Ingested, Bound: leastSparse, Least: true})
	}
	if h := f.Head; h != nil {
		bars = append(bars, bench.Bar{Name: "visible-p99-ms", Value: h.P99, Bound: mostHeadDelay})
	}
	if x := f.Fast; x != nil {
		bars = append(bars, bench.Bar{Name: "fast-chain-lag-blocks", Value: x.P99, Bound: mostFastLag})
	}
	return bars
}

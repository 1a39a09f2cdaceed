// Package bench holds what the benchmarks in the folders below it share, and prints their results. A benchmark is a
// program of its own (`make bench-ingest` and so on), never a test: a timing affects nothing but its own bar.
package bench

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// Main parses the command line into options, which may include the parts of the benchmark to run, and runs the
// benchmark until it finishes or is interrupted.
func Main(name, description string, options any, parts []string, run func(context.Context) error) {
	kong.Parse(options, kong.Name(name), kong.Description(description), kong.Vars{"parts": strings.Join(parts, ",")})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// A Part measures one part of a benchmark.
type Part func(context.Context) ([]Bar, error)

// Run runs the parts whose names are in only, in the order of names, until one fails, and prints what the others
// measured.
func Run(ctx context.Context, names, only []string, parts map[string]Part) (err error) {
	var bars []Bar
	for _, name := range names {
		if !slices.Contains(only, name) {
			continue
		}
		more, failed := parts[name](ctx)
		if failed != nil {
			err = fmt.Errorf("%s: %w", name, failed)
			break
		}
		bars = append(bars, more...)
	}
	fmt.Println()
	Print(bars...)
	return err
}

// Milliseconds returns d in milliseconds, as the figures show it.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Quantile returns the time in milliseconds that a share q (0 to 1) of all times does not exceed (nearest rank), or 0
// if there are no times.
func Quantile(all []time.Duration, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(all))))
	return Milliseconds(slices.Sorted(slices.Values(all))[max(rank, 1)-1])
}

// A Bar is one figure of a benchmark and its bound.
type Bar struct {
	Name  string // words joined by dashes, unit last: wall-ratio, visible-p99-ms
	Value float64
	Bound float64
	Least bool // the bound is a minimum instead of a maximum
}

// String returns the line printed for a bar: `bar NAME VALUE BOUND ok|short`.
func (b Bar) String() string {
	within := b.Value <= b.Bound
	if b.Least {
		within = b.Value >= b.Bound
	}
	verdict := "short"
	if within {
		verdict = "ok"
	}
	return fmt.Sprintf("bar %s %s %s %s", b.Name, plain(b.Value), plain(b.Bound), verdict)
}

// plain formats a number without an exponent, with at most three decimals.
func plain(v float64) string {
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}

// Print prints one line for each bar.
func Print(bars ...Bar) {
	for _, b := range bars {
		fmt.Println(b)
	}
}

// Say writes a progress message to the terminal.
func Say(format string, a ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().UTC().Format(time.TimeOnly), fmt.Sprintf(format, a...))
}

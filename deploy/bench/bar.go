// Package bench prints what the benchmarks of the folders below it do, and what they measured. A benchmark is a program of its own
// (`make bench-ingest` and so on), never a test: a timing decides nothing but its own line.
package bench

import (
	"context"
	"fmt"
	"io"
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

// Main reads what the command line says into options, which may name parts of the benchmark, and runs it until it is over or
// somebody ends it.
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

// Milliseconds as figures tell them.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Quantile is the time, in milliseconds, that a share q of all times (0 to 1) does not exceed: the nearest rank. Of no times it
// is 0.
func Quantile(all []time.Duration, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(all))))
	return Milliseconds(slices.Sorted(slices.Values(all))[max(rank, 1)-1])
}

// A Bar is one figure of a benchmark and the bound that it is held to.
type Bar struct {
	Name  string // words joined by dashes, with the unit last: wall-ratio, visible-p99-ms
	Value float64
	Bound float64
	Least bool // the value must be at least the bound, instead of at most
}

// OK says that the value keeps to the bound.
func (b Bar) OK() bool {
	if b.Least {
		return b.Value >= b.Bound
	}
	return b.Value <= b.Bound
}

// String is the closing line of a bar: `bar NAME VALUE BOUND ok|short`.
func (b Bar) String() string {
	verdict := "short"
	if b.OK() {
		verdict = "ok"
	}
	return fmt.Sprintf("bar %s %s %s %s", b.Name, plain(b.Value), plain(b.Bound), verdict)
}

// plain writes a number without exponent, to three decimals.
func plain(v float64) string {
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}

// Print writes the bars, one line each.
func Print(w io.Writer, bars ...Bar) {
	for _, b := range bars {
		fmt.Fprintln(w, b)
	}
}

// Say tells a person at the terminal what takes so long.
func Say(format string, a ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().UTC().Format(time.TimeOnly), fmt.Sprintf(format, a...))
}

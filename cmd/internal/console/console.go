// Package console is the standard error of a long-running command: log lines and, on a terminal, a progress line below
// them. The working code does not depend on it: it calls a function with the current step, the amount done and the
// total.
package console

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry"
)

const (
	// barEvery is the time between two updates of the bar on a terminal, and lineEvery between two lines in a log.
	barEvery  = 250 * time.Millisecond
	lineEvery = 5 * time.Second
	// barWidth is the width of a full bar, in characters; barSteps is the number of steps of a full bar.
	barWidth = 20
	barSteps = 1000
)

// Console is where log lines go. On a terminal it keeps one progress line below them, as long as there is one.
type Console struct {
	out      io.Writer
	terminal bool
	every    time.Duration

	mu   sync.Mutex
	bars *mpb.Progress // nil while there is no progress line
	bar  *mpb.Bar
	text atomic.Pointer[string] // to the right of the bar
}

// New returns the console of a stream.
func New(out io.Writer) *Console {
	screen := cli.NewScreen(out)
	if terminal := screen.Terminal(); terminal != nil {
		return &Console{out: terminal, terminal: true, every: barEvery}
	}
	return &Console{out: screen, every: lineEvery}
}

// Write writes text above the progress line.
func (c *Console) Write(text []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.out
	if c.bars != nil {
		out = c.bars
	}
	// The stream is the terminal's own, because the progress line moves the cursor.
	if _, err := out.Write(cli.Escape(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// show draws a bar, from 0 to 1, with a text to its right. What does not fit on the terminal is cut off.
func (c *Console) show(part float64, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text = cli.Printable(text)
	c.text.Store(&text)
	if c.bars == nil {
		c.bars = mpb.New(mpb.WithOutput(c.out), mpb.WithAutoRefresh(), mpb.WithRefreshRate(barEvery))
		c.bar = c.bars.New(0, mpb.BarStyle().Lbound("[").Filler("#").Tip("").Padding(".").Rbound("]"), mpb.BarWidth(barWidth),
			mpb.BarFillerTrim(), mpb.AppendDecorators(decor.Any(c.fittingText)))
		c.bar.SetTotal(barSteps, false) // a full bar does not end it
	}
	c.bar.SetCurrent(int64(part * barSteps))
}

// fittingText returns as much of the text as fits to the right of the bar.
func (c *Console) fittingText(s decor.Statistics) string {
	text := " " + *c.text.Load()
	return text[:max(0, min(len(text), s.AvailableWidth-barWidth))]
}

// end removes the progress line.
func (c *Console) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bars == nil {
		return
	}
	c.bar.Abort(true)
	c.bars.Wait()
	c.bars = nil
}

// Backfill is the state of a program that may be reading old blocks.
type Backfill struct {
	Time        time.Time
	Logs        uint64                   // read so far
	Of          *registry.BackfillStatus // nil: no backfill is running
	SecondsLeft *uint64                  // nil: unknown
	Calls       []registry.MethodCalls
}

// Watch shows the progress of a backfill until ctx ends: as a progress line on a terminal, otherwise as a log line now
// and then. It returns nil.
func (c *Console) Watch(ctx context.Context, status func() Backfill, log *slog.Logger) error {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	var began time.Time
	var last *registry.BackfillStatus
	for {
		select {
		case <-ctx.Done():
			c.end()
			return nil
		case <-tick.C:
		}
		st := status()
		switch b := st.Of; {
		case b != nil:
			if last == nil {
				began = st.Time
			}
			last = b
			if c.terminal {
				text := "backfill " + BackfillText(b, st.SecondsLeft)
				if len(st.Calls) > 0 {
					text += ", " + Spent(st.Calls)
				}
				c.show(b.Part(), text)
			} else {
				log.Info("backfilling", append([]any{"done", percent(b), "block", b.Block, "of", b.ToBlock, "logs", b.Logs,
					"blocksPerSecond", int64(b.BlocksPerSecond), "logsPerSecond", int64(b.LogsPerSecond), "left",
					Left(st.SecondsLeft)}, spentFields(st.Calls)...)...)
			}
		case last != nil:
			c.end()
			log.Info("backfill done",
				append([]any{"block", last.ToBlock, "logs", st.Logs, "took", st.Time.Sub(began).Round(time.Second)},
					spentFields(st.Calls)...)...)
			last = nil
		}
	}
}

// BackfillText describes the progress of a backfill.
func BackfillText(b *registry.BackfillStatus, eta *uint64) string {
	return fmt.Sprintf("%s: block %d of %d, %d blocks/s, %d logs/s, %s left",
		percent(b), b.Block, b.ToBlock, int64(b.BlocksPerSecond), int64(b.LogsPerSecond), Left(eta))
}

// Spent describes the calls to the nodes: their number, and units if calls have prices.
func Spent(calls []registry.MethodCalls) string {
	all := registry.Spent(calls)
	text := printable.Count(all.Calls, "call")
	if all.Units > 0 {
		text += ", " + printable.Count(all.Units, "unit")
	}
	return text
}

// spentFields are the same numbers for a log line, by method.
func spentFields(calls []registry.MethodCalls) []any {
	if len(calls) == 0 {
		return nil
	}
	all := registry.Spent(calls)
	fields := []any{"calls", all.Calls, "callsByMethod", ByMethod(calls), "answerBytes", all.Bytes}
	if all.Units > 0 {
		fields = append(fields, "units", all.Units)
	}
	return fields
}

func ByMethod(calls []registry.MethodCalls) string {
	words := make([]string, len(calls))
	for i, m := range calls {
		words[i] = fmt.Sprintf("%s: %d", m.Method, m.Calls)
	}
	return strings.Join(words, ", ")
}

func percent(b *registry.BackfillStatus) string { return fmt.Sprintf("%.1f%%", 100*b.Part()) }

func Left(eta *uint64) string {
	if eta == nil {
		return "?"
	}
	return (time.Duration(*eta) * time.Second).String()
}

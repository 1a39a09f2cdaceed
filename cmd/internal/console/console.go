// Package console is standard error of a command that works for long: log lines,
// and on a terminal a line of progress below them.
package console

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/schemas/registry"
)

const (
	// barEvery is the pause between two looks at a backfill on a terminal,
	// lineEvery the one in a log.
	barEvery  = 250 * time.Millisecond
	lineEvery = 5 * time.Second
	// barWidth is that of a full bar, in characters; barSteps is in how many steps it
	// gets there.
	barWidth = 20
	barSteps = 1000
)

// Console is where log lines go. On a terminal it keeps one line of progress
// below them, while there is any.
type Console struct {
	out      io.Writer
	terminal bool
	every    time.Duration

	mu   sync.Mutex
	bars *mpb.Progress // nil while there is no line of progress
	bar  *mpb.Bar
	text atomic.Pointer[string] // beside the bar
}

// New makes the console of a stream.
func New(out io.Writer) *Console {
	c := &Console{out: out, every: lineEvery}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		c.terminal, c.every = true, barEvery
	}
	return c
}

// Write writes above the line of progress.
func (c *Console) Write(text []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bars == nil {
		return c.out.Write(text)
	}
	return c.bars.Write(text)
}

// show draws a part of a whole, 0 to 1, with a text beside it. What the terminal has
// no room for is cut.
func (c *Console) show(part float64, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Store(&text)
	if c.bars == nil {
		c.bars = mpb.New(mpb.WithOutput(c.out), mpb.WithAutoRefresh(), mpb.WithRefreshRate(barEvery))
		c.bar = c.bars.New(0, mpb.BarStyle().Lbound("[").Filler("#").Tip("").Padding(".").Rbound("]"), mpb.BarWidth(barWidth), mpb.BarFillerTrim(),
			mpb.AppendDecorators(decor.Any(c.beside)))
		c.bar.SetTotal(barSteps, false) // a full bar is not the end of it
	}
	c.bar.SetCurrent(int64(part * barSteps))
}

// Track shows on a terminal how far something is, 0 to 1, with a text beside it. Scripts
// are not told: what they wait for is the answer.
func (c *Console) Track(part float64, text string) {
	if c.terminal {
		c.show(part, text)
	}
}

// Tracked ends the line of Track.
func (c *Console) Tracked() { c.end(true) }

// beside is the text for which there is room beside the bar.
func (c *Console) beside(s decor.Statistics) string {
	text := " " + *c.text.Load()
	return text[:max(0, min(len(text), s.AvailableWidth-barWidth))]
}

// end removes the line of progress, or leaves it where it is.
func (c *Console) end(remove bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bars == nil {
		return
	}
	c.bar.Abort(remove)
	c.bars.Wait()
	c.bars = nil
}

// Watch shows how a backfill goes on, until ctx ends: as a line that moves on a
// terminal, else as a log line now and then. It returns nil.
func (c *Console) Watch(ctx context.Context, status func() ingest.Status, log *slog.Logger) error {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	var began time.Time
	var last *registry.BackfillStatus
	for {
		select {
		case <-ctx.Done():
			c.end(true)
			return nil
		case <-tick.C:
		}
		st := status()
		switch b := st.Backfill; {
		case b != nil:
			if last == nil {
				began = st.Time
			}
			last = b
			if c.terminal {
				c.show(b.Part(), backfillText(b, st.ETASeconds, st.Calls))
			} else {
				log.Info("backfilling", append([]any{"done", Percent(b), "block", b.Block, "of", b.ToBlock, "logs", b.Logs,
					"blocksPerSecond", int64(b.BlocksPerSecond), "logsPerSecond", int64(b.LogsPerSecond), "left", Left(st.ETASeconds)}, spentFields(st.Calls)...)...)
			}
		case last != nil:
			c.end(true)
			log.Info("backfill done", append([]any{"block", last.ToBlock, "logs", st.Logs, "took", st.Time.Sub(began).Round(time.Second)}, spentFields(st.Calls)...)...)
			last = nil
		}
	}
}

func backfillText(b *registry.BackfillStatus, eta *uint64, calls []registry.MethodCalls) string {
	line := fmt.Sprintf("backfill %s  block %d of %d  %d blocks/s  %d logs/s  %s left",
		Percent(b), b.Block, b.ToBlock, int64(b.BlocksPerSecond), int64(b.LogsPerSecond), Left(eta))
	if len(calls) > 0 {
		line += "  " + Spent(calls)
	}
	return line
}

// Spent says what the nodes were asked: calls, and units where they have prices.
func Spent(calls []registry.MethodCalls) string {
	all := registry.Spent(calls)
	text := fmt.Sprintf("%d calls", all.Calls)
	if all.Units > 0 {
		text += fmt.Sprintf(", %d units", all.Units)
	}
	return text
}

// spentFields are the same for a log line, by method.
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

func Percent(b *registry.BackfillStatus) string { return fmt.Sprintf("%.1f%%", 100*b.Part()) }

func Left(eta *uint64) string {
	if eta == nil {
		return "?"
	}
	return (time.Duration(*eta) * time.Second).String()
}

// Rebuild shows a rebuild: as a line that moves on a terminal, else as a line
// now and then.
type Rebuild struct {
	*Console
	last time.Time
	now  func() time.Time
}

// NewRebuild shows a rebuild on c.
func NewRebuild(c *Console) *Rebuild { return &Rebuild{Console: c, now: time.Now} }

// Show shows how far it is.
func (b *Rebuild) Show(p projections.Progress) {
	line := fmt.Sprintf("generation %d  seq %d  %.0f records/s  %s", p.Generation, p.Seq, p.Speed, remaining(p))
	switch {
	case b.terminal:
		b.show(share(p), fmt.Sprintf("%3.0f %%  %s", 100*share(p), line))
	case p.AtEnd || b.now().Sub(b.last) >= b.every:
		b.Say(line)
		b.last = b.now()
	}
}

// Say prints a sentence on a line of its own.
func (b *Rebuild) Say(sentence string) { fmt.Fprintln(b, sentence) }

// Keep leaves the last line of progress where it is.
func (b *Rebuild) Keep() { b.end(false) }

// share is how much of the log is written, 0 to 1. The offsets that are left
// are close to the records that are left.
func share(p projections.Progress) float64 {
	if p.AtEnd {
		return 1
	}
	if p.Left <= 0 {
		return 0
	}
	return float64(p.Seq) / (float64(p.Seq) + float64(p.Left))
}

func remaining(p projections.Progress) string {
	switch {
	case p.AtEnd:
		return "at the end of the log"
	case p.ETA > 0:
		return "ETA " + p.ETA.Round(time.Second).String()
	}
	return "ETA unknown"
}

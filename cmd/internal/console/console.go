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
	"time"

	"golang.org/x/term"

	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/schemas/registry"
)

const (
	// barEvery is the pause between two looks at a backfill on a terminal,
	// lineEvery the one in a log.
	barEvery  = 250 * time.Millisecond
	lineEvery = 5 * time.Second
	// barWidth is that of a full bar, in characters.
	barWidth = 30
)

// Console is where log lines go. On a terminal it keeps one line of progress
// below them.
type Console struct {
	out   io.Writer
	width func() int // columns; nil where out is no terminal
	every time.Duration

	mu   sync.Mutex
	line string
}

func New(out io.Writer) *Console {
	c := &Console{out: out, every: lineEvery}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		c.every = barEvery
		c.width = func() int {
			width, _, err := term.GetSize(int(file.Fd()))
			if err != nil {
				return 80
			}
			return width
		}
	}
	return c
}

// eraseLine goes to the beginning of the line and clears it.
const eraseLine = "\r\x1b[K"

// Write writes above the line of progress.
func (c *Console) Write(text []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line == "" {
		return c.out.Write(text)
	}
	if _, err := fmt.Fprintf(c.out, "%s%s%s", eraseLine, text, c.line); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Show replaces the line of progress; empty removes it.
func (c *Console) Show(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if line = fit(line, c.width()-1); line != c.line {
		c.line = line
		fmt.Fprint(c.out, eraseLine+line)
	}
}

// Keep leaves the line of progress where it is and goes to the next one.
func (c *Console) Keep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line != "" {
		fmt.Fprintln(c.out)
	}
	c.line = ""
}

func fit(line string, width int) string {
	if len(line) > width {
		return line[:max(0, width)]
	}
	return line
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
			if c.width != nil {
				c.Show("")
			}
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
			if c.width != nil {
				c.Show(backfillBar(b, st.ETASeconds, st.Calls))
			} else {
				log.Info("backfilling", append([]any{"done", Percent(b), "block", b.Block, "of", b.ToBlock, "logs", b.Logs,
					"blocksPerSecond", int64(b.BlocksPerSecond), "logsPerSecond", int64(b.LogsPerSecond), "left", Left(st.ETASeconds)}, spentFields(st.Calls)...)...)
			}
		case last != nil:
			if c.width != nil {
				c.Show("")
			}
			log.Info("backfill done", append([]any{"block", last.ToBlock, "logs", st.Logs, "took", st.Time.Sub(began).Round(time.Second)}, spentFields(st.Calls)...)...)
			last = nil
		}
	}
}

func backfillBar(b *registry.BackfillStatus, eta *uint64, calls []registry.MethodCalls) string {
	line := fmt.Sprintf("backfill %s %s  block %d of %d  %d blocks/s  %d logs/s  %s left",
		bar(b.Part()), Percent(b), b.Block, b.ToBlock, int64(b.BlocksPerSecond), int64(b.LogsPerSecond), Left(eta))
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

// bar draws a part of a whole, 0 to 1.
func bar(part float64) string {
	full := int(part * barWidth)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", barWidth-full) + "]"
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

func NewRebuild(c *Console) *Rebuild { return &Rebuild{Console: c, now: time.Now} }

func (b *Rebuild) Show(p projections.Progress) {
	line := fmt.Sprintf("generation %d  seq %d  %.0f records/s  %s", p.Generation, p.Seq, p.Speed, remaining(p))
	switch {
	case b.width != nil:
		b.Console.Show(fmt.Sprintf("%s %3.0f %%  %s", bar(share(p)), 100*share(p), line))
	case p.AtEnd || b.now().Sub(b.last) >= b.every:
		b.Say(line)
		b.last = b.now()
	}
}

// Say prints a sentence on a line of its own.
func (b *Rebuild) Say(sentence string) { fmt.Fprintln(b, sentence) }

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

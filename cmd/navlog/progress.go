package main

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
	"github.com/navlog/navlog/schemas/registry"
)

const (
	// barEvery is the pause between two looks at a backfill on a terminal,
	// lineEvery the one in a log.
	barEvery  = 250 * time.Millisecond
	lineEvery = 5 * time.Second
)

// console is where log lines go. On a terminal it keeps one line of progress
// below them.
type console struct {
	out   io.Writer
	width func() int // columns; nil where out is no terminal
	every time.Duration

	mu   sync.Mutex
	line string
}

func newConsole(out io.Writer) *console {
	c := &console{out: out, every: lineEvery}
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
func (c *console) Write(text []byte) (int, error) {
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

// show replaces the line of progress; empty removes it.
func (c *console) show(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if line = fit(line, c.width()-1); line != c.line {
		c.line = line
		fmt.Fprint(c.out, eraseLine+line)
	}
}

func fit(line string, width int) string {
	if len(line) > width {
		return line[:max(0, width)]
	}
	return line
}

// watch shows how a backfill goes on, until ctx ends: as a line that moves on a
// terminal, else as a log line now and then. It returns nil.
func (c *console) watch(ctx context.Context, status func() ingest.Status, log *slog.Logger) error {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	var began time.Time
	var last *registry.BackfillStatus
	for {
		select {
		case <-ctx.Done():
			if c.width != nil {
				c.show("")
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
				c.show(backfillBar(b, st.ETASeconds))
			} else {
				log.Info("backfilling", "done", percent(b), "block", b.Block, "of", b.ToBlock, "logs", b.Logs,
					"blocksPerSecond", int64(b.BlocksPerSecond), "logsPerSecond", int64(b.LogsPerSecond), "left", left(st.ETASeconds))
			}
		case last != nil:
			if c.width != nil {
				c.show("")
			}
			log.Info("backfill done", "block", last.ToBlock, "logs", st.Logs, "took", st.Time.Sub(began).Round(time.Second))
			last = nil
		}
	}
}

func backfillBar(b *registry.BackfillStatus, eta *uint64) string {
	done := int(b.Part() * barWidth)
	return fmt.Sprintf("backfill [%s%s] %s  block %d of %d  %d blocks/s  %d logs/s  %s left",
		strings.Repeat("#", done), strings.Repeat(".", barWidth-done), percent(b), b.Block, b.ToBlock,
		int64(b.BlocksPerSecond), int64(b.LogsPerSecond), left(eta))
}

func percent(b *registry.BackfillStatus) string { return fmt.Sprintf("%.1f%%", 100*b.Part()) }

func left(eta *uint64) string {
	if eta == nil {
		return "?"
	}
	return (time.Duration(*eta) * time.Second).String()
}

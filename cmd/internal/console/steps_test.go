package console

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// On a terminal the current step is a progress line, with the remaining time if known, and the line is removed at the
// end.
func TestStepsOnATerminal(t *testing.T) {
	out := new(lockedBuffer)
	c := &Console{out: out, terminal: true, every: time.Hour}
	clock := time.Unix(1_700_000_000, 0)
	s := c.steps(slog.New(slog.NewTextHandler(c, nil)), func() time.Time { return clock })
	s.show() // no step is running
	s.Report("log: looking for record 7", 0, 0)
	clock = clock.Add(3 * time.Second)
	s.show()
	appears(t, out, "[..................] log: looking for record 7  since 3s")
	s.Report("secrets: sent", 4, 0)
	s.show()
	appears(t, out, "[..................] secrets: sent  4  since 0s")
	s.Report("log: records", 100, 300) // the first hundred were done by something else
	s.show()
	appears(t, out, "[######............]  33 %  log: records  100 of 300  ? left")
	clock = clock.Add(5 * time.Second)
	s.Report("log: records", 150, 300)
	s.show()
	appears(t, out, "[#########.........]  50 %  log: records  150 of 300  15s left")
	s.Report("log: records", 301, 300) // more than the known total
	s.show()
	appears(t, out, "[##################] 100 %  log: records  301 of 300  ? left")
	go s.watch()
	s.End()
	s.End()
	text := out.String()
	s.Report("log: records", 302, 302)
	if c.bars != nil || out.String() != text {
		t.Error("the line stays after the end")
	}
}

// In a log there is a line every 5 s, and none if the command ends sooner.
func TestStepsInALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(lockedBuffer)
		c := New(out)
		without := slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}
		s := c.Steps(slog.New(slog.NewTextHandler(c, &without)))
		s.Report("log: records", 0, 400)
		time.Sleep(4 * time.Second) //nolint:forbidigo // of the bubble's clock
		s.Report("log: records", 80, 400)
		synctest.Wait()
		if out.String() != "" {
			t.Errorf("before 5 s have passed, the log has %q", out.String())
		}
		time.Sleep(time.Second + time.Millisecond) //nolint:forbidigo // of the bubble's clock
		s.Report("chain: head", 0, 0)
		time.Sleep(5 * time.Second) //nolint:forbidigo // of the bubble's clock
		s.End()
		want := "level=INFO msg=\"log: records\" done=80 of=400 left=20s\nlevel=INFO msg=\"chain: head\" done=0 since=5s\n"
		if out.String() != want {
			t.Errorf("a log has %q, want %q", out.String(), want)
		}
		quick := c.Steps(slog.New(slog.NewTextHandler(c, nil)))
		quick.Report("log: records", 1, 2)
		quick.End()
		if strings.Count(out.String(), "\n") != 2 {
			t.Errorf("a step that is done at once logs %q", out.String())
		}
	})
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"strings"
	"testing"

	"github.com/navlog/navlog/schemas/printable"
)

type waitingCmd struct{ Fail bool }

func (cmd waitingCmd) Run(ctx context.Context) error {
	if cmd.Fail {
		return errors.New("it failed")
	}
	<-ctx.Done()
	return Different.With(fmt.Errorf("compare the tables: %w", ctx.Err()))
}

// A command that a signal ends reports that it was interrupted; an error of the command itself is unchanged.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct{ args, want string }{{"do", "interrupted: compare the tables"}, {"do --fail", "it failed"}} {
		err := Run(ctx, "tool", "A tool.", new(struct {
			Do waitingCmd `cmd:""`
		}), strings.Fields(c.args), io.Discard, io.Discard)
		if CodeOf(err) != Failed || err.Error() != c.want {
			t.Errorf("%s: %v with code %d, want %s", c.args, err, CodeOf(err), c.want)
		}
	}
}

// net/http logs what a server sends after its response, with the standard logger. It must not appear in the operator's
// log; with --verbose it is one short line without control characters.
func TestReceiversCannotForgeLogLines(t *testing.T) {
	before, output, flags := slog.Default(), stdlog.Writer(), stdlog.Flags()
	t.Cleanup(func() { slog.SetDefault(before); stdlog.SetOutput(output); stdlog.SetFlags(flags) })
	for _, f := range []Flags{{}, {LogJSON: true}, {Verbose: true}, {Verbose: true, LogJSON: true}} {
		var out bytes.Buffer
		f.Logger(&out)
		stdlog.Printf("Unsolicited response received on idle HTTP channel starting with %s", hostile+"\nlevel=ERROR "+strings.Repeat("x", 4000))
		text, lines := out.String(), 0
		if f.Verbose {
			lines = 1
		}
		if strings.Count(text, "\n") != lines || len(text) > 3*printable.Sentence || controlIn(text) != "" {
			t.Errorf("%+v: %d bytes, %s: %s", f, len(text), controlIn(text), text)
		}
		if f.Verbose && (!strings.Contains(text, "DEBUG") || !strings.Contains(text, "Unsolicited response")) {
			t.Errorf("%+v: %s", f, text)
		}
	}
}

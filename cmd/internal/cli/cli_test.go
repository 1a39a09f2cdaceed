package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry"
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
	for _, c := range []struct{ args, want string }{{"do", "interrupted: compare the tables"},
		{"do --fail", "it failed"}} {
		err := Run(ctx, "tool", "A tool.", new(struct {
			Do waitingCmd `cmd:""`
		}), strings.Fields(c.args), io.Discard, io.Discard)
		if CodeOf(err) != Failed || err.Error() != c.want {
			t.Errorf("%s: %v with code %d, want %s", c.args, err, CodeOf(err), c.want)
		}
	}
}

// Each signal ends a command in order, also the one that the end of a terminal sends; nohup switches that one off.
func TestSignalsEndInOrder(t *testing.T) {
	if given := os.Getenv("CLI_TEST_SIGNALS"); given != "" {
		Main("tool", func(ctx context.Context, _ []string, _, _ io.Writer) error {
			for number := range strings.FieldsSeq(given) {
				n, _ := strconv.Atoi(number)
				if err := syscall.Kill(os.Getpid(), syscall.Signal(n)); err != nil {
					return err
				}
			}
			<-ctx.Done()
			return fmt.Errorf("in order: %w", context.Cause(ctx))
		})
		return
	}
	for _, c := range []struct{ signals, want, before string }{
		{"2", "interrupt", ""}, {"15", "terminated", ""}, {"1", "hangup", ""}, {"1 15", "terminated", "trap '' HUP; "},
	} {
		if c.signals == "1" && signal.Ignored(syscall.SIGHUP) {
			continue // the tests run under nohup
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", c.before+`exec "$0" -test.run='^TestSignalsEndInOrder$'`,
			os.Args[0])
		cmd.Env = append(os.Environ(), "CLI_TEST_SIGNALS="+c.signals)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != int(Failed) || !strings.Contains(string(out), "tool: in order: "+c.want) {
			t.Errorf("signals %s: %v, %s", c.signals, err, out)
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
		stdlog.Printf("Unsolicited response received on idle HTTP channel starting with %s",
			hostile+"\nlevel=ERROR "+strings.Repeat("x", 4000))
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

// A command that PostgreSQL interrupts before its commit can be run again, and has another code than one whose commit
// was not confirmed.
func TestCodeOfAnUnknownOutcome(t *testing.T) {
	ended := &pgconn.PgError{SeverityUnlocalized: "FATAL", Code: "57P01"}
	if code := CodeOf(ended); code != Unreachable {
		t.Errorf("an ended session has the code %d", code)
	}
	if code := CodeOf(fmt.Errorf("create: %w", &registry.UnknownOutcomeError{Err: ended})); code != Failed {
		t.Errorf("an unknown outcome has the code %d", code)
	}
}

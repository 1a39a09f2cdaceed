// Package cli holds what the commands navlog and navlog-dev share: the flags of every subcommand, the dispatch of
// arguments to a subcommand, and the exit code of its error.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/telemetry"
)

// Flags are the flags that every command takes.
type Flags struct {
	Config  string `short:"c" type:"path" placeholder:"FILE" env:"NAVLOG_CONFIG" help:"Configuration file (default: navlog.yaml if it exists). Environment variables NAVLOG_... override it."`
	LogJSON bool   `name:"log-json" help:"Write log lines as JSON."`
	Verbose bool   `short:"v" help:"Log debug lines too."`
}

// Logger returns a logger that writes to w, and makes it the default one. What libraries write with the standard logger
// becomes a debug line.
func (f Flags) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if f.Verbose {
		options.Level = slog.LevelDebug
	}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if f.LogJSON {
		handler = slog.NewJSONHandler(w, options)
	}
	log := slog.New(telemetry.Logs(handler))
	slog.SetDefault(log)
	stdlog.SetOutput(standard{log})
	return log
}

// standard is the output of the standard logger. Its text may be a webhook receiver's: net/http writes what a server
// sends after its response.
type standard struct{ log *slog.Logger }

func (s standard) Write(line []byte) (int, error) {
	text := strings.TrimSuffix(string(line), "\n")
	s.log.Debug("message of a library", "text", printable.Text(text, printable.Sentence))
	return len(line), nil
}

// Streams are where a command writes: results to Out, everything else to Err. Both are Screens.
type Streams struct{ Out, Err io.Writer }

// Discards reports whether results are lost: standard output is the null device, which the runtime of Go also opens in
// the place of a stream that was closed before the process began.
func (s *Streams) Discards() bool {
	screen, ok := s.Out.(*Screen)
	if !ok {
		return false
	}
	file, ok := screen.raw.(*os.File)
	if !ok {
		return false
	}
	is, fault := file.Stat()
	null, missing := os.Stat(os.DevNull)
	return fault == nil && missing == nil && os.SameFile(is, null)
}

// Main runs the commands with the arguments of the process, until they end or a signal arrives, and then exits. A
// second signal ends the process at once.
func Main(name string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	ending := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		ending = append(ending, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ending...)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		PrintError(os.Stderr, name, err)
		os.Exit(int(CodeOf(err)))
	}
}

// errHelp ends a run that only printed help.
var errHelp = errors.New("help was printed")

// Run is Main without the process around it, so that tests can call it. commands is a pointer to a struct in the form
// that package kong expects.
func Run(ctx context.Context, name, description string, commands any, args []string, stdout, stderr io.Writer,
	options ...kong.Option) (err error) {
	out, other := NewScreen(stdout), NewScreen(stderr)
	defer func() {
		_ = other.Flush()
		if fault := out.Flush(); err == nil {
			err = fault
		}
	}()
	defer func() {
		if r := recover(); r != nil {
			if e, ok := r.(error); ok && errors.Is(e, errHelp) {
				err = nil
				return
			}
			panic(r)
		}
	}()
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version":
		args = append([]string{"version"}, args[1:]...)
	}
	parser, err := kong.New(commands, append(append(values(), options...),
		kong.Name(name),
		kong.Description(description),
		kong.Writers(out, other),
		kong.Exit(func(int) { panic(errHelp) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 120}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(&Streams{out, other}),
	)...)
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	if err != nil && out.Flush() != nil {
		return nil // reports that the help could not be written
	}
	if err != nil {
		return Usage.With(usageError(name, err))
	}
	warnOfSecrets(other, parsed)
	err = parsed.Run()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = interrupted(err)
	}
	return err
}

// interrupted describes a command that a signal ended, with what it was doing. The reason "context canceled" is left
// out, and so is the exit code that the same error has at other times.
func interrupted(err error) error {
	return Failed.With(errors.New("interrupted: " + strings.TrimSuffix(err.Error(), ": "+context.Canceled.Error())))
}

// negative matches the parser's errors for a negative number, which it takes for a flag. No command needs one.
var negative = regexp.MustCompile(`^unknown flag -\d|expected .* value but got "-\d`)

// usageError describes a command line that does not parse, and names the help of the command that was called.
func usageError(name string, err error) error {
	called := name
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok && wrong.Context != nil {
		for _, step := range wrong.Context.Path {
			if step.Command != nil {
				called = step.Command.FullPath()
			}
		}
	}
	if negative.MatchString(err.Error()) {
		err = errors.New("a value begins with -, but numbers are not negative here, and flags are words")
	}
	return fmt.Errorf("%w (try `%s --help`)", err, called)
}

// Version is the command that prints the version.
type Version struct{}

func (Version) Run(s *Streams, app *kong.Kong) error {
	_, err := fmt.Fprintln(s.Out, app.Model.Name, BuildVersion())
	return err
}

// BuildVersion returns the version that the Go toolchain recorded in the binary.
func BuildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// hostile is text that a node, a partner or a token's name may contain: it clears the screen, returns to the start of
// the line, reverses the text direction, and ends with invalid UTF-8.
const hostile = "a\x1b[2J\x1b]0;title\x07b\rc\bd\x00\x7f\u0085\u009b31m" +
	"\u200e\u202etxt.exe\u2066\u2069\u2028\ufeff\U000e0041\xff\x9b"

// turning are characters that change the direction of text or end its line.
const turning = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2028\u2029\u2066\u2067\u2068\u2069\u061c\ufeff"

// controlIn reports the first byte or character that must not reach a terminal, or "".
func controlIn(text string) string {
	for i, r := range text {
		if r == utf8.RuneError && strings.HasPrefix(text[i:], "\ufffd") {
			continue
		}
		control := r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0
		if r == utf8.RuneError || control || strings.ContainsRune(turning, r) || r > 0xe0000 {
			return fmt.Sprintf("%U at %d", r, i)
		}
	}
	return ""
}

func TestScreenWritesNoControlCharacters(t *testing.T) {
	var out bytes.Buffer
	s := NewScreen(&out)
	if NewScreen(s) != s {
		t.Error("a screen wraps another screen")
	}
	const honest = "vault\tnaïve — 円 👍\nnext line\n"
	for _, text := range []string{honest, hostile, ""} {
		if n, err := io.WriteString(s, text); n != len(text) || err != nil {
			t.Errorf("%d of %d bytes: %v", n, len(text), err)
		}
	}
	s.Flush()
	want := honest + `a\u001b[2J\u001b]0;title\u0007b\u000dc\u0008d\u0000\u007f\u0085\u009b31m` +
		`\u200e\u202etxt.exe\u2066\u2069\u2028\ufeff\udb40\udc41\ufffd\ufffd`
	if out.String() != want {
		t.Errorf("written: %s", out.String())
	}
	if bad := controlIn(out.String()); bad != "" {
		t.Errorf("a terminal gets %s", bad)
	}
}

// A character may arrive in pieces, as from a buffer; one that is never completed is escaped.
func TestScreenJoinsCharacters(t *testing.T) {
	const text = "é円👍\u202e."
	var out bytes.Buffer
	s := NewScreen(&out)
	for i := range len(text) {
		if n, err := s.Write([]byte{text[i]}); n != 1 || err != nil {
			t.Fatalf("%d: %v", n, err)
		}
	}
	_, _ = s.Write([]byte("\xe5\x86"))
	s.Flush()
	s.Flush()
	if want := `é円👍\u202e.\ufffd\ufffd`; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	_, err := NewScreen(broken{}).Write([]byte("text"))
	if err == nil {
		t.Error("an error of the stream is lost")
	}
}

type quietCmd struct{}

func (quietCmd) Run(s *Streams) error {
	fmt.Fprintln(s.Out, "the result")
	return nil
}

// A result that cannot be written, as on a full disk, is an error of every command, even of one that does not check
// the errors of its lines.
func TestLostResult(t *testing.T) {
	commands := new(struct {
		Quiet quietCmd `cmd:""`
	})
	for _, args := range [][]string{{"quiet"}, {"--help"}, {"quiet", "--help"}} {
		err := Run(t.Context(), "tool", "A tool.", commands, args, broken{}, io.Discard)
		if CodeOf(err) != Failed || fmt.Sprint(err) != "write the result: broken" {
			t.Errorf("%q: %v", args, err)
		}
	}
	if err := Run(t.Context(), "tool", "A tool.", commands, []string{"quiet"}, io.Discard, broken{}); err != nil {
		t.Errorf("without standard error: %v", err)
	}
}

// Only a file can be the null device: any other output keeps results.
func TestDiscards(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for out, want := range map[io.Writer]bool{
		NewScreen(null): true, NewScreen(&bytes.Buffer{}): false, &bytes.Buffer{}: false, nil: false,
	} {
		if got := (&Streams{Out: out}).Discards(); got != want {
			t.Errorf("%T: %v", out, got)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

// JSON that goes through a Screen keeps its meaning.
func TestScreenKeepsJSON(t *testing.T) {
	type document struct{ Name, Raw string }
	want := document{strings.ToValidUTF8(hostile, "\ufffd"), "\u202eplain"}
	var out bytes.Buffer
	encoder := json.NewEncoder(NewScreen(&out))
	encoder.SetIndent("", "\t")
	if err := encoder.Encode(want); err != nil {
		t.Fatal(err)
	}
	var got document
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got != want {
		t.Errorf("%+v, %v: %s", got, err, out.String())
	}
	if bad := controlIn(out.String()); bad != "" {
		t.Errorf("a terminal gets %s", bad)
	}
}

// A document goes to a file or a pipe unchanged.
func TestDataIsWrittenAsItIs(t *testing.T) {
	var out bytes.Buffer
	if _, err := io.WriteString(Data(NewScreen(&out)), hostile); err != nil || out.String() != hostile {
		t.Errorf("%q: %v", out.String(), err)
	}
	if Data(&out) != &out {
		t.Error("a writer that is not a Screen is replaced")
	}
	if NewScreen(&out).Terminal() != nil {
		t.Error("a buffer is taken for a terminal")
	}
}

// No argument can end its line or its cell, whatever its type.
func TestFprintfKeepsLinesAndCells(t *testing.T) {
	type state string
	var out bytes.Buffer
	w := tabwriter.NewWriter(NewScreen(&out), 0, 0, 1, ' ', 0)
	const forged = "no\nverified\tyes"
	_, err := Fprintf(w, "%s\t%s\t%v\t%d\t%s\t%x\n", forged, state(forged), errors.New(forged), 7, time.Second,
		[]byte("\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := `no\nverified\tyes no\nverified\tyes no\nverified\tyes 7 1s 0a` + "\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

type echoCmd struct{ Text string }

func (cmd echoCmd) Run(s *Streams) error {
	fmt.Fprintln(s.Out, cmd.Text)
	_, _ = s.Err.Write([]byte("\xe5")) // never completed
	return fmt.Errorf("the node responded: %s", cmd.Text)
}

// The output of a command, its error, and the arguments it quotes are all escaped.
func TestRunAndMainEscape(t *testing.T) {
	if args := os.Getenv("CLI_TEST_ARGS"); args != "" {
		os.Args = append([]string{"tool"}, strings.Split(args, "|")...)
		Main("tool", func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
			return Run(ctx, "tool", "A tool.", new(struct {
				Echo echoCmd `cmd:""`
			}), args, stdout, stderr, kong.Vars{})
		})
		return
	}
	text := strings.ReplaceAll(hostile, "\x00", "") + "\nThe statement matches the chain, byte for byte."
	for _, args := range []string{"echo|--text=" + text, "echo|--no=" + text} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRunAndMainEscape$")
		cmd.Env = append(os.Environ(), "CLI_TEST_ARGS="+args)
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		if err := cmd.Run(); err == nil {
			t.Errorf("%.12q: the command succeeds", args)
		}
		for stream, text := range map[string]string{"stdout": out.String(), "stderr": errOut.String()} {
			if bad := controlIn(text); bad != "" {
				t.Errorf("%.12q: %s gets %s: %q", args, stream, bad, text)
			}
		}
		if !strings.Contains(errOut.String(), "tool: ") || strings.Contains(errOut.String(), "\nThe statement") {
			t.Errorf("%.12q: the error is %q", args, errOut.String())
		}
	}
}

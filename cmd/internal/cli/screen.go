package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// Screen is the stream that a command writes to, for results or for everything else. Much of the text comes from nodes,
// partners and deployers of tokens, and a terminal obeys control characters: a Screen passes on printable characters,
// tabs and line ends, and writes everything else as \u and four hexadecimal digits. JSON escapes characters the same
// way, so JSON stays valid and keeps its meaning.
type Screen struct {
	mu   sync.Mutex
	raw  io.Writer
	tail []byte // the beginning of a character that is not complete yet
	// fault is the first error of the stream.
	fault error
}

// NewScreen wraps a stream, unless it is a Screen already.
func NewScreen(raw io.Writer) *Screen {
	if s, ok := raw.(*Screen); ok {
		return s
	}
	return &Screen{raw: raw}
}

// Write implements io.Writer.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := append(s.tail, p...)
	whole := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if utf8.RuneStart(text[len(text)-back]) {
			if !utf8.FullRune(text[len(text)-back:]) {
				whole = len(text) - back
			}
			break
		}
	}
	s.tail = append([]byte(nil), text[whole:]...)
	if err := s.put(text[:whole]); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (s *Screen) put(text []byte) error {
	_, err := s.raw.Write(Escape(text))
	if err != nil { // as on a full disk
		err = fmt.Errorf("write the result: %w", err)
	}
	s.fault = cmp.Or(s.fault, err)
	return err
}

// Flush writes the bytes of a character that was never completed. It returns the first error of the stream since its
// beginning, so that a command need not check the error of each line.
func (s *Screen) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tail) > 0 {
		_ = s.put(s.tail)
		s.tail = nil
	}
	return s.fault
}

// Terminal returns the underlying stream if it is a terminal, for the control sequences that navlog itself writes
// there, and nil otherwise.
func (s *Screen) Terminal() io.Writer {
	if file, ok := s.raw.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}

// Data returns the writer for a document whose bytes must not change: the underlying stream, unless it is a terminal.
func Data(out io.Writer) io.Writer {
	if s, ok := out.(*Screen); ok && s.Terminal() == nil {
		return s.raw
	}
	return out
}

// Escape replaces what a terminal must not receive by JSON escapes.
func Escape(text []byte) []byte {
	if isPlain(text) {
		return text
	}
	escaped := make([]byte, 0, len(text)+len(text)/8+16)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			escaped = append(escaped, `\ufffd`...)
		case r == '\n' || r == '\t' || strconv.IsPrint(r):
			escaped = append(escaped, text[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		default:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
		text = text[size:]
	}
	return escaped
}

// isPlain reports whether text is printable ASCII, as most text is.
func isPlain(text []byte) bool {
	for _, b := range text {
		if (b < ' ' || b > '~') && b != '\n' && b != '\t' {
			return false
		}
	}
	return true
}

// Printable returns untrusted text on one line, so that it can neither move the cursor of a terminal nor look like a
// line of navlog.
func Printable(text string) string {
	var line strings.Builder
	for _, r := range text {
		if strconv.IsPrint(r) {
			line.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		line.WriteString(quoted[1 : len(quoted)-1])
	}
	return line.String()
}

// Fprintf is fmt.Fprintf for lines and table rows: no text among args can end its line or its cell. The format itself
// is trusted.
func Fprintf(out io.Writer, format string, args ...any) (int, error) {
	safe := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case error:
			safe[i] = Printable(v.Error())
		case fmt.Formatter, fmt.Stringer:
			safe[i] = arg
		default:
			if safe[i] = arg; reflect.ValueOf(arg).Kind() == reflect.String {
				safe[i] = Printable(reflect.ValueOf(arg).String())
			}
		}
	}
	return fmt.Fprintf(out, format, safe...)
}

// PrintError writes the error that ends a command. All lines but the first are indented, so that none of them looks
// like a line of the command.
func PrintError(out io.Writer, name string, err error) {
	fmt.Fprintf(NewScreen(out), "%s: %s\n", name, strings.ReplaceAll(strings.TrimRight(err.Error(), "\n"), "\n", "\n  "))
}

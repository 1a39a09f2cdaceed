package files

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

const csvBuffer = 64 << 10

// csvWriter writes RFC 4180 in UTF-8: a header, lines that end with CRLF, and quotes where required. Null is an empty
// field, and an empty text is "". (encoding/csv cannot distinguish the two, and changes line breaks within a text.)
type csvWriter[T any] struct {
	columns []column
	out     io.Writer
	line    []byte
}

func newCSV[T any](columns []column, out io.Writer) *csvWriter[T] {
	w := &csvWriter[T]{columns: columns, out: out, line: make([]byte, 0, csvBuffer+csvBuffer/4)}
	for i := range columns {
		w.field(i, columns[i].name)
	}
	w.line = append(w.line, "\r\n"...)
	return w
}

func (w *csvWriter[T]) Write(rows []T) error {
	for r := range rows {
		row := reflect.ValueOf(&rows[r]).Elem()
		for i := range w.columns {
			c := &w.columns[i]
			value, there := c.of(row)
			switch {
			case !there:
				w.comma(i)
			case c.kind == foreign:
				w.field(i, guarded(value))
			default:
				w.field(i, value)
			}
		}
		w.line = append(w.line, "\r\n"...)
		if len(w.line) >= csvBuffer {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *csvWriter[T]) Close() error { return w.flush() }

func (w *csvWriter[T]) flush() error {
	_, err := w.out.Write(w.line)
	w.line = w.line[:0]
	return err
}

func (w *csvWriter[T]) comma(i int) {
	if i > 0 {
		w.line = append(w.line, ',')
	}
}

func (w *csvWriter[T]) field(i int, value string) {
	w.comma(i)
	if value != "" && !strings.ContainsAny(value, "\",\r\n") && value[0] != ' ' && value[len(value)-1] != ' ' {
		w.line = append(w.line, value...)
		return
	}
	w.line = append(w.line, '"')
	w.line = append(w.line, strings.ReplaceAll(value, `"`, `""`)...)
	w.line = append(w.line, '"')
}

// guarded makes untrusted text harmless in a spreadsheet, which runs everything that looks like a formula: anyone can
// deploy a token called =HYPERLINK(...), and quotes do not stop a spreadsheet from running it.
//
// An apostrophe is put before each part of the text that begins with a formula sign. White space, quotes and
// zero-width characters before the sign are skipped, because some programs drop them; full-width and small signs
// count, because some programs convert them. Parts end at list separators, because a spreadsheet in another locale
// splits a line at semicolons or tabs, even within quotes that do not begin its field. Other control characters,
// above all those that change text direction, are written as \u and four digits: they would move the columns next to
// the name.
func guarded(value string) string {
	if isHarmless(value) {
		return value
	}
	var b strings.Builder
	for value != "" {
		end := len(value)
		if at := strings.IndexAny(value, separators); at >= 0 {
			_, width := utf8.DecodeRuneInString(value[at:])
			end = at + width
		}
		part := value[:end]
		value = value[end:]
		if beginsFormula(part) {
			b.WriteByte('\'')
		}
		for _, r := range part {
			if isControl(r) {
				fmt.Fprintf(&b, `\u%04x`, r)
			} else {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

// ForeignText returns untrusted text as CSV contains it, for code that writes CSV without columns.
func ForeignText(value string) string { return guarded(value) }

const (
	// separators are characters at which a spreadsheet may split a line. A comma is not one of them: fields that
	// contain one are quoted.
	separators = ";|\t\r\n\v\f\u0085\u2028\u2029"
	// formulaSigns are the characters that begin a formula.
	formulaSigns = "=+-@" + "＝＋－＠" + "﹦﹢﹣﹫" + "−"
)

// isHarmless reports whether a text has no character that guarded must handle, which is true of nearly all names.
func isHarmless(value string) bool {
	for _, b := range []byte(value) {
		if b < ' ' || b > '~' || strings.IndexByte("=+-@", b) >= 0 {
			return false
		}
	}
	return true
}

// beginsFormula reports whether the first character that is not skipped is a formula sign.
func beginsFormula(part string) bool {
	for _, r := range part {
		if !unicode.IsSpace(r) && !unicode.In(r, unicode.Cc, unicode.Cf) && r != '"' && r != utf8.RuneError {
			return strings.ContainsRune(formulaSigns, r)
		}
	}
	return false
}

// isControl reports whether a character affects the text around it. Tabs and line ends are kept, and so are the
// joiners that scripts and emoji need.
func isControl(r rune) bool {
	switch r {
	case '\t', '\r', '\n', '\u200c', '\u200d':
		return false
	case '\u2028', '\u2029':
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf)
}

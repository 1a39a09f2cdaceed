package files

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// csvBuffer is how much text is gathered before it is written.
const csvBuffer = 64 << 10

// csvWriter writes RFC 4180 in UTF-8: a header, lines that end with CRLF, quotes where
// they must be. Null is an empty field, and an empty text is "". (encoding/csv would tell
// neither, and turn the line breaks within a text into others.)
type csvWriter[T any] struct {
	columns []Column[T]
	out     io.Writer
	line    []byte
}

func newCSV[T any](columns []Column[T], out io.Writer) *csvWriter[T] {
	w := &csvWriter[T]{columns: columns, out: out, line: make([]byte, 0, csvBuffer+csvBuffer/4)}
	for i := range columns {
		w.field(i, columns[i].Name)
	}
	w.line = append(w.line, "\r\n"...)
	return w
}

// Write implements Writer.
func (w *csvWriter[T]) Write(rows []T) error {
	for r := range rows {
		for i := range w.columns {
			c := &w.columns[i]
			value, there := c.of(&rows[r])
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

// Close implements Writer.
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

// guarded makes a text of strangers harmless in a spreadsheet, which runs what it takes for a formula: anybody may
// deploy a token that is called =HYPERLINK(...), and quotes do not keep a spreadsheet from running it.
//
// An apostrophe goes before each part of the text that begins with the sign of a formula. White space, quotes and
// characters without a width do not count, for some programs drop them; full-width and small signs do, for some
// programs take them for the others. Parts end at what separates lists, for a spreadsheet of another country splits a line at
// semicolons or tabs, also within quotes that do not begin its field. Other controls, above all those that change
// the direction of what follows, are written as \u and four digits: they would move the columns beside the name.
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

// ForeignText is what CSV has for a text that strangers chose, for what writes CSV without columns.
func ForeignText(value string) string { return guarded(value) }

const (
	// separators are what a spreadsheet may split a line at. A comma is none of them: fields that have one are quoted.
	separators = ";|\t\r\n\v\f\u0085\u2028\u2029"
	// formulaSigns begin a formula.
	formulaSigns = "=+-@" + "＝＋－＠" + "﹦﹢﹣﹫" + "−"
)

// isHarmless reports whether a text has nothing that guarded would look at, as nearly all names do.
func isHarmless(value string) bool {
	for _, b := range []byte(value) {
		if b < ' ' || b > '~' || strings.IndexByte("=+-@", b) >= 0 {
			return false
		}
	}
	return true
}

// beginsFormula reports whether the first character that counts is the sign of a formula.
func beginsFormula(part string) bool {
	for _, r := range part {
		if !unicode.IsSpace(r) && !unicode.In(r, unicode.Cc, unicode.Cf) && r != '"' && r != utf8.RuneError {
			return strings.ContainsRune(formulaSigns, r)
		}
	}
	return false
}

// isControl reports whether a character acts on the text around it. Tabs and ends of lines stay, and so do the joiners
// that scripts and emoji need.
func isControl(r rune) bool {
	switch r {
	case '\t', '\r', '\n', '\u200c', '\u200d':
		return false
	case '\u2028', '\u2029':
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf)
}

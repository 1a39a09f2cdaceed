package files

import (
	"io"
	"strings"
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

// guarded puts an apostrophe before a text that a spreadsheet would take for a formula.
// Anybody may deploy a token that is called =HYPERLINK(...), and quotes do not keep a
// spreadsheet from running it.
func guarded(value string) string {
	if value != "" && strings.IndexByte("=+-@\t\r\n", value[0]) >= 0 {
		return "'" + value
	}
	return value
}

package files

import (
	"io"
	"reflect"
	"strings"

	"github.com/navlog/navlog/schemas/printable"
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
				w.field(i, printable.Cell(value))
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

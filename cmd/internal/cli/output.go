package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Output is the flag of a command whose result can be JSON.
type Output struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Print prints a result: as one JSON document, or what text writes, with the columns that tabs end aligned. Only an
// endless command has to check for write errors: Run reports the first one.
func (o Output) Print(out io.Writer, result any, text func(w io.Writer)) error {
	if o.JSON {
		return json.NewEncoder(out).Encode(result)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	text(w)
	return w.Flush()
}

// Table prints rows: as a JSON list, or as a table of text.
func Table[T any](o Output, out io.Writer, rows []T, heading string, cells func(T) []any) error {
	return o.Print(out, rows, func(w io.Writer) { Rows(w, rows, heading, cells) })
}

// Rows writes a heading, whose columns tabs end, and under it the cells of each row.
func Rows[T any](w io.Writer, rows []T, heading string, cells func(T) []any) {
	fmt.Fprintln(w, heading)
	for _, r := range rows {
		line := cells(r)
		Fprintf(w, strings.Repeat("%v\t", len(line)-1)+"%v\n", line...)
	}
}

// Section is Rows after an empty line. Without rows it writes nothing.
func Section[T any](w io.Writer, rows []T, heading string, cells func(T) []any) {
	if len(rows) > 0 {
		Rows(w, rows, "\n"+heading, cells)
	}
}

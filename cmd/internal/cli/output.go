package cli

import (
	"encoding/json"
	"io"
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

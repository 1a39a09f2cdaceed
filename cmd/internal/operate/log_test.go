package operate

import (
	"bytes"
	"strings"
	"testing"

	"github.com/navlog/navlog/cmd/internal/cli"
)

// TestStatsForgeNoLine: text of a record that clears a terminal, and continues with a line that looks like navlog's,
// stays in its table cell. (The same test of the other commands is in cmd/navlog.)
func TestStatsForgeNoLine(t *testing.T) {
	const forged = "\x1b[2J\u009b1A\r\u202eno\nserve\tx\t0s\tserving\n"
	st := &logStats{LogID: forged, Frozen: forged, Types: map[string]uint64{forged: 1},
		Events: map[string]int64{forged: 1}}
	var text bytes.Buffer
	if err := (cli.Output{}).Print(cli.NewScreen(&text), st, st.write); err != nil {
		t.Fatal(err)
	}
	got := text.String()
	if strings.ContainsAny(got, "\x1b\r\u009b\u202e") || strings.Contains(got, "\nserve  x") ||
		!strings.Contains(got, "x1b[2J") {
		t.Errorf("the command prints\n%q", got)
	}
}

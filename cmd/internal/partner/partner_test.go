package partner

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/schemas/statement"
)

// run runs a command of partners, as the binary does.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	commands := new(struct {
		Explain   Explain   `cmd:""`
		Statement Statement `cmd:""`
	})
	return cli.Run(ctx, "navlog", "", commands, args, stdout, stderr)
}

// closedAddress is an address of this machine on which no program listens. Systems assign no port below 1024, so that no
// other process gets it meanwhile.
const closedAddress = "127.0.0.1:1"

// TestPartnersNeedNoProgram: a partner needs no configuration and no engine, so the commands depend on none of the
// programs and on none of their settings.
func TestPartnersNeedNoProgram(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	const own = "github.com/navlog/navlog/"
	for _, foreign := range []string{own + "cmd/internal/config", own + "ingest", own + "projections", own + "query",
		own + "dispatch",
		"github.com/twmb/franz-go/pkg/kgo"} {
		for name := range strings.Lines(string(out)) {
			if name = strings.TrimSpace(name); name == foreign || strings.HasPrefix(name, foreign+"/") {
				t.Errorf("depends on %s", name)
			}
		}
	}
}

// TestNothingForgesALine: text of a statement that clears a terminal, and continues with a line that looks like
// navlog's, stays in its table cell. (The same test of the operator's commands is in cmd/navlog.)
func TestNothingForgesALine(t *testing.T) {
	const forged = "\x1b[2J\u009b1A\r\u202eno\nserve\tx\t0s\tserving\n"
	address, err := json.Marshal(forged)
	if err != nil {
		t.Fatal(err)
	}
	totals := json.RawMessage(`[{"vaultAddress":` + string(address) +
		`,"deposits":1,"assets":"1","withdrawals":0,"assetsEstimate":"0"}]`)
	v := &verified{From: forged, To: forged, Vaults: []statement.Vault{{}}, Totals: totals, Unproven: []string{forged}}
	for _, asJSON := range []bool{false, true} {
		var text bytes.Buffer
		if err := (statementVerifyCmd{Output: cli.Output{JSON: asJSON}}).print(cli.NewScreen(&text), v); err != nil {
			t.Error(err)
		}
		got := text.String()
		if strings.ContainsAny(got, "\x1b\r\u009b\u202e") || strings.Contains(got, "\nserve  x") {
			t.Errorf("JSON %t: the output is\n%q", asJSON, got)
		}
		if !strings.Contains(got, "x1b[2J") && !strings.Contains(got, "u001b[2J") {
			t.Errorf("JSON %t: the escaped text is missing:\n%q", asJSON, got)
		}
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/dispatch"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/registry"
)

// forged is a text that clears a terminal and continues with a line that looks like navlog's.
const forged = "\x1b[2J\u009b1A\r\u202eno\nserve\tx\t0s\tserving\n"

// Text from a node, a partner or a record stays in its table cell, in every command that prints a table.
func TestNothingForgesALine(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	status, err := json.Marshal(map[string]any{"state": "frozen", "reason": forged, "disproven": forged,
		"vaultWarnings": []registry.VaultWarning{{Address: forged, Warning: forged}}, "generation": 1,
		"endpoints": []registry.EndpointStatus{{Name: forged, State: forged, LastError: forged, LastErrorAt: &at}}})
	if err != nil {
		t.Fatal(err)
	}
	measured, err := json.Marshal(dispatch.Status{Deliveries: map[string]int64{forged: 1}, MeasuredAt: at})
	if err != nil {
		t.Fatal(err)
	}
	answer, why := forged, forged
	failing := &examination{}
	failing.fail(cli.Failed, "nodes", forged, "%s", forged)
	for what, print := range map[string]func(out *cli.Screen) error{
		"status": func(out *cli.Screen) error {
			rows := []statusRow{{registry.Ingest, forged, 0, true, status}, {"serve", forged, 0, true, status},
				{registry.Dispatch, forged, 0, true, measured}}
			return cli.Output{}.Print(out, nil, func(w io.Writer) { writeStatus(w, rows) })
		},
		"attempts": func(out *cli.Screen) error {
			return cli.Output{}.Print(out, nil, func(w io.Writer) {
				writeAttempts(w, []attemptRow{{Number: 1, Error: &why, URL: forged, Response: answer}})
			})
		},
		"doctor": func(out *cli.Screen) error {
			if err := failing.report(out, cli.Output{}); cli.CodeOf(err) != cli.Failed {
				return err
			}
			return nil
		},
	} {
		var text bytes.Buffer
		if err := print(cli.NewScreen(&text)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		got := text.String()
		if strings.ContainsAny(got, "\x1b\r\u009b\u202e") || strings.Contains(got, "\nserve  x") {
			t.Errorf("%s prints\n%q", what, got)
		}
		if !strings.Contains(got, "x1b[2J") && !strings.Contains(got, "u001b[2J") {
			t.Errorf("%s does not print the escaped text:\n%q", what, got)
		}
	}
}

// Commands write to standard output and standard error only through the Screens that they are given: none uses the
// streams of the process directly.
func TestCommandsWriteToTheirStreams(t *testing.T) {
	for _, folder := range []string{".", "../internal/operate", "../internal/partner"} {
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("no Go file is in %s: %v", folder, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, stream := range []string{"os.Stdout", "os.Stderr", "fmt.Print(", "fmt.Println(", "fmt.Printf("} {
				if bytes.Contains(b, []byte(stream)) {
					t.Errorf("%s uses %s", name, stream)
				}
			}
		}
	}
}

// A program that never calls a node warns if it is given a node's key, without printing the key.
func TestWarningAboutUnusedNodeKeys(t *testing.T) {
	for url, warned := range map[string]bool{
		"http://127.0.0.1:8545": false, "https://node.example/": false,
		"https://provider.example/v1/sesame": true, "wss://u:sesame@provider.example": true,
	} {
		for _, nodes := range [][]rpc.Endpoint{rpc.Endpoints(url), {{URL: "http://127.0.0.1:1", WS: url}}} {
			var out bytes.Buffer
			warnOfNodes(slog.New(slog.NewTextHandler(&out, nil)), config.Config{Chain: ingest.Config{RPC: nodes}})
			logged := out.String()
			if strings.Contains(logged, "NAVLOG_CHAIN_RPC_FILE") != warned || strings.Contains(logged, "sesame") {
				t.Errorf("for %s the log is %q", url, logged)
			}
		}
	}
}

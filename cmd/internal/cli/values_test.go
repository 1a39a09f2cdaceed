package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

type sloppyCmd struct {
	File   string        `name:"file" type:"path" env:"SLOPPY_FILE"`
	URL    string        `name:"url" env:"SLOPPY_URL"`
	Name   string        `arg:"" optional:""`
	ID     int64         `name:"id"`
	Limit  uint16        `name:"limit" range:"1 to 1000"`
	State  string        `enum:",failed" default:""`
	Many   []string      `name:"many"`
	Within time.Duration `name:"within" range:"200ms to 1h"`
}

func (cmd sloppyCmd) Run(s *Streams) error {
	if cmd.File != "" {
		_, err := fmt.Fprint(s.Out, cmd.File)
		return err
	}
	_, err := fmt.Fprintf(s.Out, "%q %q %d %d %q %q", cmd.URL, cmd.Name, cmd.ID, cmd.Limit, cmd.State, cmd.Many)
	return err
}

// Leading and trailing white space of an argument is ignored, wherever it comes from. A number in a notation that only
// programmers know, or a value with invisible characters, is an error that names the flag.
func TestSloppyArguments(t *testing.T) {
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := Run(context.Background(), "tool", "A tool.", new(struct {
			Do sloppyCmd `cmd:""`
		}), append([]string{"do"}, args...), &out, &out, kong.Vars{})
		return out.String(), err
	}
	out, err := run("--url", " https://a.example/ ", " Acme Inc. \n", "--id", " 10 ", "--limit= 7",
		"--state=failed ", "--many=a, b ", "--within= 5s")
	if want := `"https://a.example/" "Acme Inc." 10 7 "failed" ["a" "b"]`; err != nil || out != want {
		t.Errorf("%s, want %s: %v", out, want, err)
	}
	for flag, values := range map[string][]string{
		"--url":    {"https://a.example/a b", "https://a.example/\u200b", "\ufeffhttps://a.example", " ", "\u00a0"},
		"--id":     {"010x", "0x10", "1_000", "1e3", "", " ", "9223372036854775808", "１"},
		"--limit":  {"65536", "-1", "0b1", "0", "1001"},
		"--within": {"199ms", "1h1ns", "-5s", "5", "", "5 s"},
		"--state":  {"failed\u202e", "FAILED"},
		"--many":   {"a,\x00"},
		"--file":   {"a\u200b", " "},
	} {
		for _, value := range values {
			if out, err := run(flag + "=" + value); CodeOf(err) != Usage || !strings.Contains(err.Error(), flag) || out != "" {
				t.Errorf("%s=%q: %v, %s", flag, value, err, out)
			}
		}
	}
	if out, err := run("--id=010", "\u202eAcme"); CodeOf(err) != Usage || out != "" {
		t.Errorf("a name with an invisible character: %v, %s", err, out)
	}
	for _, bound := range [][2]string{{"--limit=1", "--within=200ms"}, {"--limit=1000", "--within=1h"}} {
		if _, err := run(bound[:]...); err != nil {
			t.Errorf("%v: %v", bound, err)
		}
	}
	if _, err := run("--limit=1001"); err == nil ||
		!strings.Contains(err.Error(), "--limit: it is 1001 and must be 1 to 1000 (try `tool do --help`)") {
		t.Errorf("a value out of range: %v", err)
	}
	if out, err := run("--id=010"); err != nil || !strings.Contains(out, " 10 ") {
		t.Errorf("010 is read as %s: %v", out, err)
	}
	for _, none := range []string{"--file=", "--id=0"} {
		t.Setenv("SLOPPY_FILE", "")
		if out, err := run(none); err != nil || !strings.HasPrefix(out, `"" ""`) {
			t.Errorf("%s, and an empty variable: %s, %v", none, out, err)
		}
	}
	if out, err := run("--file= /a.yaml "); err != nil || out != "/a.yaml" {
		t.Errorf("a file is read as %s: %v", out, err)
	}
	t.Setenv("SLOPPY_URL", "https://b.example/\n")
	if out, err := run(); err != nil || !strings.HasPrefix(out, `"https://b.example/" `) {
		t.Errorf("from the environment: %s, %v", out, err)
	}
}

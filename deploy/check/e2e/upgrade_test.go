package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/readmodel"
)

// An upgrade is a navlog whose programs are of two versions. All of them share the engines and a configuration.
type upgrade struct {
	*world
	binaries map[version]string
	env      []string
	api      map[version]string // address of serve
}

type version string

const (
	before version = "before"
	after  version = "after"
)

// A program is one running program of a version.
type program struct {
	*stack.Process
	ops string // base URL of its operations server
}

// TestUpgrade replaces the programs of an earlier version by those of this one, in the order of docs/upgrading.md, and
// goes back. Both versions work on the same engines while the chain moves and is reorganised, and no event is lost or
// delivered twice. The earlier version is NAVLOG_PREVIOUS, a revision of this repository; by default the newest release
// or, until there is one, the commit stand.
func TestUpgrade(t *testing.T) {
	if testing.Short() {
		t.Skip("builds an earlier version")
	}
	t.Parallel()
	revision := previous(t)
	t.Logf("the earlier version is %s", revision)
	u := newUpgrade(t, revision)
	schema := readmodel.Schema()

	var made struct{ APIKey, SigningSecret string }
	out := u.run(t, before, "partner", "create", "Acme", "--id", "7", "--json")
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		t.Fatalf("partner create: %v\n%s", err, out)
	}
	u.Partners = []oracle.Partner{{ID: 7, Name: "Acme", APIKey: made.APIKey, SigningSecret: made.SigningSecret}}
	u.traffic = devchain.New(u.RPC, &u.Contracts, 11, []uint32{7, strangerID}, slog.New(slog.DiscardHandler))
	ingest, project := u.start(t, before, "ingest"), u.start(t, before, "project")
	dispatch, serve := u.start(t, before, "dispatch"), u.start(t, before, "serve")
	serve.ready(t, "")
	u.API = u.api[before]
	u.receiver.Expect(u.Partners[0])
	own := u.receiver.URL(u.Partners[0])
	u.post(t, made.APIKey, "", "application/json", `{"url":"`+own+`"}`, http.StatusOK,
		oracle.Object{"ok": true, "data": oracle.Object{"webhookUrl": own}})
	u.moves(t)

	u.run(t, after, "config", "check")
	u.run(t, after, "migrate")
	u.moves(t) // the earlier programs work with the new tables

	next := u.start(t, after, "ingest")
	next.ready(t, "standby")
	u.stop(t, ingest)
	next.ready(t, "active")
	ingest = next
	u.moves(t)

	next = u.start(t, after, "dispatch")
	next.ready(t, "")
	u.moves(t) // both divide the partners
	u.stop(t, dispatch)
	dispatch = next
	u.moves(t)

	same := u.live(t).Schema == schema
	t.Logf("the schema of the read models is the same: %t", same)
	next = u.start(t, after, "project")
	if same {
		u.stop(t, project)
	} else {
		u.moves(t) // the earlier project continues with its generation
		u.run(t, after, "projection", "rebuild")
	}
	earlier := project
	project = next
	next = u.start(t, after, "serve")
	next.ready(t, "")
	u.API, u.client.Base = u.api[after], u.api[after]
	u.moves(t)
	u.newest(t, false)
	u.run(t, after, "verify")
	u.stop(t, serve)
	serve = next

	t.Log("going back")
	if same {
		earlier = u.start(t, before, "project")
		u.stop(t, project)
	} else {
		u.run(t, before, "projection", "rollback")
		u.stop(t, project)
		u.stop(t, serve)
		serve = u.start(t, before, "serve")
		serve.ready(t, "")
		u.API = u.api[before]
	}
	next = u.start(t, before, "dispatch")
	next.ready(t, "")
	u.stop(t, dispatch)
	u.moves(t)
	next = u.start(t, before, "ingest")
	next.ready(t, "standby")
	u.stop(t, ingest)
	next.ready(t, "active")
	u.moves(t)
	if same {
		u.newest(t, false) // the new serve reads what the earlier project writes
	}
	u.run(t, before, "verify")
	if err := earlier.Running(); err != nil {
		t.Error("the earlier project:", err)
	}
}

// stand is the commit that stands for the earlier version until there is a release.
const stand = "7874ac8f"

// previous returns the revision of the earlier version.
func previous(t *testing.T) string {
	t.Helper()
	git := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "git", args...).Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	if given := os.Getenv("NAVLOG_PREVIOUS"); given != "" {
		return given
	}
	if tag := git("describe", "--tags", "--abbrev=0", "--match", "v*"); tag != "" {
		return tag
	}
	if git("rev-parse", "--verify", stand+"^{commit}") != "" {
		return stand
	}
	t.Skip("this copy of the repository has no earlier version: fetch its history, or set NAVLOG_PREVIOUS")
	return ""
}

// buildRevision builds navlog of a revision, and returns the path of the binary.
func buildRevision(t *testing.T, revision string) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	root, err := exec.CommandContext(t.Context(), "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Fatal("find the repository:", err)
	}
	for _, args := range [][]string{
		{"clone", "--quiet", "--shared", "--no-checkout", strings.TrimSpace(string(root)), source},
		{"-C", source, "checkout", "--quiet", revision},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	binary := filepath.Join(dir, "navlog")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", binary, "./cmd/navlog")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build navlog of %s: %v\n%s", revision, err, out)
	}
	return binary
}

func newUpgrade(t *testing.T, revision string) *upgrade {
	t.Helper()
	chain, contracts := startChain(t)
	r := newReceiver(t)
	file := writeConfiguration(t, "upgrade", chain.URL, contracts, r.CAFile, map[string]any{
		"kafka": map[string]any{"brokers": enginetest.Kafka(t)},
	})
	u := &upgrade{
		world: &world{run: &run{document: document{RPC: chain.URL, Contracts: *contracts}}, receiver: r,
			client: &oracle.Client{HTTP: &http.Client{Timeout: patience}}},
		binaries: map[version]string{before: buildRevision(t, revision), after: binary(t, "navlog")},
		env:      []string{"NAVLOG_CONFIG=" + file, secretKey},
		api:      map[version]string{},
	}
	return u
}

// command returns a command of a version.
func (u *upgrade) command(t *testing.T, v version, settings []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), u.binaries[v], args...)
	cmd.Env = stack.Environment(append(settings, u.env...)...)
	return cmd
}

// run runs a command, which must succeed, and returns what it writes to standard output.
func (u *upgrade) run(t *testing.T, v version, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := u.command(t, v, nil, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("navlog %s of the version %s: %v\n%s%s", strings.Join(args, " "), v, err, &stdout, &stderr)
	}
	return stdout.String()
}

// start starts a program. It is killed at the end of the test if it still runs.
func (u *upgrade) start(t *testing.T, v version, name string) *program {
	t.Helper()
	ops, api := freeAddr(t), freeAddr(t)
	if name == "serve" {
		u.api[v] = "http://" + api
	}
	settings := []string{"NAVLOG_OPS_LISTEN=" + ops, "NAVLOG_HTTP_LISTEN=" + api, "NAVLOG_HTTP_PUBLIC_RATE_LIMIT=0"}
	if v == after { // an earlier version may not know these
		settings = append(settings, "NAVLOG_HTTP_PUBLIC_ENGINE_TIME=0s", "NAVLOG_HTTP_PARTNER_RATE_LIMIT=1000000")
	}
	cmd := u.command(t, v, settings, name)
	started, err := stack.Launch(cmd, filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		started.Kill()
		if t.Failed() {
			t.Logf("%s of the version %s said:\n%s", name, v, started.Output())
		}
	})
	return &program{started, "http://" + ops}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := engines.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// stop stops a program gracefully.
func (u *upgrade) stop(t *testing.T, p *program) {
	t.Helper()
	p.Signal(os.Interrupt)
	wait.For(t, "the program ends", func() bool { return p.Running() != nil })
	if !p.State().Success() {
		t.Errorf("a program ended with %s:\n%s", p.State(), p.Output())
	}
}

// ready waits until a program is ready, in a role if one is given.
func (p *program) ready(t *testing.T, role string) {
	t.Helper()
	wait.Until(t, func() error {
		if err := p.Running(); err != nil {
			t.Fatalf("before it was ready: %v\n%s", err, p.Output())
		}
		response, err := http.Get(p.ops + "/readyz")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err == nil && (response.StatusCode != http.StatusOK || !strings.Contains(string(body), role)) {
			err = fmt.Errorf("it is %s: %s, not ready as %s", response.Status, body, role)
		}
		return err
	})
}

// live returns the live generation.
func (u *upgrade) live(t *testing.T) (live struct{ State, Schema string }) {
	t.Helper()
	var all []struct{ State, Schema string }
	out := u.run(t, after, "projection", "list", "--json")
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("projection list: %v\n%s", err, out)
	}
	for _, g := range all {
		if g.State == "live" {
			return g
		}
	}
	t.Fatalf("no generation is live: %s", out)
	return live
}

// moves lets the chain move and be reorganised, and waits until the API has the head and every event was delivered
// once.
func (u *upgrade) moves(t *testing.T) {
	t.Helper()
	u.steps(t, 6)
	if err := devchain.Reorg(t.Context(), u.RPC, 2); err != nil {
		t.Fatal(err)
	}
	u.steps(t, 6)
	u.mine(t, 10)
	h := u.read(t)
	wait.Until(t, func() error {
		status, err := u.status()
		if err == nil && status.IndexedBlock != fmt.Sprint(h.Head()) {
			err = fmt.Errorf("the API has block %s of %d", status.IndexedBlock, h.Head())
		}
		return err
	})
	expected := h.Events(u.Partners)
	wait.Until(t, func() error {
		if found := u.receiver.Compare(expected, false); len(found) > 0 {
			return errors.New(strings.Join(found[:min(len(found), reportAtMost)], "\n"))
		}
		return nil
	})
}

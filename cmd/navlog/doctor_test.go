package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/config/configtest"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/projections/write"
	"github.com/navlog/navlog/schemas/registry"
)

// TestDoctorChecksFinality checks that a node whose finalized block is its newest block is reported, unless the
// configuration allows that.
func TestDoctorChecksFinality(t *testing.T) {
	now := uint64(time.Now().Unix())
	for name, c := range map[string]struct {
		final    int64 // -1: null; -2: the connection ends
		headTime uint64
		rule     ingest.Finality
		verdict  string
		found    string
	}{
		"a final block below the head": {60, now, ingest.Finality{}, fine, "block 60 is final, 40 below"},
		"its newest block":             {100, now, ingest.Finality{}, failing, "names its newest block 100 as final"},
		"above its newest block":       {101, now, ingest.Finality{}, failing, "names its newest block 100 as final"},
		"instant finality":             {100, now, ingest.Finality{Instant: true}, fine, "block 100 is final, 0 below"},
		"a chain that has stopped":     {100, now - 3600, ingest.Finality{}, warning, "until there is a newer one"},
		"only the genesis block":       {0, now, ingest.Finality{}, fine, "block 0 is final"},
		"no final block":               {-1, now, ingest.Finality{}, warning, "returns no finalized block"},
		"no response":                  {-2, now, ingest.Finality{}, warning, "EOF"},
		"no final block, but a depth":  {-1, now, ingest.Finality{Depth: 5}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var q struct {
					ID     json.RawMessage
					Params []any
				}
				_ = json.NewDecoder(r.Body).Decode(&q)
				header := &types.Header{Number: big.NewInt(100), Time: c.headTime, Difficulty: new(big.Int)}
				result, _ := json.Marshal(header)
				if q.Params[0] == "finalized" {
					if c.final == -2 {
						panic(http.ErrAbortHandler)
					}
					header.Number = big.NewInt(c.final)
					if result, _ = json.Marshal(header); c.final < 0 {
						result = []byte("null")
					}
				}
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, result)
			}))
			defer node.Close()
			url := node.URL + "/v3/sesame"
			client, err := ethclient.Dial(url)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			e := new(examination)
			e.config.Chain.Finality = c.rule
			e.finality(t.Context(), "finality", client, url)
			if c.verdict == "" {
				if len(e.findings) > 0 {
					t.Errorf("the doctor finds %+v", e.findings)
				}
				return
			}
			if len(e.findings) != 1 || e.findings[0].Verdict != c.verdict || !strings.Contains(e.findings[0].Found, c.found) {
				t.Errorf("the doctor finds %+v, want %s: %s", e.findings, c.verdict, c.found)
			}
			if strings.Contains(e.findings[0].Found, "sesame") {
				t.Errorf("the key in the node's URL is shown: %s", e.findings[0].Found)
			}
		})
	}
}

// TestDoctorFollowsNoRedirect: the key in a node's URL is not sent to the target of a redirect.
func TestDoctorFollowsNoRedirect(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the target of the redirect got a request with the headers %v", r.Header)
	}))
	defer target.Close()
	node := httptest.NewServer(http.RedirectHandler(target.URL, http.StatusTemporaryRedirect))
	defer node.Close()
	e := new(examination)
	e.node(t.Context(), node.URL+"/v3/sesame", true)
	if len(e.findings) != 1 || e.findings[0].Verdict != failing || !strings.Contains(e.findings[0].Found, "307") {
		t.Errorf("the doctor finds %+v", e.findings)
	}
}

// TestDoctorChecksDisk checks the free space: a rebuild needs room for two more generations, and nothing can be
// written to a full disk.
func TestDoctorChecksDisk(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		free, total, largest uint64
		verdict, found       string
	}{
		{50 * gib, 100 * gib, 25 * gib, fine, "50.0 GiB free, the largest generation has 25.0 GiB"},
		{50 * gib, 100 * gib, 25*gib + 1, warning, "50.0 GiB are free, and the largest generation has 25.0 GiB"},
		{10 * gib, 100 * gib, 0, fine, "10.0 GiB free"},
		{10*gib - 1, 100 * gib, 0, warning, "10.0 GiB of 100.0 GiB are free"},
	} {
		var e examination
		e.freeSpace("disk", c.free, c.total, c.largest)
		if f := e.findings[0]; f.Verdict != c.verdict || !strings.Contains(f.Found, c.found) ||
			(f.Advice == "") != (c.verdict == fine) {
			t.Errorf("%d of %d bytes free, largest generation %d: %+v", c.free, c.total, c.largest, f)
		}
	}
}

// During an upgrade to another schema, the project of one version cannot write the live generation, and that of the
// other one writes it: answers advance, so this is no failure. If none writes it, it is.
func TestDoctorChecksProjectsOfTwoVersions(t *testing.T) {
	row := func(instance, state string, known bool) statusRow {
		generation := 1
		if state == projections.Bad {
			generation = 0
		}
		return statusRow{registry.Project, instance, 100, known,
			[]byte(fmt.Sprintf(`{"state":%q,"generation":%d,"reason":"generation 1 has schema a"}`, state, generation))}
	}
	rejected := row("new", projections.Bad, true)
	for name, c := range map[string]struct {
		rows    []statusRow
		verdict string
	}{
		"next to one that writes":       {[]statusRow{rejected, row("old", projections.Following, true)}, warning},
		"next to one that catches up":   {[]statusRow{rejected, row("old", projections.Building, true)}, warning},
		"without another":               {[]statusRow{rejected}, failing},
		"next to one that has ended":    {[]statusRow{rejected, row("old", projections.Following, false)}, failing},
		"next to one that cannot write": {[]statusRow{rejected, row("old", projections.Retrying, true)}, failing},
		"next to one that is also bad":  {[]statusRow{rejected, row("old", projections.Bad, true)}, failing},
	} {
		e := new(examination)
		e.states(c.rows)
		if f := e.findings[0]; f.Verdict != c.verdict || !strings.Contains(f.Found, "generation 1 has schema a") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// A live generation that a restored vault made bad is replaced by project itself: neither the reason nor the advice
// asks for a rebuild.
func TestDoctorOfARestoredVault(t *testing.T) {
	e := new(examination)
	e.states([]statusRow{{registry.Project, "host:1", 100, true, []byte(fmt.Sprintf(
		`{"state":"bad","generation":1,"reason":%q}`, &write.OutdatedError{Block: 3, Newest: 9}))}})
	f := e.findings[0]
	if f.Verdict != failing || !strings.Contains(f.Found, "project builds by itself") ||
		strings.Contains(f.Found+f.Advice, "rebuild") {
		t.Errorf("%+v", f)
	}
}

// A ClickHouse that stops responding between two checks is unreachable, as one that did not respond to the first.
func TestDoctorOfAServerThatGoesAway(t *testing.T) {
	server := enginetest.ClickHouse(t)
	relay, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close()
	go func() {
		for {
			client, err := relay.Accept()
			if err != nil {
				return
			}
			go relayUntil(client, server, "FROM system.settings WHERE name IN")
		}
	}()
	t.Setenv("NAVLOG_CLICKHOUSE_ADDR", relay.Addr().String())
	c, err := config.Load(configtest.Write(t, configtest.Sound), os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	e := &examination{config: c}
	e.clickHouse(t.Context(), true)
	found := slices.IndexFunc(e.findings, func(f finding) bool { return f.Verdict == failing })
	if found < 0 {
		t.Fatalf("no check failed: %+v", e.findings)
	}
	f := e.findings[found]
	if f.code != cli.Unreachable || f.Advice != "`navlog project` does not start until this is corrected" {
		t.Errorf("exit code %d, found %q, advice %q", f.code, f.Found, f.Advice)
	}
}

// relayUntil connects a client with a server until the client sends the text.
func relayUntil(client net.Conn, server, text string) {
	defer client.Close()
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer upstream.Close()
	go func() {
		_, _ = io.Copy(client, upstream)
		client.Close()
	}()
	sent := make([]byte, 64<<10)
	for {
		n, err := client.Read(sent)
		if err != nil || bytes.Contains(sent[:n], []byte(text)) {
			return
		}
		if _, err := upstream.Write(sent[:n]); err != nil {
			return
		}
	}
}

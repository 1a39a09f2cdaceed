package partner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/explain"
	"github.com/navlog/navlog/query/partner"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/users"
	"github.com/navlog/navlog/query/vaults"
)

// anAPI is the API over a small chain with a reorganisation. spoil can change each response before it is sent, and the
// key of each request is recorded.
type anAPI struct {
	url   string
	spoil func(path, body string) string
	busy  atomic.Int32 // number of requests that are rejected first
	keys  []string
}

func newAnAPI(t *testing.T) *anAPI {
	t.Helper()
	g := readtest.New(t, enginetest.ClickHouse(t))
	g.Write(readtest.SmallChain())
	return serveAnAPI(t, readtest.Serve(t, g,
		serve.Route{Path: "/api/v1/vaults", Get: vaults.List},
		serve.Route{Path: "/api/v1/vaults/{address}", Get: vaults.Detail(nil)},
		serve.Route{Path: "/api/v1/users/{address}", Get: users.Detail},
		serve.Route{Path: "/api/v1/settlement/summary", Get: vaults.Settlement},
		serve.Route{Path: "/api/v1/partner/stats", Partner: true, Get: partner.Stats},
		serve.Route{Path: "/api/v1/explain", Get: explain.New(nil).Explain, PartnerIf: explain.NeedsKey}))
}

func serveAnAPI(t *testing.T, api *readtest.Client) *anAPI {
	t.Helper()
	a := &anAPI{spoil: func(_, body string) string { return body }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.busy.Add(-1) >= 0 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		a.keys = append(a.keys, r.Header.Get("x-api-key"))
		r.Header.Del("Accept-Encoding") // spoil needs plain text
		rec := httptest.NewRecorder()
		api.Handler.ServeHTTP(rec, r)
		for name, values := range rec.Header() {
			if name != "Content-Length" {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(rec.Code)
		fmt.Fprint(w, a.spoil(r.URL.Path, rec.Body.String()))
	}))
	t.Cleanup(server.Close)
	t.Chdir(t.TempDir()) // a folder without a configuration
	a.url = server.URL
	return a
}

func (a *anAPI) explain(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err = run(t.Context(), append(append([]string{"explain"}, args...), "--url", a.url), &stdout, &stderr)
	return stdout.String(), err
}

// The logs of a number are shown and added up, human-readable and with all digits.
func TestExplain(t *testing.T) {
	api := newAnAPI(t)
	t.Setenv("NAVLOG_API_KEY", "nk_test_of_seven")
	alice, a := readtest.Alice.Hex(), readtest.VaultA.Hex()
	for _, c := range []struct{ args, want string }{
		{"user " + alice + " totalDeposited",
			"/totalDeposited of /api/v1/users/" + alice +
				" at block 11 is 170 (0.000170 USDX): the sum of 2 logs, 0 retracted shown: adds up"},
		{"user " + alice + " totalDeposited", "DepositAccepted " + alice + " +0.000070 USDX 0.000170 USDX 0xee"},
		{"user " + alice + " totalDeposited", "BLOCK INDEX SEQ KIND USER CHANGE SUM TRANSACTION "},
		{"user " + alice + " totalDeposited --as-of 5", "at block 5 is 100 (0.000100 USDX): the sum of 1 log"},
		{"user " + alice + " firstSeen", "is 2023-11-14T22:14:20.000Z: the last of 1 log"},
		{"user " + alice + " holdings/withdrawals/" + strings.ToLower(a) + "/_count", "is 1: the count of 1 log"},
		{"user " + alice + " /holdings/deposits/1/_sum/assetAmount", "is 70 (0.000070 USDX)"},
		{"vault " + a + " navPerShare", "is 1050000000000000000 (1.050000000000000000): the last of 1 log"},
		{"vault " + a + " totalSupply", "is 1000 (0.000000000000001000 nvAlpha)"},
		{"vault " + a + " userCount", "is 3: the count of 3 logs"},
		{"vault " + a + " pendingWithdrawals", "of 1 log, 0 retracted shown: adds up"},
		{"vault " + readtest.VaultB.Hex() + " navPerShare", "is null: the last of 0 logs, 0 retracted shown: adds up"},
		{"settlement " + a + " depositsToSweep/totalAmount", "is 280 (0.000280 USDX): the sum of 2 logs"},
		{"settlement " + readtest.VaultB.Hex() + " withdrawalsToFund/count", "is 1: the count of 1 log"},
		{"partner totalVolume --retracted", "is 130 (0.000130 USDX): the sum of 2 logs, 1 retracted shown: adds up"},
		{"partner totalVolume --retracted", "retracted by seq 30"},
		{"partner byVault/" + a + "/depositCount", "is 2: the count of 2 logs"},
	} {
		out, err := api.explain(t, strings.Fields(c.args)...)
		if words := strings.Join(strings.Fields(out), " "); err != nil || !strings.Contains(words, c.want) {
			t.Errorf("the output of explain %s lacks %q: %v\n%s", c.args, c.want, err, out)
		}
	}
	api.busy.Store(2)
	if _, err := api.explain(t, "user", alice, "totalDeposited"); err != nil || api.busy.Load() >= 0 {
		t.Errorf("an API with Retry-After: %v", err)
	}
	out, err := api.explain(t, "user", alice, "totalDeposited", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var end outcome
	if err != nil || len(lines) != 3 || json.Unmarshal([]byte(lines[2]), &end) != nil || !end.AddsUp || end.Sum != "170" ||
		*end.Shown != "170" || end.Logs != 2 || end.Block != "11" {
		t.Errorf("as JSON: %v\n%s", err, out)
	}
}

// The key of a partner comes from the environment or a file, and is never printed.
func TestExplainWithAKey(t *testing.T) {
	t.Setenv("NAVLOG_API_KEY", "")
	api := newAnAPI(t)
	if _, err := api.explain(t, "partner", "totalVolume"); cli.CodeOf(err) != cli.Usage ||
		!strings.Contains(err.Error(), "NAVLOG_API_KEY") {
		t.Errorf("without a key: %v", err)
	}
	if _, err := api.explain(t, "partner", "totalVolume", "--key-file", "nowhere"); cli.CodeOf(err) != cli.Usage {
		t.Errorf("with a missing file: %v", err)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("nk_test_in_a_file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for environment, flags := range map[string][]string{"": {"--key-file", file}, "nk_test_of_seven": nil} {
		t.Setenv("NAVLOG_API_KEY", environment)
		out, err := api.explain(t, append([]string{"partner", "totalVolume"}, flags...)...)
		if err != nil || strings.Contains(out, "nk_test") {
			t.Errorf("with a key: %v\n%s", err, out)
		}
		want := "nk_test_in_a_file"
		if environment != "" {
			want = environment
		}
		if last := api.keys[len(api.keys)-1]; last != want {
			t.Errorf("the key that was sent is %q", last)
		}
	}
}

// An API that is wrong about anything is detected: the command adds up the logs itself.
func TestExplainFindsDifferences(t *testing.T) {
	api := newAnAPI(t)
	alice := readtest.Alice.Hex()
	for name, c := range map[string]struct{ where, from, to, part string }{
		"a changed number": {"/users/", `"totalDeposited":"170"`, `"totalDeposited":"171"`,
			"the response shows 171, but its logs come to 170"},
		"null with logs": {"/users/", `"totalDeposited":"170"`, `"totalDeposited":null`,
			"null, but its logs come to 170"},
		"a changed log amount": {"/explain", `"change":"100"`, `"change":"101"`, "add up to 101, but the API reports 100"},
		"a changed sum":        {"/explain", `"sum":"170"`, `"sum":"171"`, "add up to 170, but the API reports 171"},
		"a missing log":        {"/explain", `"total":2`, `"total":3`, "reports 3 logs, but shows 2"},
		"an unknown state":     {"/explain", `"state":"live"`, `"state":"dead"`, "is dead"},
		"retracted, but counted": {"/explain", `"state":"live"`, `"state":"retracted"`,
			"is retracted, but changes the number by 100"},
		"a sum that is a count": {"/explain", `"operation":"sum"`, `"operation":"count"`,
			`the "count" of its logs, but it is their sum`},
	} {
		requests := 0
		api.spoil = func(path, body string) string {
			if strings.Contains(path, c.where) {
				requests++
				return strings.Replace(body, c.from, c.to, 1)
			}
			return body
		}
		out, err := api.explain(t, "user", alice, "totalDeposited")
		if cli.CodeOf(err) != cli.Different || !strings.Contains(err.Error(), c.part) ||
			!strings.Contains(out, "DOES NOT ADD UP") || requests != tries {
			t.Errorf("%s: after %d tries: %v\n%s", name, requests, err, out)
		}
	}
	for number, c := range map[string]struct{ from, to, part string }{
		"user " + alice + " holdings/deposits/1/_count": {`"change":"1"`, `"change":"2"`, "counts as 2 instead of one"},
		"vault " + readtest.VaultA.Hex() + " navPerShare": {`"events":\[(.+?)\]`, `"events":[$1,$1]`,
			"is the second one that contains the number"},
	} {
		api.spoil = func(_, body string) string { return regexp.MustCompile(c.from).ReplaceAllString(body, c.to) }
		if out, err := api.explain(t, strings.Fields(number)...); cli.CodeOf(err) != cli.Different ||
			!strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: %v\n%s", number, err, out)
		}
	}
	// A single mismatch can be a reorganisation between two responses, so only a second one is reported.
	for flag, want := range map[string]string{"--retracted": ": adds up\n", "--json": `"addsUp":true}` + "\n"} {
		spoiled := false
		api.spoil = func(path, body string) string {
			if spoiled || !strings.Contains(path, "/users/") {
				return body
			}
			spoiled = true
			return strings.Replace(body, `"totalDeposited":"170"`, `"totalDeposited":"171"`, 1)
		}
		out, err := api.explain(t, "user", alice, "totalDeposited", flag)
		if err != nil || !strings.HasSuffix(out, want) || strings.Count(out, alice) != 3 || strings.Contains(out, "171") ||
			strings.Contains(out, "TRANSACTION") != (flag == "--retracted") {
			t.Errorf("a reorganisation between two responses, %s: %v\n%s", flag, err, out)
		}
	}
	for name, c := range map[string]struct {
		args string
		from string
		to   string
		want cli.Code
		part string
	}{
		"no such number":  {"user " + alice + " nonsense", "", "", cli.Usage, "has no number /nonsense"},
		"an object":       {"user " + alice + " holdings", "", "", cli.Usage, "it is not a number"},
		"below a number":  {"user " + alice + " totalDeposited/x", "", "", cli.Usage, "nothing below"},
		"no such element": {"user " + alice + " holdings/deposits/7/_count", "", "", cli.Usage, `no "7"`},
		"no such vault":   {"user " + alice + " holdings/deposits/" + alice + "/_count", "", "", cli.Usage, "no \"" + alice},
		"not a number":    {"user " + alice + " address", "", "", cli.Usage, "responded with 400"},
		"invalid address": {"user 0x12 totalDeposited", "", "", cli.Usage, "responded with 400"},
		"no such user": {"user " + readtest.Unknown.Hex() + " totalDeposited", "", "", cli.Failed,
			"There is no such user."},
		"no such block": {"user " + alice + " totalDeposited --as-of 12", "", "", cli.Usage, "asOfBlock"},
		"too many logs": {"user " + alice + " totalDeposited", `"total":2`, `"total":100001`, cli.Failed,
			"consists of 100001 logs"},
		"invalid JSON": {"user " + alice + " totalDeposited", `{"ok"`, `<html`, cli.Failed,
			"did not send a response of navlog"},
		"another API": {"user 0x12 totalDeposited", `{"ok":false`, `<html`, cli.Failed, "is that the API of navlog"},
		"malformed events": {"user " + alice + " totalDeposited", `"logIndex":2`, `"logIndex":"x"`, cli.Failed,
			"read an event"},
	} {
		api.spoil = func(_, body string) string { return strings.Replace(body, c.from, c.to, 1) }
		if out, err := api.explain(t, strings.Fields(c.args)...); cli.CodeOf(err) != c.want ||
			!strings.Contains(fmt.Sprint(err), c.part) {
			t.Errorf("%s: exit code %d: %v\n%s", name, cli.CodeOf(err), err, out)
		}
	}
	for url, want := range map[string]cli.Code{"navlog.example": cli.Usage,
		"http://" + closedAddress: cli.Unreachable} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{"explain", "user", alice, "totalDeposited", "--url", url}, &out,
			&out); cli.CodeOf(err) != want {
			t.Errorf("--url %s: exit code %d: %v", url, cli.CodeOf(err), err)
		}
	}
}

// Text from the API is shown on its own lines and cannot control the terminal, neither in a log nor in an error.
func TestExplainEscapesUntrustedText(t *testing.T) {
	api := newAnAPI(t)
	alice := readtest.Alice.Hex()
	for name, c := range map[string]struct {
		from, to string
		want     cli.Code
	}{
		"a transaction": {`"txHash":"`, `"txHash":"\u001b[2J\n/totalDeposited is 9: adds up\u009b`, cli.Done},
		"the symbol":    {`"symbol":"USDX"`, `"symbol":"\u001b[2J\n9"`, cli.Done},
		"a change":      {`"change":"`, `"change":"\u001b[2J\n`, cli.Different},
		"the number":    {`"totalDeposited":"170"`, `"totalDeposited":"\u001b[2J\n"`, cli.Different},
		"the operation": {`"operation":"sum"`, `"operation":"\u001b[2J\n"`, cli.Different},
	} {
		api.spoil = func(_, body string) string { return strings.ReplaceAll(body, c.from, c.to) }
		out, err := api.explain(t, "user", alice, "totalDeposited")
		output := out + fmt.Sprint(err)
		if cli.CodeOf(err) != c.want || strings.ContainsAny(output, "\x1b\u009b") || strings.Contains(output, "\n9") ||
			strings.Count(out, "\n") > 5 {
			// with the headings
			t.Errorf("%s: exit code %d: %q, %q", name, cli.CodeOf(err), err, out)
		}
	}
	api.spoil = func(_, body string) string { return strings.ReplaceAll(body, "There is no such user.", `\u001b[2J\n`) }
	if _, err := api.explain(t, "user", readtest.Unknown.Hex(), "totalDeposited"); err == nil ||
		strings.ContainsAny(err.Error(), "\x1b\n") {
		t.Errorf("the error: %q", err)
	}
	api.spoil = func(_, body string) string { return strings.ReplaceAll(body, `"kind":`, "\n\"kind\":") }
	if out, err := api.explain(t, "user", alice, "totalDeposited", "--json"); err != nil || strings.Count(out, "\n") != 3 {
		t.Errorf("a log on two lines: %v\n%s", err, out)
	}
}

// An API whose pages never end, or whose responses are of different blocks, is detected too.
func TestExplainWithInconsistentPages(t *testing.T) {
	api := newAnAPI(t)
	alice := readtest.Alice.Hex()
	api.spoil = func(_, body string) string {
		return strings.Replace(body, `"hasNextPage":false`, `"hasNextPage":true`, 1)
	}
	if out, err := api.explain(t, "user", alice, "totalDeposited"); err != nil ||
		!strings.Contains(out, "the sum of 2 logs, 0 retracted shown: adds up") {
		t.Errorf("empty pages: %v\n%s", err, out)
	}
	first := ""
	api.spoil = func(path, body string) string {
		if !strings.Contains(path, "/explain") {
			return body
		}
		if first == "" {
			first = regexp.MustCompile(`"change":"\d+"`).ReplaceAllString(strings.ReplaceAll(body, `"state":"live"`,
				`"state":"retracted"`), `"change":"0"`)
			first = strings.Replace(first, `"hasNextPage":false`, `"hasNextPage":true`, 1)
		}
		return first
	}
	if out, err := api.explain(t, "user", alice, "totalDeposited", "--retracted"); cli.CodeOf(err) != cli.Different ||
		!strings.Contains(err.Error(), "the API reports 2 logs, but shows 4") {
		t.Errorf("a repeated page: %v\n%s", err, out)
	}
	api.spoil = func(_, body string) string { return body }
	to, err := url.Parse(api.url)
	if err != nil {
		t.Fatal(err)
	}
	ignoring := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.URL.RawQuery = ""
	}})
	defer ignoring.Close()
	var out bytes.Buffer
	err = run(t.Context(), []string{"explain", "user", alice, "totalDeposited", "--as-of", "5", "--url", ignoring.URL},
		&out, &out)
	if cli.CodeOf(err) != cli.Different ||
		!strings.Contains(err.Error(), "was requested as of block 5, but the response is as of block 11") {
		t.Errorf("a response as of another block: %v\n%s", err, out.String())
	}
}

package cli

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

type nodeCmd struct {
	RPC      string   `name:"rpc" env:"NODE_RPC" secret:"--rpc-file FILE or NODE_RPC"`
	Upstream []string `name:"upstream" sep:"none" secret:"NODE_UPSTREAM"`
	URL      string   `name:"url"`
}

func (nodeCmd) Run(*Streams) error { return nil }

// A key in a flag can be read by every user of the machine: the command warns about it without repeating the key. A
// key in the environment cannot, and a URL without a key needs no warning.
func TestWarningAboutSecretInFlag(t *testing.T) {
	warnings := func(args ...string) string {
		t.Helper()
		var out, other bytes.Buffer
		err := Run(context.Background(), "tool", "A tool.", new(struct {
			Node nodeCmd `cmd:""`
		}), append([]string{"node"}, args...), &out, &other, kong.Vars{})
		if err != nil || out.Len() > 0 || strings.Contains(other.String(), "sesame") {
			t.Errorf("%q: %v, %s%s", args, err, out.String(), other.String())
		}
		return other.String()
	}
	for _, url := range []string{
		"https://node.example/v3/sesame", "https://node.example/?key=sesame", "wss://u:sesame@node.example",
		"https://sesame@node.example/",
	} {
		want := "tool: warning: everybody on this machine can read --rpc, and a key in it, in the list of processes: " +
			"use --rpc-file FILE or NODE_RPC\n"
		for _, args := range [][]string{{"--rpc", url}, {"--rpc=" + url}} {
			if got := warnings(args...); got != want {
				t.Errorf("%q: %q", args, got)
			}
		}
		got := warnings("--upstream", "http://127.0.0.1:8545", "--upstream", url)
		if !strings.Contains(got, "read --upstream,") || !strings.Contains(got, "use NODE_UPSTREAM\n") {
			t.Errorf("a list of URLs: %q", got)
		}
	}
	for _, args := range [][]string{
		nil, {"--rpc", "http://127.0.0.1:8545"}, {"--rpc=https://node.example/"}, {"--url", "https://navlog.example/sesame"},
	} {
		if got := warnings(args...); got != "" {
			t.Errorf("%q: %q", args, got)
		}
	}
	t.Setenv("NODE_RPC", "https://node.example/sesame")
	if got := warnings(); got != "" {
		t.Errorf("from the environment: %q", got)
	}
}

// The URL of a node is read from one place; several places are an error.
func TestURLOfANodeIsReadFromOnePlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rpc")
	if err := os.WriteFile(file, []byte("https://node.example/sesame\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const url = "https://node.example/sesame"
	for what, c := range map[string]struct {
		node        Node
		environment map[string]string
		want, fault string
	}{
		"nowhere":              {Node{}, nil, "", ""},
		"a flag":               {Node{RPC: " " + url}, map[string]string{"X_RPC": "https://other.example"}, url, ""},
		"a file":               {Node{File: file}, map[string]string{"X_RPC": "https://other.example"}, url, ""},
		"a variable":           {Node{}, map[string]string{"X_RPC": url + "\n"}, url, ""},
		"a file of a variable": {Node{}, map[string]string{"X_RPC_FILE": file}, url, ""},
		"two flags":            {Node{RPC: url, File: file}, nil, "", "--rpc and --rpc-file are both given"},
		"two variables": {Node{}, map[string]string{"X_RPC": url, "X_RPC_FILE": file}, "",
			"X_RPC and X_RPC_FILE are both given"},
		"no such file":           {Node{File: file + "s"}, nil, "", "--rpc-file: open"},
		"no such file, variable": {Node{}, map[string]string{"X_RPC_FILE": file + "s"}, "", "X_RPC_FILE: open"},
		"white space in the URL": {Node{RPC: "https://node.example/ses ame"}, nil, "",
			"the value of --rpc has white space in it"},
	} {
		t.Run(what, func(t *testing.T) {
			for name, value := range c.environment {
				t.Setenv(name, value)
			}
			c.node.Variable = "X_RPC"
			got, err := c.node.URL()
			if got != c.want || (err != nil) != (c.fault != "") {
				t.Errorf("%q, %v", got, err)
			}
			if text := fmt.Sprint(err); err != nil &&
				(CodeOf(err) != Usage || !strings.Contains(text, c.fault) || strings.Contains(text, "sesame")) {
				t.Error(err)
			}
		})
	}
	_, _, err := Node{Variable: "X_RPC"}.Dial(t.Context())
	if CodeOf(err) != Usage || !strings.Contains(err.Error(), "--rpc-file, set X_RPC") {
		t.Error(err)
	}
}

// The key in a node's URL is not sent to the target of a redirect, in no header either.
func TestNodeThatRedirects(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the target of the redirect got a request with the headers %v", r.Header)
	}))
	defer target.Close()
	node := httptest.NewServer(http.RedirectHandler(target.URL, http.StatusTemporaryRedirect))
	defer node.Close()
	client, _, err := Node{RPC: node.URL + "/v3/sesame"}.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.BlockNumber(t.Context()); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("the call gives %v", err)
	}
}

// A node that accepts the connection and does not respond fails the call, and the command does not wait forever.
func TestSilentNode(t *testing.T) {
	before := nodeWithin
	nodeWithin = 50 * time.Millisecond
	t.Cleanup(func() { nodeWithin = before })
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	client, _, err := Node{RPC: "http://" + silent.Addr().String()}.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := client.BlockNumber(ctx); CodeOf(err) != Unreachable || ctx.Err() != nil {
		t.Errorf("the call ends with %d: %v", CodeOf(err), err)
	}
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

func TestFaultproxyCommand(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":"0x10"}`)
	}))
	defer node.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	lines, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"faultproxy", "--seed", "7", "--upstream", node.URL, "--faults", "429,502", "--rate", "1",
			"--json"}, out, io.Discard)
		out.Close()
	}()

	decoder := json.NewDecoder(bufio.NewReader(lines))
	var first struct {
		Listening string
		Seed      int
	}
	if err := decoder.Decode(&first); err != nil || first.Seed != 7 {
		t.Fatalf("the first line is %+v, %v", first, err)
	}
	answered := make(chan int, 1)
	go func() {
		response, err := http.Post(first.Listening, "application/json",
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}`))
		if err != nil {
			answered <- 0
			return
		}
		response.Body.Close()
		answered <- response.StatusCode
	}()
	var injected struct {
		Fault, Method string
		Call          int
	}
	if err := decoder.Decode(&injected); err != nil || injected.Method != "eth_chainId" || injected.Call != 1 {
		t.Errorf("the line of a fault is %+v, %v", injected, err)
	}
	if status := <-answered; strconv.Itoa(status) != injected.Fault {
		t.Errorf("status %d after the line %+v", status, injected)
	}
	stop()
	var last struct{ Injected map[string]int }
	if err := decoder.Decode(&last); err != nil || last.Injected[injected.Fault] != 1 {
		t.Errorf("the last line is %+v, %v", last, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestFaultproxyMistakes(t *testing.T) {
	taken := httptest.NewServer(nil)
	defer taken.Close()
	for _, m := range []struct {
		args []string
		want string
	}{
		{nil, "--upstream"},
		{[]string{"--upstream", "ws://127.0.0.1:1"}, "only http and https"},
		{[]string{"--upstream", "http://127.0.0.1:1", "--faults", "gremlins"}, "there is no fault"},
		{[]string{"--upstream", "http://127.0.0.1:1", "--rate", "7"}, "0 to 1"},
		{[]string{"--upstream", "http://127.0.0.1:1", "--faults", "all,lies", "--ahead", "0"},
			"above the head and must be 1 or more"},
		{[]string{"--upstream", "http://127.0.0.1:1", "--listen", taken.Listener.Addr().String()}, "choose another address"},
	} {
		err := run(t.Context(), append([]string{"faultproxy"}, m.args...), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), m.want) {
			t.Errorf("navlog-dev faultproxy %s: %v, want %q", strings.Join(m.args, " "), err, m.want)
		}
	}
}

// The command's help names every fault, including every lie.
func TestFaultproxyHelp(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"faultproxy", "--help"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, "block-over-limit") ||
		!strings.Contains(text, "zero-bloom") || !strings.Contains(text, "on purpose") {
		t.Errorf("help: %s", text)
	}
}

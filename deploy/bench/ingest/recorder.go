package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// traffic is what a program asked its node for.
type traffic struct {
	Calls  map[string]int `json:"calls"`  // by method, those of a batch one by one
	Bodies int            `json:"bodies"` // HTTP requests
	Sent   int64          `json:"sentBytes"`
	Got    int64          `json:"gotBytes"`

	ranges [][]byte // the requests with eth_getLogs, as they were sent
}

// A recorder is a proxy in front of a node that notes what is asked. It costs time, so it is never part of a timed run.
type recorder struct {
	url    string
	server *http.Server

	mu   sync.Mutex
	seen traffic
}

func startRecorder(upstream string) (*recorder, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the recording proxy: %w", err)
	}
	r := &recorder{url: "http://" + l.Addr().String(), seen: traffic{Calls: map[string]int{}}}
	r.server = &http.Server{Handler: r.handler(upstream), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(l) }() // it ends by stop
	return r, nil
}

func (r *recorder) handler(upstream string) http.Handler {
	client := &http.Client{}
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		forward, err := http.NewRequestWithContext(q.Context(), http.MethodPost, upstream, bytes.NewReader(body))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		forward.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(forward)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		w.WriteHeader(answer.StatusCode)
		n, _ := io.Copy(w, answer.Body) // a client that has gone is counted up to there
		r.note(body, n)
	})
}

func (r *recorder) note(body []byte, answered int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.Bodies++
	r.seen.Sent += int64(len(body))
	r.seen.Got += answered
	for _, method := range methods(body) {
		r.seen.Calls[method]++
	}
	if bytes.Contains(body, []byte(`"eth_getLogs"`)) {
		r.seen.ranges = append(r.seen.ranges, body)
	}
}

// methods are the calls in the body of a request, which is one or a batch.
func methods(body []byte) (names []string) {
	type call struct {
		Method string `json:"method"`
	}
	var many []call
	if json.Unmarshal(body, &many) != nil {
		many = make([]call, 1)
		_ = json.Unmarshal(body, &many[0]) // no call at all: a method without a name
	}
	for _, c := range many {
		names = append(names, c.Method)
	}
	return names
}

// stop ends the proxy and says what it saw.
func (r *recorder) stop() traffic {
	_ = r.server.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// fetch asks the node for the recorded ranges in the same order, one request in flight, and throws the answers away.
func (t traffic) fetch(ctx context.Context, url string) (took time.Duration, got int64, err error) {
	client := &http.Client{}
	began := time.Now()
	for _, body := range t.ranges {
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return 0, 0, err
		}
		q.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(q)
		if err != nil {
			return 0, 0, fmt.Errorf("fetch a recorded range: %w", err)
		}
		n, err := io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if err != nil {
			return 0, 0, fmt.Errorf("fetch a recorded range: %w", err)
		}
		got += n
	}
	return time.Since(began), got, nil
}

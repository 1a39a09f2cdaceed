package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/bench/workload"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

const (
	// openStreams is the number of open streams: half of what navlog serve allows.
	openStreams = 1000
	// streamsPerAddress is the limit for one address. Each address is in a different /24, because those are limited
	// too.
	streamsPerAddress = 100
)

// stream opens streams and measures what one block per second costs navlog serve with them: CPU time, and additional
// resident memory. Each stream must receive every unit.
func (w *world) stream(ctx context.Context) ([]bench.Bar, error) {
	s, err := w.serve(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if _, err := fetch("http://" + s.addr + api + "/events?pageSize=1"); err != nil {
		// what is allocated only once is allocated now
		return nil, err
	}
	before, err := s.memory()
	if err != nil {
		return nil, err
	}
	var listeners sync.WaitGroup
	var opened, failed atomic.Int64
	units := make([]*atomic.Int64, openStreams)
	conns := make([]net.Conn, openStreams)
	for i := range conns {
		units[i] = new(atomic.Int64)
		client := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+i/streamsPerAddress), 1)}}
		if conns[i], err = client.DialContext(ctx, "tcp", s.addr); err != nil {
			return nil, err
		}
		listeners.Go(func() {
			if err := listen(conns[i], s.addr, &opened, units[i]); err != nil {
				failed.Add(1)
			}
		})
	}
	defer listeners.Wait()
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	bounded, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	if err := wait.Poll(bounded, 10*time.Millisecond, func() (bool, error) {
		if failed.Load() > 0 {
			return false, errors.New("one was ended")
		}
		return opened.Load() == openStreams, nil
	}); err != nil {
		return nil, fmt.Errorf("%d of %d streams were opened: %w", opened.Load(), openStreams, err)
	}
	spent, err := stack.CPU(s.Pid)
	if err != nil {
		return nil, err
	}
	blocks := max(1, int64(w.Each/time.Second))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	began := time.Now()
	for range blocks {
		<-tick.C
		if err := w.append(); err != nil {
			return nil, err
		}
	}
	bounded, cancel = context.WithTimeout(ctx, readyWithin)
	defer cancel()
	missing := func(u *atomic.Int64) bool { return u.Load() < blocks }
	heard := wait.Poll(bounded, 100*time.Millisecond, func() (bool, error) {
		return !slices.ContainsFunc(units, missing), nil
	})
	took := time.Since(began)
	after, err := stack.CPU(s.Pid)
	if err != nil {
		return nil, err
	}
	memory, err := s.memory()
	if err != nil {
		return nil, err
	}
	share := 100 * (after - spent).Seconds() / took.Seconds()
	fmt.Printf("\nstream, %d of them, %d blocks in %.0f s: %d cut off; %.1f %% of a core, %.1f MiB more\n",
		openStreams, blocks, took.Seconds(), failed.Load(), share, memory-before)
	if heard != nil || failed.Load() > 0 {
		return nil, errors.New("a stream did not receive every unit")
	}
	return []bench.Bar{
		{Name: "stream-memory-mib", Value: memory - before, Bound: 64},
		{Name: "stream-core-percent", Value: share, Bound: 10},
	}, nil
}

// listen requests the stream and counts the units that it receives until the connection ends.
func listen(c net.Conn, addr string, opened, units *atomic.Int64) error {
	if _, err := fmt.Fprintf(c, "GET %s/stream HTTP/1.1\r\nHost: %s\r\n\r\n", api, addr); err != nil {
		return err
	}
	in := bufio.NewReaderSize(c, 4<<10)
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return err
		case bytes.HasPrefix(line, []byte("HTTP/1.1 ")) && !bytes.HasPrefix(line, []byte("HTTP/1.1 200")):
			return fmt.Errorf("the stream is refused: %s", line)
		case bytes.HasPrefix(line, []byte("retry:")):
			opened.Add(1)
		case bytes.HasPrefix(line, []byte("event: unit")):
			units.Add(1)
		}
	}
}

// people asks what the pages ask apart from lists: the daily series of a year, and the first page of the events behind
// a number with many events, one at a time with the cache off, while the chain grows.
func (w *world) people(ctx context.Context) ([]bench.Bar, error) {
	ctx, s, stop, err := w.serveLive(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	explain := func(of, field string) func(*rand.Rand) string {
		return fixed(api + "/explain?" + url.Values{"of": {api + of}, "field": {field}}.Encode())
	}
	const series, deposited, count = "series-year-by-day", "explain-router-deposited", "explain-users-of-a-vault"
	questions := []question{
		{name: series, path: func(r *rand.Rand) string {
			to := time.Unix(int64(w.time(r)), 0).UTC()
			return fmt.Sprintf("%s/vaults/%s/series?interval=day&from=%d&to=%d", api, vault(r), to.AddDate(-1, 0, 0).Unix(),
				to.Unix())
		}},
		{name: deposited, path: explain("/users/"+workload.Router.Hex(), "/totalDeposited")},
		{name: count, path: explain("/vaults/"+workload.VaultAddress(0).Hex(), "/stats/userCount")},
	}
	t, err := w.inTurns(ctx, s, questions)
	if err != nil {
		return nil, err
	}
	t.print("what people ask, one at a time")
	if t.first != nil {
		return nil, t.first
	}
	return []bench.Bar{
		{Name: series + "-p99-ms", Value: bench.Quantile(t.of[series], 0.99), Bound: 50},
		{Name: "explain-first-page-p99-ms", Bound: 100,
			Value: max(bench.Quantile(t.of[deposited], 0.99), bench.Quantile(t.of[count], 0.99))},
	}, nil
}

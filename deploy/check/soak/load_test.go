package soak

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/navlog/navlog/deploy/testkit/fleet"
)

// readers send requests to the API. Any status except 200 is an error, but a busy machine may be too slow for a few of
// them, which the API says with a 503.
type readers struct {
	api, key string
	vaults   []string
	client   *http.Client
	block    atomic.Uint64 // newest block of a response
	requests atomic.Int64
	late     atomic.Int64 // of them: 503 with Retry-After
	streams  atomic.Int64
}

const (
	// readerPause is the pause of each reader after a response; there are two, so about ten requests a second.
	readerPause = 200 * time.Millisecond
	// unitsOfStream is after how many units a client of the stream connects again.
	unitsOfStream = 200
	// lookPause is the pause between requests for the newest block.
	lookPause = 50 * time.Millisecond
)

func newReaders(s *system) *readers {
	r := &readers{api: s.Programs["serve"].API, key: s.Partners[0].APIKey,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}
	for _, v := range s.Contracts.Vaults {
		r.vaults = append(r.vaults, v.Address.Hex())
	}
	return r
}

// start starts all readers. The first error of one of them is passed to fail.
func (r *readers) start(ctx context.Context, fail func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	run := func(pause time.Duration, read func(i int) error) {
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := read(i); err != nil && ctx.Err() == nil {
					fail(err)
					return
				}
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		})
	}
	newest := func(i int) string {
		paths := r.newest()
		return paths[i%len(paths)]
	}
	run(lookPause, func(int) error { return r.get(ctx, "/api/v1/vaults") })
	run(readerPause, func(i int) error { return r.get(ctx, newest(i)) })
	run(readerPause, func(i int) error {
		block := r.block.Load()
		if block == 0 {
			return nil
		}
		// A past block, different each time, so that no cache has the response. The newest ones may be ahead of a new
		// generation for a moment.
		return r.get(ctx, fmt.Sprintf("/api/v1/users?pageSize=%d&asOfBlock=%d", 1+i%100, block-behind-uint64(i)%16))
	})
	run(readerPause, func(int) error { return r.stream(ctx) })
	return func() {
		cancel()
		group.Wait()
		r.client.CloseIdleConnections()
	}
}

// newest returns requests about the newest block: lists, a file, and those of a partner.
func (r *readers) newest() []string {
	paths := []string{
		"/api/v1/users", "/api/v1/events", "/api/v1/events?format=csv", "/api/v1/reorganisations",
		"/api/v1/queues/withdrawals",
		"/api/v1/settlement/summary", "/api/v1/partner/stats", "/api/v1/partner/deposits",
		"/api/v1/partner/webhooks/deliveries", "/status",
	}
	for _, v := range r.vaults {
		paths = append(paths, "/api/v1/vaults/"+v, "/api/v1/vaults/"+v+"/nav", "/api/v1/vaults/"+v+"/users")
	}
	return paths
}

func (r *readers) open(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.api+path, nil)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(path, "/api/v1/partner/") {
		request.Header.Set("X-API-Key", r.key)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	switch {
	case response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") != "":
		r.late.Add(1)
	case response.StatusCode != http.StatusOK:
		body, _ := io.ReadAll(response.Body)
		return nil, errors.Join(fmt.Errorf("%s: %s: %s", path, response.Status, body), response.Body.Close())
	}
	return response, nil
}

func (r *readers) get(ctx context.Context, path string) error {
	response, err := r.open(ctx, path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	r.requests.Add(1)
	block, err := strconv.ParseUint(response.Header.Get("X-Indexed-Block"), 10, 64)
	for now := r.block.Load(); err == nil && block > now && !r.block.CompareAndSwap(now, block); now = r.block.Load() {
	}
	return nil
}

// stream reads the stream for some units, and then disconnects.
func (r *readers) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := r.open(ctx, "/api/v1/stream")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for units := 0; units < unitsOfStream; {
		if !lines.Scan() {
			return lines.Err() // the server ended it: connect again
		}
		if lines.Text() == "event: unit" {
			units++
		}
	}
	r.streams.Add(1)
	return nil
}

// receiver makes the partners' receiver fail at times: it refuses the first attempt of each fourth event, and while it
// fails it refuses all of the first partner.
type receiver struct{ until atomic.Int64 } // Unix nanoseconds

const refusedOf = 4

func newReceiver(server *fleet.Receiver) *receiver {
	r := &receiver{}
	server.Refuse(func(partner uint32, event string, attempt int) bool {
		hash := fnv.New32a()
		hash.Write([]byte(event))
		return attempt == 1 && hash.Sum32()%refusedOf == 0 ||
			partner == 1 && time.Now().UnixNano() < r.until.Load()
	})
	return r
}

func (r *receiver) fail(d time.Duration) { r.until.Store(time.Now().Add(d).UnixNano()) }

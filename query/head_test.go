package query

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestLazyIsReadOnce: by the first of many, and what fails is left to the next.
func TestLazyIsReadOnce(t *testing.T) {
	p := newLazy[int]()
	if _, err := p.get(t.Context(), func() (int, error) { return 0, errors.New("the engine is gone") }); err == nil {
		t.Fatal("the reader's error was lost")
	}
	const many = 50
	var asked, reads atomic.Int64
	var group sync.WaitGroup
	for range many {
		group.Go(func() {
			asked.Add(1)
			got, err := p.get(t.Context(), func() (int, error) {
				reads.Add(1)
				for asked.Load() < many { // so that the others come while it is read
					runtime.Gosched()
				}
				return 7, nil
			})
			if got != 7 || err != nil {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
	group.Wait()
	same(t, "reads", reads.Load(), int64(1))
}

// TestLazyIsNotWaitedForTooLong: a request whose time is over does not wait for
// a slow reader, who goes on for the others.
func TestLazyIsNotWaitedForTooLong(t *testing.T) {
	p := newLazy[int]()
	reading, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_, _ = p.get(context.Background(), func() (int, error) {
			close(reading)
			<-goOn
			return 7, nil
		})
	}()
	<-reading
	over, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := p.get(over, func() (int, error) { t.Error("read twice"); return 0, nil })
	var f *failure
	if !errors.As(err, &f) || f.status != 503 {
		t.Errorf("waited for the reader and got %v", err)
	}
	close(goOn)
	<-done
	got, err := p.get(t.Context(), func() (int, error) { t.Error("read again"); return 0, nil })
	if got != 7 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

package ask

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/navlog/navlog/query/state"
)

// reads are the statements of a test's look-ups: each ends when the test lets it.
type reads struct {
	lookups[string, string]
	asked chan []string
	reply chan error
	ended chan error // of the context of a statement that is cancelled
}

func newReads(keep string) *reads {
	r := &reads{asked: make(chan []string, 9), reply: make(chan error), ended: make(chan error, 9)}
	r.of, r.keep = map[string]*lookup[string, string]{}, func(name string) bool { return strings.HasPrefix(name, keep) }
	r.name = func(row *string) (string, bool) { return *row, *row != "cursor" }
	r.read = func(ctx context.Context, names []string) ([]string, error) {
		r.asked <- slices.Clone(names)
		select {
		case err := <-r.reply:
			if err != nil && err.Error() == "panic" {
				panic("in a statement")
			}
			return append([]string{"cursor"}, names...), err
		case <-ctx.Done():
			r.ended <- ctx.Err()
			return nil, &state.Error{Err: ctx.Err()}
		}
	}
	return r
}

// get reads names, and returns a channel that receives the result.
func (r *reads) get(ctx context.Context, names ...string) <-chan any {
	out := make(chan any, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				out <- v
			}
		}()
		read, err := r.lookups.get(ctx, names)
		if err != nil {
			out <- err
			return
		}
		var rows []string
		for _, some := range read {
			rows = append(rows, some...)
		}
		out <- strings.Join(rows, " ")
	}()
	synctest.Wait()
	return out
}

func (r *reads) wantAsked(t *testing.T, names ...string) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-r.asked:
		if !slices.Equal(got, names) {
			t.Errorf("the statement reads %q, want %q", got, names)
		}
	default:
		if len(names) > 0 {
			t.Errorf("no statement reads %q", names)
		}
	}
	if len(r.asked) > 0 {
		t.Error("a second statement runs")
	}
}

// TestLookups: names requested while a statement runs are read by the next one, each name once at a time, and only
// some are kept.
func TestLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads("vault")
		first := r.get(t.Context(), "vault 1", "user 1")
		r.wantAsked(t, "vault 1", "user 1")
		second := r.get(t.Context(), "user 2", "vault 1")
		third := r.get(t.Context(), "user 3", "user 2", "user 1")
		r.wantAsked(t)
		r.reply <- nil
		r.wantAsked(t, "user 2", "user 3")
		if got := <-first; got != "cursor vault 1 user 1" {
			t.Errorf("first: %v", got)
		}
		r.reply <- nil
		if got := <-second; got != "cursor user 2 cursor vault 1" {
			t.Errorf("second: %v", got)
		}
		if got := <-third; got != "cursor user 2 user 3 cursor user 1" {
			t.Errorf("third: %v", got)
		}
		if got := <-r.get(t.Context(), "vault 1"); got != "cursor vault 1" {
			t.Errorf("a name that is kept: %v", got)
		}
		again := r.get(t.Context(), "vault 1", "user 1")
		r.wantAsked(t, "user 1")
		r.reply <- nil
		if got := <-again; got != "cursor vault 1 cursor user 1" {
			t.Errorf("a name that is not kept, with one that is: %v", got)
		}
		if len(r.of) != 1 {
			t.Errorf("%d names are kept", len(r.of))
		}
	})
}

// TestLookupsFail: an error and a panic reach all callers, and nothing is kept of them.
func TestLookupsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads("vault")
		for _, fault := range []string{"the engine is down", "panic"} {
			calls := []<-chan any{r.get(t.Context(), "vault 1"), r.get(t.Context(), "vault 1")}
			r.wantAsked(t, "vault 1")
			r.reply <- errors.New(fault)
			for _, call := range calls {
				switch got := (<-call).(type) {
				case error:
					if got.Error() != fault {
						t.Errorf("got %v, want %s", got, fault)
					}
				case *Panic:
					if fault != "panic" || got.Value != "in a statement" || len(got.Stack) == 0 {
						t.Errorf("%s: panicked with %v", fault, got)
					}
				default:
					t.Errorf("%s: got %v", fault, got)
				}
			}
		}
		if len(r.of) > 0 || r.running != nil {
			t.Errorf("%d names are kept", len(r.of))
		}
	})
}

// TestLookupsLeft: a statement ends when the last caller has left, one that waits is not run, and a later caller gets a
// separate answer.
func TestLookupsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads("vault")
		ctx, leave := context.WithCancel(t.Context())
		other, leaveToo := context.WithCancel(t.Context())
		calls := []<-chan any{r.get(ctx, "vault 1"), r.get(other, "vault 1")}
		waiting := r.get(ctx, "user 1", "vault 1")
		r.wantAsked(t, "vault 1")
		leave()
		for _, call := range []<-chan any{calls[0], waiting} {
			var failed *state.Error
			if err, _ := (<-call).(error); !errors.As(err, &failed) || !errors.Is(err, context.Canceled) {
				t.Errorf("after the caller left: %v", err)
			}
		}
		if len(r.ended) > 0 {
			t.Error("a statement ended although a caller waits for it")
		}
		leaveToo()
		if err := <-r.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the statement ended with %v", err)
		}
		<-calls[1]
		r.wantAsked(t)
		later := r.get(t.Context(), "vault 1")
		r.wantAsked(t, "vault 1")
		r.reply <- nil
		if got := <-later; got != "cursor vault 1" {
			t.Errorf("later: %v", got)
		}
	})
}

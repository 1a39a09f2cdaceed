package health

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/state"
)

// TestStatusDoesNotWait: while a query for one status request hangs, a client that disconnects is released, the
// other requests share its result, and without a result the last known values are returned.
func TestStatusDoesNotWait(t *testing.T) {
	begun, release := make(chan struct{}, 100), make(chan error)
	vault := common.Address{1}
	n := &lastNavs{read: func(_ context.Context, s *state.Snapshot) (map[common.Address]uint64, error) {
		begun <- struct{}{}
		return map[common.Address]uint64{vault: s.Seq}, <-release
	}}
	first, second := &state.Snapshot{Seq: 1}, &state.Snapshot{Seq: 2}
	gone, leave := context.WithCancel(t.Context())
	leave()
	var group sync.WaitGroup
	ask := func(s *state.Snapshot, want uint64) {
		group.Go(func() {
			if got := n.at(t.Context(), s)[vault]; got != want {
				t.Errorf("at seq %d the newest NAV was at %d, want %d", s.Seq, got, want)
			}
		})
	}
	ask(first, 1)
	<-begun
	if got := n.at(gone, first); got != nil {
		t.Errorf("without a query the response is %v", got)
	}
	for range 20 {
		ask(first, 1)
	}
	release <- nil
	group.Wait()
	if len(begun) != 0 {
		t.Errorf("%d more queries were sent", len(begun))
	}
	ask(second, 1)
	<-begun
	if got := n.at(gone, second)[vault]; got != 1 {
		t.Errorf("the newest time seen is %d", got)
	}
	release <- errors.New("away")
	group.Wait()
}

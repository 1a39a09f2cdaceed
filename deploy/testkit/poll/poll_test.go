package poll

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestUntil(t *testing.T) {
	asked, broken := 0, errors.New("broken")
	third := func() (bool, error) { asked++; return asked == 3, nil }
	if err := Until(t.Context(), time.Millisecond, third); err != nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	if err := Until(t.Context(), time.Millisecond, func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("what cannot be told is %v", err)
	}
	ended, end := context.WithCancelCause(t.Context())
	end(broken)
	if err := Until(ended, time.Millisecond, func() (bool, error) { return false, nil }); !errors.Is(err, broken) {
		t.Errorf("what is no longer wanted ends with %v", err)
	}
	if err := Until(ended, time.Millisecond, func() (bool, error) { return true, nil }); err != nil {
		t.Errorf("what holds already is %v", err)
	}
}

package wait

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestPoll(t *testing.T) {
	asked, broken := 0, errors.New("broken")
	third := func() (bool, error) { asked++; return asked == 3, nil }
	if err := Poll(t.Context(), time.Millisecond, third); err != nil || asked != 3 {
		t.Errorf("checked %d times: %v", asked, err)
	}
	if err := Poll(t.Context(), time.Millisecond, func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("a failing check returned %v", err)
	}
	ended, end := context.WithCancelCause(t.Context())
	end(broken)
	if err := Poll(ended, time.Millisecond, func() (bool, error) { return false, nil }); !errors.Is(err, broken) {
		t.Errorf("an ended wait returned %v", err)
	}
	if err := Poll(ended, time.Millisecond, func() (bool, error) { return true, nil }); err != nil {
		t.Errorf("a condition that already holds returned %v", err)
	}
}

func TestAnswers(t *testing.T) {
	status := http.StatusServiceUnavailable
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		http.Error(w, "no tables", status)
	}))
	if err := Answers(t.Context(), server.URL); err == nil ||
		!strings.HasSuffix(err.Error(), "responds with 503 Service Unavailable: no tables") {
		t.Errorf("503 is an answer, or it says no reason: %v", err)
	}
	status = http.StatusOK
	if err := Answers(t.Context(), server.URL); err != nil {
		t.Errorf("a response with 200 does not count as answering: %v", err)
	}
	server.Close()
	if Answers(t.Context(), server.URL) == nil || Answers(t.Context(), ":") == nil {
		t.Error("a closed server counts as answering")
	}
}

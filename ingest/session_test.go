package ingest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/navlog/navlog/schemas/event"
)

// A cursor is rightful if it is by the writer with which this Run began, or by this Run itself, even if it does not
// know yet that its claim was committed.
func TestRightful(t *testing.T) {
	t.Parallel()
	i := &Ingest{instance: bytes.Repeat([]byte{1}, 16)}
	last, other := bytes.Repeat([]byte{2}, 16), bytes.Repeat([]byte{3}, 16)
	for name, c := range map[string]struct {
		by, last []byte
		rightful bool
	}{
		"the last one's":                {last, last, true},
		"its own":                       {i.instance, i.instance, true},
		"its own, not known yet":        {i.instance, last, true},
		"another one's":                 {other, last, false},
		"another one's, after its own":  {other, i.instance, false},
		"the last one's, after its own": {last, i.instance, false},
		"none, after the last one's":    {nil, last, false},
	} {
		err := i.rightful(&event.Cursor{InstanceId: c.by}, c.last)
		if c.rightful != (err == nil) || err != nil && !errors.Is(err, ErrFenced) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A log can be resumed if it is frozen and has a head.
func TestFrozenAt(t *testing.T) {
	t.Parallel()
	head := &event.Block{Number: 7}
	for name, c := range map[string]struct {
		cursor *event.Cursor
		frozen bool
	}{
		"no log":                 {nil, false},
		"a log that continues":   {&event.Cursor{Head: head}, false},
		"a frozen log":           {&event.Cursor{Head: head, Frozen: "a deep one"}, true},
		"frozen without a block": {&event.Cursor{Frozen: "a deep one"}, false},
	} {
		err := frozenAt(c.cursor, 1)
		var refused *RefusedError
		if c.frozen != (err == nil) || err != nil && !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package wait

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

// recordingT is a test that fails and lets another test inspect it.
type recordingT struct {
	*testing.T
	said string
}

func (f *recordingT) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

// Until waits for a condition that becomes true; one that never does fails the test with the last error.
func TestUntil(t *testing.T) {
	asked := 0
	Until(t, func() error {
		if asked++; asked < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	For(t, "four times", func() bool { asked++; return asked > 3 })
	if asked != 4 {
		t.Errorf("asked %d times", asked)
	}
	synctest.Test(t, func(t *testing.T) {
		f := &recordingT{T: t}
		defer func() {
			if recover() != f || f.said != "still not so after 3m0s: the sun rises in the west" {
				t.Errorf("it said %q", f.said)
			}
		}()
		For(f, "the sun rises in the west", func() bool { return false })
	})
}

package wait

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

// failing is a test that fails, and says so to the one that looks at it.
type failing struct {
	*testing.T
	said string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

// What comes to hold is waited for; what never does fails the test with what was said last.
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
		f := &failing{T: t}
		defer func() {
			if recover() != f || f.said != "still not so after 3m0s: the sun rises in the west" {
				t.Errorf("it said %q", f.said)
			}
		}()
		For(f, "the sun rises in the west", func() bool { return false })
	})
}

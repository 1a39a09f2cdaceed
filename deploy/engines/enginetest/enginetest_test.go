package enginetest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/engines/enginetest"
)

// outcome is a test that records how it ended.
type outcome struct {
	testing.TB
	how string
}

func (o *outcome) Helper() {}

func (o *outcome) Skip(why ...any) {
	o.how = "skipped: " + fmt.Sprint(why...)
	runtime.Goexit()
}

func (o *outcome) Fatal(why ...any) {
	o.how = "failed: " + fmt.Sprint(why...)
	runtime.Goexit()
}

// Tests are skipped if the machine lacks something, but not if the environment promises that it is there.
func TestWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for program, start := range map[string]func(testing.TB){
		"pgbouncer": func(t testing.TB) { enginetest.PgBouncer(t, "postgres://navlog@127.0.0.1:1/navlog") },
		"java":      func(t testing.TB) { enginetest.ApacheKafka(t) },
		"no java":   func(t testing.TB) { enginetest.StartGuardedKafka(t, "../../docker") },
	} {
		for ci, want := range map[string]string{"true": "failed: ", "": "skipped: "} {
			t.Setenv("CI", ci)
			var o outcome
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				start(&o)
			}()
			<-ended
			if !strings.HasPrefix(o.how, want) || !strings.Contains(o.how, program) {
				t.Errorf("without %s and with CI=%s a test is %q, want %s", program, ci, o.how, want)
			}
		}
	}
}

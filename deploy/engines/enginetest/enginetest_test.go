package enginetest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/engines/enginetest"
)

// recordingT is a test that records how it ended.
type recordingT struct {
	testing.TB
	how string
}

func (o *recordingT) Helper() {}

func (o *recordingT) Skip(why ...any) {
	o.how = "skipped: " + fmt.Sprint(why...)
	runtime.Goexit()
}

func (o *recordingT) Fatal(why ...any) {
	o.how = "failed: " + fmt.Sprint(why...)
	runtime.Goexit()
}

// The folder of a test's own engine is beside those of the shared engines, and is removed with the test.
func TestFolderOfAnOwnEngine(t *testing.T) {
	folders := func() map[string]bool {
		all := map[string]bool{}
		for _, parent := range []string{os.TempDir(), "/dev/shm"} {
			found, err := filepath.Glob(filepath.Join(parent, fmt.Sprintf("navlog-test-%d-*", os.Getpid()), "kafka"))
			if err != nil {
				t.Fatal(err)
			}
			for _, dir := range found {
				all[filepath.Dir(dir)] = true
			}
		}
		return all
	}
	var during map[string]bool
	t.Run("a broker", func(t *testing.T) {
		enginetest.Kafka(t)
		during = folders()
	})
	if after := folders(); len(during) != 1 || len(after) != 0 {
		t.Errorf("the folders of the broker are %v, and after the test %v", during, after)
	}
	for dir := range during {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
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
			var o recordingT
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

package dispatch

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
)

// Two hundred partners are down together, for two attempts of each of their events, and
// recover together: there are never more POSTs at a time than slots, and jitter spreads the
// retries.
func TestHiddenDuplicatesAndHerdsOfPartners(t *testing.T) {
	partners := 200
	if testing.Short() {
		partners = 50
	}
	const each, slots = 6, 32
	f := newFixture(t)
	r := f.receiver(func(w http.ResponseWriter, _, ofEvent int) {
		if ofEvent <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	for p := range int64(partners) {
		f.partner(p+1, r.url)
	}
	f.exec("CREATE TABLE wait (ms double precision)")
	f.exec(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO wait VALUES (extract(epoch FROM NEW.due_at - now()) * 1000); RETURN NULL; END $$`)
	f.exec("CREATE TRIGGER wait AFTER UPDATE ON delivery FOR EACH ROW WHEN (NEW.state = 'pending' AND NEW.attempts = " +
		"2) EXECUTE FUNCTION wait()")
	for n := range each {
		f.depositsOfAll(partners, n*partners)
	}
	f.start(func(d *Dispatch) {
		d.shared.Slots = make(chan struct{}, slots)
		d.shared.Timing.Retries = []time.Duration{10 * time.Millisecond, time.Second, time.Second}
	})
	f.eventually("all delivered", f.in(registry.Delivered, partners*each))
	if n := f.number("SELECT count(DISTINCT width_bucket(ms, 1000, 1200, 10)) FROM wait WHERE ms BETWEEN 1000 AND 1200"); n != 10 {
		t.Errorf("the second retries cover %d of 10 parts of the jitter", n)
	}
	if n := r.maxConcurrent(); n > slots {
		t.Errorf("%d requests at a time with %d slots", n, slots)
	}
	if wire, logged := len(r.got()), f.number("SELECT count(*) FROM attempt"); wire != 3*partners*each ||
		int64(wire) != logged {
		t.Errorf("%d requests and %d attempts for %d events that are rejected twice", wire, logged, partners*each)
	}
}

// depositsOfAll appends one deposit of each of the partners 1 to n.
func (f *fixture) depositsOfAll(n, from int) {
	f.Helper()
	var values [][]byte
	for p := range n {
		values = append(values, encode(f.T, deposit(f.T, uint32(p+1), from+p)))
	}
	f.produce(chainlog.ReferralDeposits(testChain), values...)
}

// Responses of hostile receivers do not accumulate in memory: a dispatcher in its own process is as large after many of
// them as after as many normal ones.
func TestHostileBodiesCostNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("measures a separate process")
	}
	f := newFixture(t)
	answers := []func(*fixture, http.ResponseWriter){endlessBody, compressedBody, hugeHeaders, earlyHints}
	r := f.partner7(ok)
	process := f.childWith(func(c *child) { c.Once = true })
	f.delivers(0, 500)
	before := peak(t, process.Process.Pid)
	r.script(func(w http.ResponseWriter, n, _ int) { answers[n%len(answers)](f, w) })
	f.deposits(7, 500, 560)
	f.eventually("all have ended",
		func() bool { return f.number("SELECT count(*) FROM delivery WHERE finished_at IS NOT NULL") >= 540 })
	after := peak(t, process.Process.Pid)
	t.Logf("%d KiB before, %d KiB after", before, after)
	if after-before > 10<<10 {
		t.Errorf("the dispatcher grew from %d to %d KiB", before, after)
	}
}

func hugeHeaders(_ *fixture, w http.ResponseWriter) { w.Header().Set("X", strings.Repeat("x", 20<<20)) }

// peak returns the largest resident memory of a process, in KiB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("this system does not report the memory of a process: %v", err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(text), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

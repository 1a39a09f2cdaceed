package operate

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/schemas/chainlog"
)

// TestReachBesideASilentBroker: one broker that responds is enough, although the first one accepts connections and does
// not respond.
func TestReachBesideASilentBroker(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts connections
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	live, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	limited, cancel := context.WithTimeout(t.Context(), kafkaPatience-1)
	defer cancel()
	if err := ReachKafka(limited, chainlog.Config{Brokers: append([]string{silent.Addr().String()}, live.ListenAddrs()...)}); err != nil {
		t.Error(err)
	}
}

// TestStatsForgeNoLine: text of a record that clears a terminal, and continues with a line that looks like navlog's,
// stays in its table cell. (The same test of the other commands is in cmd/navlog.)
func TestStatsForgeNoLine(t *testing.T) {
	const forged = "\x1b[2J\u009b1A\r\u202eno\nserve\tx\t0s\tserving\n"
	st := &logStats{LogID: forged, Frozen: forged, Types: map[string]uint64{forged: 1},
		Events: map[string]int64{forged: 1}}
	var text bytes.Buffer
	if err := (cli.Output{}).Print(cli.NewScreen(&text), st, st.write); err != nil {
		t.Fatal(err)
	}
	got := text.String()
	if strings.ContainsAny(got, "\x1b\r\u009b\u202e") || strings.Contains(got, "\nserve  x") ||
		!strings.Contains(got, "x1b[2J") {
		t.Errorf("the command prints\n%q", got)
	}
}

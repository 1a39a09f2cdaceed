package chainlog

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// HangingAfter is how long a transaction may be open before it counts as hanging. It is longer than the timeout that
// ingest sets for its transactions (a minute) plus the interval in which a broker checks it (ten seconds).
const HangingAfter = 90 * time.Second

// Tail is the end of a partition, as offsets after the last record.
type Tail struct {
	Written int64 // of all records: the high watermark
	Stable  int64 // of the committed records: up to the first open transaction
}

// Watch follows the ends of topics, and notices a transaction that never ends: readers of
// committed records cannot read past it, and get neither an error nor a record.
type Watch struct {
	adm    *kadm.Client
	after  time.Duration
	topics []string
	open   map[place]stop
}

type place struct {
	topic     string
	partition int32
}

// stop is a stable end that does not move although records follow it.
type stop struct {
	stable int64
	since  time.Time
}

// NewWatch returns a watch of all partitions of topics. A transaction hangs if it is open for
// longer than after, which is HangingAfter except in tests.
func NewWatch(adm *kadm.Client, after time.Duration, topics ...string) *Watch {
	return &Watch{adm: adm, after: after, topics: topics, open: map[place]stop{}}
}

// Ends returns the ends per topic and partition.
func (w *Watch) Ends(ctx context.Context) (map[string]map[int32]Tail, error) {
	written, err := listEnds(ctx, w.adm.ListEndOffsets, w.topics)
	if err != nil {
		return nil, err
	}
	stable, err := listEnds(ctx, w.adm.ListCommittedOffsets, w.topics)
	if err != nil {
		return nil, err
	}
	ends, open, now := map[string]map[int32]Tail{}, map[place]stop{}, time.Now()
	written.Each(func(o kadm.ListedOffset) {
		s, _ := stable.Lookup(o.Topic, o.Partition)
		if ends[o.Topic] == nil {
			ends[o.Topic] = map[int32]Tail{}
		}
		// Records that were written between the two requests may be committed already.
		end := Tail{Written: max(o.Offset, s.Offset), Stable: s.Offset}
		ends[o.Topic][o.Partition] = end
		if end.Stable < end.Written {
			at := place{o.Topic, o.Partition}
			if open[at] = w.open[at]; open[at].since.IsZero() || open[at].stable != end.Stable {
				open[at] = stop{end.Stable, now}
			}
		}
	})
	w.open = open // without the partitions of a topic that was created again with fewer
	return ends, nil
}

// listEnds requests one kind of ends of topics.
func listEnds(ctx context.Context, ask func(context.Context, ...string) (kadm.ListedOffsets, error),
	topics []string) (kadm.ListedOffsets, error) {
	offsets, err := Checked(ask(ctx, topics...))
	if err != nil {
		return nil, fmt.Errorf("read the ends of %s: %w", strings.Join(topics, ", "), err)
	}
	return offsets, nil
}

// Open returns how long the oldest open transaction has been seen, and 0 if there is none.
func (w *Watch) Open() time.Duration {
	_, _, open := w.oldest()
	return open
}

func (w *Watch) oldest() (at place, stable int64, open time.Duration) {
	for p, s := range w.open {
		if age := time.Since(s.since); age > open {
			at, stable, open = p, s.stable, age
		}
	}
	return at, stable, open
}

// Hanging returns an error while a transaction hangs, as of the last Ends. It names the place
// and the commands that end the transaction.
func (w *Watch) Hanging() error {
	at, stable, open := w.oldest()
	if open <= w.after {
		return nil
	}
	return fmt.Errorf("a transaction has been open at offset %d of partition %d of %s for %s, and records behind it "+
		"cannot be read: find its producer with kafka-transactions.sh find-hanging, and end it with "+
		"kafka-transactions.sh abort",
		stable, at.partition, at.topic, open.Truncate(time.Second))
}

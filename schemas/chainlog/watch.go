package chainlog

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// HangingAfter is how long a transaction may be open before it counts as hanging: longer
// than ingest lets a broker wait for a writer that died (a minute), and than a broker
// takes to notice (ten seconds).
const HangingAfter = 90 * time.Second

// Tail is where a partition ends, as offsets after the last record.
type Tail struct {
	Written int64 // of all records: the high watermark
	Stable  int64 // of those that can be read committed: up to the first open transaction
}

// Watch follows the ends of topics, and notices a transaction that nobody ends: readers
// of what is committed cannot read past it, and see no error and no record.
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

// stop is a stable end that does not move while records lie behind it.
type stop struct {
	stable int64
	since  time.Time
}

// NewWatch watches all partitions of topics. A transaction hangs when it is open for
// longer than after, which is HangingAfter but in tests.
func NewWatch(adm *kadm.Client, after time.Duration, topics ...string) *Watch {
	return &Watch{adm: adm, after: after, topics: topics, open: map[place]stop{}}
}

// Ends reads the ends, per topic and partition.
func (w *Watch) Ends(ctx context.Context) (map[string]map[int32]Tail, error) {
	written, err := w.list(ctx, w.adm.ListEndOffsets)
	if err != nil {
		return nil, err
	}
	stable, err := w.list(ctx, w.adm.ListCommittedOffsets)
	if err != nil {
		return nil, err
	}
	ends := map[string]map[int32]Tail{}
	written.Each(func(o kadm.ListedOffset) {
		s, _ := stable.Lookup(o.Topic, o.Partition)
		if ends[o.Topic] == nil {
			ends[o.Topic] = map[int32]Tail{}
		}
		// What was written between the two questions is committed already.
		end := Tail{Written: max(o.Offset, s.Offset), Stable: s.Offset}
		ends[o.Topic][o.Partition] = end
		w.note(place{o.Topic, o.Partition}, end, time.Now())
	})
	return ends, nil
}

func (w *Watch) list(ctx context.Context, ask func(context.Context, ...string) (kadm.ListedOffsets, error)) (kadm.ListedOffsets, error) {
	offsets, err := ask(ctx, w.topics...)
	if err == nil {
		err = offsets.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("read the ends of %s: %w", strings.Join(w.topics, ", "), Explain(err))
	}
	return offsets, nil
}

func (w *Watch) note(p place, end Tail, now time.Time) {
	switch known, ok := w.open[p]; {
	case end.Stable >= end.Written:
		delete(w.open, p)
	case !ok || known.stable != end.Stable:
		w.open[p] = stop{end.Stable, now}
	}
}

// Open is how long the oldest open transaction was seen for, and 0 without one.
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

// Hanging is an error while a transaction hangs, as Ends saw it last. It says where,
// and what ends it.
func (w *Watch) Hanging() error {
	at, stable, open := w.oldest()
	if open <= w.after {
		return nil
	}
	return fmt.Errorf("a transaction has been open at offset %d of partition %d of %s for %s, and nothing behind it can be read: find out with kafka-transactions.sh find-hanging whose it is, and end it with kafka-transactions.sh abort",
		stable, at.partition, at.topic, open.Truncate(time.Second))
}

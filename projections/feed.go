package projections

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/telemetry"
)

// feed reads the log ahead of the writer and cuts it into whole units.
type feed struct {
	reader  *chainlog.Reader
	decoder *decode.Decoder
	after   uint64 // records up to this seq are skipped
	limit   int
	onRead  func(offset int64) // called after each poll that returned records, with the last offset
	units   chan chunk
}

// chunk contains whole units of the log. The last fact is a boundary record.
type chunk struct {
	facts   decode.Batch
	more    bool     // the log had more when these were read
	parents []string // trace contexts of the records
}

func newFeed(reader *chainlog.Reader, decoder *decode.Decoder, after uint64, maxRows int,
	onRead func(offset int64)) *feed {
	return &feed{reader: reader, decoder: decoder, after: after, limit: max(1, maxRows/4), onRead: onRead,
		units: make(chan chunk, 2)}
}

// run reads and decodes until ctx ends or the log cannot be read.
func (f *feed) run(ctx context.Context) error {
	var pending decode.Batch // without a boundary so far
	var parents []string
	for {
		raw, err := f.reader.PollRaw(ctx, f.limit)
		if err != nil {
			return err
		}
		f.onRead(raw[len(raw)-1].Offset)
		raw = slices.DeleteFunc(raw, func(r chainlog.Raw) bool { return r.Seq <= f.after })
		if len(raw) == 0 {
			continue
		}
		read, err := f.decoder.All(raw)
		if err != nil {
			return err
		}
		cut := lastBoundary(read)
		parents = appendParents(parents, raw[:cmp.Or(cut, len(raw))])
		if cut == 0 {
			pending = append(pending, read)
			continue
		}
		select {
		case f.units <- chunk{append(pending, read[:cut]), f.reader.Left() > 1, parents}:
		case <-ctx.Done():
			return ctx.Err()
		}
		pending, parents = nil, appendParents(nil, raw[cut:])
		if cut < len(read) {
			pending = decode.Batch{read[cut:]}
		}
	}
}

// appendParents adds the trace contexts of records to parents.
func appendParents(parents []string, records []chainlog.Raw) []string {
	if !telemetry.Enabled() {
		return nil
	}
	for i := range records {
		parents = telemetry.Parents(parents, chainlog.Parent(records[i].Kafka))
	}
	return parents
}

// lastBoundary returns the number of facts up to the last boundary record.
func lastBoundary(facts []decode.Fact) int {
	for i := len(facts) - 1; i >= 0; i-- {
		if facts[i].Boundary {
			return i + 1
		}
	}
	return 0
}

const (
	// partialBatchWait is how long a batch that is not full waits for records that the log already has.
	partialBatchWait = time.Second
	// A batch of at least this many records is not a block at the head: more records follow immediately, and fewer
	// and larger inserts cost the engine less.
	bulk       = 1000
	bulkLinger = 200 * time.Millisecond
)

// next waits for units and returns at least one, and about maxRows records at most, with their trace contexts. A
// batch that is not full lingers for more at the end of the log, longer if it is bulk, and waits up to
// partialBatchWait if the log already has more.
func (f *feed) next(ctx context.Context, maxRows int, linger time.Duration) (decode.Batch, []string, error) {
	var batch decode.Batch
	var parents []string
	lingers := time.Duration(-1) // chosen wait at the end of the log, -1 if none is chosen yet
	for wait := (<-chan time.Time)(nil); ; {
		select {
		case more := <-f.units:
			batch = append(batch, more.facts...)
			for _, parent := range more.parents {
				parents = telemetry.Parents(parents, parent)
			}
			n := batch.Len()
			if n >= maxRows {
				return batch, parents, nil
			}
			patience := linger
			if n >= bulk {
				patience = max(linger, bulkLinger)
			}
			switch {
			case more.more:
				wait, lingers = time.After(partialBatchWait), -1
			case patience > lingers:
				wait, lingers = time.After(patience), patience
			}
		case <-wait:
			return batch, parents, nil
		case <-ctx.Done():
			return nil, nil, ctx.Err() // there is no writer any more
		}
	}
}

// locate finds the record with a seq by a few jumps (see the package comment), and so proves that the log has it. 0
// is the start of the log.
func locate(ctx context.Context, chainID, seq uint64, vaults *mapping.Vaults, options []kgo.Opt) (decode.Fact, error) {
	if seq == 0 {
		return decode.Fact{}, nil
	}
	topic := chainlog.LogTopic(chainID)
	starts, ends, err := chainlog.Committed(ctx, topic, options)
	if err != nil {
		return decode.Fact{}, fmt.Errorf("look for seq %d: %w", seq, err)
	}
	small := append([]kgo.Opt{kgo.FetchMaxBytes(1 << 20)}, options...) // of each jump, one record is needed
	for jump, _ := starts.Lookup(topic, 0); ; {
		var found *kgo.Record // the first at or after jump
		from := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(jump.Offset)}}
		if err := chainlog.ReadUpTo(ctx, from, ends, func(in *kgo.Record) (stop bool, err error) {
			if !in.Attrs.IsControl() {
				found = in
			}
			return found != nil, nil
		}, small...); err != nil {
			return decode.Fact{}, fmt.Errorf("look for seq %d: %w", seq, err)
		}
		if found == nil {
			return decode.Fact{}, &permanentError{fmt.Errorf("%s ends before seq %d, which the read model has: the log was "+
				"replaced by an older copy; restore it, or run `navlog projection rebuild` if it is the true one", topic, seq)}
		}
		raw, err := chainlog.Peek(chainID, found)
		if err != nil {
			return decode.Fact{}, err
		}
		if raw.Seq > seq {
			return decode.Fact{}, &permanentError{&chainlog.HoleError{Topic: topic, Offset: raw.Offset, Want: seq, Got: raw.Seq}}
		}
		if raw.Seq == seq {
			read, err := decode.NewDecoder(chainID, vaults).All([]chainlog.Raw{raw})
			if err != nil {
				return decode.Fact{}, err
			}
			return read[0], nil
		}
		jump.Offset = raw.Offset + int64(seq-raw.Seq)
	}
}

package writer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/telemetry"
)

const (
	// slowCommit is how long a transaction may take before the status names it.
	slowCommit = 2 * time.Second
	// maxRecord is the longest value that fits into a record batch, leaving space for the rest. The data of a log that
	// would not fit is left out (event.MaxData).
	maxRecord = chainlog.MaxBatchBytes - 1000
)

// Step is a step of a transaction or of a fence, at which tests can make a writer fail.
type Step string

const (
	BeforeFence   Step = "before fence"
	BeforeProduce Step = "before produce"
	beforeFlush   Step = "before flush"
	AfterFlush    Step = "after flush"
	AfterCursor   Step = "after cursor"
	AfterEnd      Step = "after end"
)

// Steps are the steps of a transaction.
var Steps = []Step{BeforeProduce, beforeFlush, AfterFlush, AfterCursor, AfterEnd}

// reached calls the hook.
func (w *Writer) reached(at Step) error {
	if w.Hook == nil {
		return nil
	}
	return w.Hook(at)
}

// ErrCommit is in the error of a transaction whose outcome is unknown. The session ends: only the cursor shows the
// outcome.
var ErrCommit = errors.New("write to the log")

// Commit writes a change in one Kafka transaction, with the referrals that become due by it and the cursor. It
// completes even if ctx ends.
func (w *Writer) Commit(ctx context.Context, c *Change) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), chainlog.CommitTimeout)
	defer cancel()
	ctx, span := w.traced(ctx, c)
	defer func() { telemetry.End(span, err) }()
	w.noteNoState(c.Covered)
	w.number(c)
	due := append(c.earlier, w.State.apply(c, w.Confirmations)...)
	if w.Proven != nil {
		for i := range w.State.Covered {
			w.State.Covered[i].Prove(w.Proven(w.State.Covered[i].Address))
		}
	}
	confirmed := w.slow()
	err = w.transact(ctx, c, due)
	if confirmed(); err != nil {
		return fmt.Errorf("%w: %w", ErrCommit, err)
	}
	if omitted := w.count(c, due); len(omitted) > 0 {
		l := omitted[0]
		w.log.WarnContext(ctx, "logs appended without their data, which is too large for a record: it has their length "+
			"and hash instead", "logs", len(omitted),
			"vault", mapping.VaultOf(l), "event", eventOf(w.State.Mapped, l), "block", l.GetBlockNumber(), "logIndex",
			l.GetLogIndex(), "bytes", l.GetDataLength())
	}
	w.report()
	return nil
}

// slow shows in the status that ingest waits for Kafka if a transaction takes longer than slowCommit, until the
// returned function is called.
func (w *Writer) slow() (confirmed func()) {
	reason := fmt.Sprintf("Kafka has not confirmed the transaction that began at %s; "+
		"after %s ingest reads from the log how far it came, and continues there", time.Now().UTC().Format(time.RFC3339),
		chainlog.CommitTimeout)
	noted := make(chan struct{})
	var before string
	timer := time.AfterFunc(slowCommit, func() {
		w.status.Note(func(st *status.Status) { before, st.Reason = st.Reason, reason })
		close(noted)
	})
	return func() {
		if timer.Stop() {
			return
		}
		<-noted
		w.status.Note(func(st *status.Status) {
			if st.Reason == reason {
				st.Reason = before
			}
		})
	}
}

// traced starts the span of a transaction, whose context its records carry. A transaction that contains only a cursor
// starts no trace.
func (w *Writer) traced(ctx context.Context, c *Change) (context.Context, telemetry.Span) {
	start := telemetry.Child
	if len(c.Units) > 0 {
		start = telemetry.Begin
	}
	ctx, span := start(ctx, telemetry.Producer, "commit")
	c.parent = telemetry.Parent(ctx)
	if !span.IsRecording() {
		return ctx, span
	}
	records := len(c.records())
	telemetry.Text(span, telemetry.Messaging, "kafka")
	telemetry.Text(span, telemetry.Topic, chainlog.LogTopic(w.ChainID))
	telemetry.Number(span, telemetry.Records, records)
	telemetry.Number(span, telemetry.Seq, w.State.Seq+uint64(records))
	if c.Head != nil {
		telemetry.Number(span, telemetry.BlockNumber, c.Head.Number)
		telemetry.Text(span, telemetry.BlockHash, c.Head.Hash.Hex())
	}
	return ctx, span
}

// number sets the seqs of a change's records, the boundaries of their units, and the origin of a new log.
func (w *Writer) number(c *Change) {
	seq := w.State.Seq
	for _, unit := range c.Units {
		for i, r := range unit {
			seq++
			r.Seq, r.ChainId, r.Boundary = seq, w.ChainID, i == len(unit)-1
			if seq == 1 {
				r.Origin = &event.Origin{LogId: w.State.logID, GenesisHash: w.State.genesis[:]}
			}
		}
	}
}

func (w *Writer) transact(ctx context.Context, c *Change, due []referral) error {
	published := publish(ctx, due)
	records, err := encode(c, due, w.State.logID)
	if err != nil {
		return err
	}
	if err := w.client.BeginTransaction(); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	if err := w.reached(BeforeProduce); err != nil {
		return err
	}
	if err := w.produce(ctx, records...); err != nil {
		return fmt.Errorf("append %d records: %w", len(records), err)
	}
	if err := w.reached(AfterFlush); err != nil {
		return err
	}
	if err := w.locate(c, records); err != nil {
		return err
	}
	w.State.prune(w.Window)
	cursor, err := chainlog.EncodeCursor(w.State.cursor(w.ChainID, w.Instance))
	if err != nil {
		return err
	}
	if err := w.produce(ctx, cursor); err != nil {
		return fmt.Errorf("append the cursor: %w", err)
	}
	if err := w.reached(AfterCursor); err != nil {
		return err
	}
	if err := chainlog.EndTransaction(ctx, w.client, kgo.TryCommit, topicsOf(append(records, cursor))...); err != nil {
		return fmt.Errorf("commit a transaction: %w", err)
	}
	published()
	return w.reached(AfterEnd)
}

// topicsOf returns the topics of records.
func topicsOf(records []*kgo.Record) []string {
	topics := map[string]bool{}
	for _, r := range records {
		topics[r.Topic] = true
	}
	return slices.Collect(maps.Keys(topics))
}

// encode returns the Kafka records of a change, those of the log first.
func encode(c *Change, due []referral, logID []byte) ([]*kgo.Record, error) {
	var records []*kgo.Record
	for _, r := range c.records() {
		k, err := chainlog.Encode(r)
		if err != nil {
			return nil, err
		}
		if len(k.Value) > maxRecord {
			return nil, rpc.Refuse("record %d, a %s, would have %d bytes, more than the %d that a record of the log may "+
				"have: nothing was appended",
				r.GetSeq(), chainlog.TypeOf(r), len(k.Value), maxRecord)
		}
		chainlog.Carry(k, c.parent)
		records = append(records, k)
	}
	for _, r := range due {
		k, err := encodeReferral(logID, r)
		if err != nil {
			return nil, err
		}
		records = append(records, k)
	}
	return records, nil
}

// produce appends records and returns when the broker has all of them.
func (w *Writer) produce(ctx context.Context, records ...*kgo.Record) error {
	promise := kgo.AbortingFirstErrPromise(w.client)
	for _, r := range records {
		w.client.Produce(ctx, r, promise.Promise())
	}
	if err := w.reached(beforeFlush); err != nil {
		return err
	}
	if err := w.client.Flush(ctx); err != nil {
		return err
	}
	return promise.Err()
}

// locate notes the offsets that the broker assigned to the records of a change, which come first among the produced
// ones. It returns an error if the brokers no longer have the record before them: the seqs would have a hole forever.
func (w *Writer) locate(c *Change, produced []*kgo.Record) error {
	records := len(c.records())
	if records == 0 {
		return nil
	}
	first := w.State.Seq - uint64(records) + 1
	if at := produced[0].Offset; first > 1 && at <= w.State.offset {
		return fmt.Errorf("record %d would be at offset %d of %s, but record %d was at offset %d: the brokers lost the end "+
			"of the log, or the topic was deleted and created again", first, at, produced[0].Topic, first-1, w.State.offset)
	}
	w.State.offset = produced[records-1].Offset
	for i := range w.State.Covered {
		if v := &w.State.Covered[i]; v.record >= first {
			v.offset = produced[v.record-first].Offset
		}
	}
	for i := range w.State.Window.entries {
		if e := &w.State.Window.entries[i]; e.GetSeq() >= first {
			e.Offset = produced[e.GetSeq()-first].Offset
		}
	}
	return nil
}

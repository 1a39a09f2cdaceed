package dispatch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/telemetry"
	"github.com/navlog/navlog/schemas/webhook"
)

// errMoved means that a position is no longer where this reader is: another dispatcher, whose lease of the intake began
// before this one noticed that its own had ended, read the same records first, or rewind moved it.
var errMoved = errors.New("a position was moved")

// byPosition orders batches as PositionsPassed does, by the bytes of the topic's id and
// the partition, so that every transaction locks positions in the same order.
func byPosition(a, b readBatch) int {
	return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.partition, b.partition))
}

// arrival is a referral record that can become a delivery, with its event.
type arrival struct {
	*webhook.Envelope
	body   []byte // of the envelope
	batch  *readBatch
	record *kgo.Record
	log    [16]byte // the log's id
	mined  mining
}

func (a arrival) partner() int64 { return int64(a.PartnerID) }

// deadletter is a record that cannot become a delivery.
type deadletter struct {
	batch  *readBatch
	record *kgo.Record
	reason string // recordPoison, recordConflict or recordQuarantined
	why    string
}

// accept turns the records into deliveries and moves the positions, in one transaction. Records that cannot become a
// delivery go to dead_record in the same transaction. Referrals of unknown partners are skipped without a row: any
// account can write any id into the chain, and an id must not cost anything. The topics keep them, and backfill finds
// them when the partner is created. accept returns errMoved, and has changed nothing, if another dispatcher read the
// records first.
func (d *Dispatch) accept(ctx context.Context, batches []readBatch) error {
	slices.SortFunc(batches, byPosition) // so that dispatchers cannot deadlock
	limited, cancel := context.WithTimeout(ctx, d.timing.database)
	defer cancel()
	arrivals, deadletters := d.decodeAll(batches)
	followed, err := followedLog(limited, d.queries, arrivals)
	if err != nil {
		return err
	}
	batches, arrivals, deadletters, refusal := ofLog(followed, batches, arrivals, deadletters)
	if len(batches) == 0 {
		return refusal
	}
	var done insertion
	var stored []deadletter
	err = pgx.BeginFunc(limited, d.pool, func(tx pgx.Tx) error {
		q := d.queries.WithTx(tx)
		if err := movePositions(limited, q, batches); err != nil {
			return err
		}
		partners, err := knownPartners(limited, q, arrivals)
		if err != nil {
			return err
		}
		if done, err = insert(limited, q, partners, arrivals); err != nil {
			return err
		}
		deadletters = append(deadletters, done.deadletters...)
		if stored, err = insertDeadletters(limited, q, deadletters); err != nil || len(done.toWake) == 0 {
			return err
		}
		return registry.AnnounceQueued(limited, q, done.toWake)
	})
	switch {
	case errors.Is(err, errMoved):
		return err
	case err != nil:
		return fmt.Errorf("write the deliveries of %s: %w", printable.Count(len(arrivals), "referral"), err)
	}
	done.counts[recordKnown] += len(deadletters) - len(stored)
	d.committed(done)
	d.report(stored)
	return refusal
}

// report counts and logs new dead letters whose transaction is committed.
func (d *Dispatch) report(stored []deadletter) {
	for _, b := range stored {
		d.metrics.records.WithLabelValues(b.reason).Inc()
		d.log.Error("referral record cannot become a delivery, see dead_record", "topic", b.batch.topic,
			"partition", b.batch.partition, "offset", b.record.Offset, "reason", b.reason, "why", b.why)
	}
}

// committed wakes the lanes of an insertion whose transaction is committed, and counts its arrivals.
func (d *Dispatch) committed(done insertion) {
	for _, p := range done.toWake {
		d.wake(p)
	}
	endAll(done.spans)
	for result, n := range done.counts {
		d.metrics.records.WithLabelValues(result).Add(float64(n))
	}
}

// followedLog returns the id of the log whose referrals become deliveries: the log of
// all deliveries so far, or that of the first arrival.
func followedLog(ctx context.Context, q *db.Queries, arrivals []arrival) (logID [16]byte, err error) {
	known, err := q.FollowedLog(ctx)
	switch {
	case err == nil:
		return [16]byte(known), nil // a CHECK guarantees the length
	case !errors.Is(err, pgx.ErrNoRows):
		return logID, fmt.Errorf("read from which log deliveries are made: %w", err)
	case len(arrivals) > 0:
		return arrivals[0].log, nil
	}
	return logID, nil
}

// ofLog cuts each batch at the first referral of a log other than logID, and returns an error that names both logs.
// They may contradict each other, and only an operator can decide which one is right.
func ofLog(logID [16]byte, batches []readBatch, arrivals []arrival, deadletters []deadletter) (
	[]readBatch, []arrival, []deadletter, error,
) {
	var refusal error
	for _, a := range arrivals {
		if a.log != logID {
			a.batch.to = min(a.batch.to, a.record.Offset)
			refusal = fmt.Errorf("%s holds referrals of the log %x, and deliveries were made of the log %x: check that "+
				"this is the right Kafka; if the log was rebuilt from the same chain, `navlog webhook follow-log %x` "+
				"continues with it, and known events are not sent again",
				a.batch.topic, a.log, logID, a.log)
		}
	}
	arrivals = slices.DeleteFunc(arrivals, func(a arrival) bool { return a.record.Offset >= a.batch.to })
	deadletters = slices.DeleteFunc(deadletters, func(b deadletter) bool { return b.record.Offset >= b.batch.to })
	for _, a := range arrivals {
		a.batch.log = a.log[:]
	}
	left := make([]readBatch, 0, len(batches)) // without those that are empty now
	for _, p := range batches {
		if p.to > p.from {
			left = append(left, p)
		}
	}
	return left, arrivals, deadletters, refusal
}

// decodeAll decodes the records; those that cannot be decoded are poison.
func (d *Dispatch) decodeAll(batches []readBatch) (arrivals []arrival, deadletters []deadletter) {
	for i := range batches {
		p := &batches[i]
		for _, record := range p.records {
			a, err := decode(d.config.ChainID, record)
			if err != nil {
				deadletters = append(deadletters, deadletter{p, record, recordPoison, err.Error()})
				continue
			}
			a.batch, a.record = p, record
			arrivals = append(arrivals, a)
		}
	}
	return arrivals, deadletters
}

// decode decodes a referral record. Its error is the reason for a dead letter.
func decode(chainID uint64, record *kgo.Record) (arrival, error) {
	referral := new(event.Referral)
	if err := proto.Unmarshal(record.Value, referral); err != nil {
		return arrival{}, errors.New("the record is not a referral")
	}
	if len(referral.GetLogId()) != 16 {
		return arrival{}, fmt.Errorf("the log id has %d bytes, want 16", len(referral.GetLogId()))
	}
	if referral.GetChainId() != chainID {
		return arrival{}, fmt.Errorf("the referral is of chain %d, not %d", referral.GetChainId(), chainID)
	}
	envelope, err := webhook.FromReferral(referral)
	if err != nil {
		return arrival{}, err
	}
	if kinds[referral.GetKind()] != envelope.Type {
		return arrival{}, fmt.Errorf("the record's kind is %s, but its log is a %s", referral.GetKind(), envelope.Type)
	}
	body, err := envelope.Body()
	if err != nil {
		return arrival{}, err
	}
	log := referral.GetLog()
	return arrival{
		Envelope: envelope, body: body, log: [16]byte(referral.GetLogId()),
		mined: mining{
			tx: string(log.GetTxHash()), block: string(log.GetBlockHash()), logIndex: int64(log.GetLogIndex()),
			seq: int64(referral.GetSeq()),
		},
	}, nil
}

var kinds = map[event.Referral_Kind]string{
	event.Referral_KIND_DEPOSIT:    webhook.DepositReferral,
	event.Referral_KIND_WITHDRAWAL: webhook.WithdrawalReferral,
}

func movePositions(ctx context.Context, q *db.Queries, batches []readBatch) error {
	for _, p := range batches {
		n, err := q.MovePosition(ctx, db.MovePositionParams{
			TopicID: p.id, Partition: p.partition, ReadOffset: p.from, NextOffset: p.to, LogID: p.log,
		})
		if err != nil {
			return err
		}
		if n == 0 {
			return errMoved
		}
	}
	return nil
}

// knownPartners returns the existing partners that the arrivals name, each with the
// state in which its deliveries start.
func knownPartners(ctx context.Context, q *db.Queries, arrivals []arrival) (map[int64]string, error) {
	ids := map[int64]bool{}
	for _, a := range arrivals {
		ids[a.partner()] = true
	}
	partners := map[int64]string{}
	if len(ids) == 0 {
		return partners, nil
	}
	rows, err := q.KnownPartners(ctx, slices.Sorted(maps.Keys(ids)))
	for _, r := range rows {
		partners[r.ID] = registry.NoEndpoint
		if r.Reachable {
			partners[r.ID] = registry.Pending
		}
	}
	return partners, err
}

// insertion is the result of insert.
type insertion struct {
	counts      map[string]int // arrivals by result, without the dead letters
	toWake      []int64        // partners with new deliveries to send
	deadletters []deadletter   // quarantined, or in conflict with a known event
	// of the new deliveries; if the transaction fails they are never ended, and so not exported
	spans []telemetry.Span
}

// trace starts the span of a new delivery, in the trace of its record, and returns the context for its attempts.
func (i *insertion) trace(ctx context.Context, a *arrival) (parent string) {
	if !telemetry.Enabled() {
		return ""
	}
	ctx, span := telemetry.Continue(ctx, chainlog.Parent(a.record), telemetry.Consumer, "accept referral")
	telemetry.Text(span, telemetry.EventID, a.ID.String())
	telemetry.Text(span, telemetry.EventType, a.Type)
	telemetry.Number(span, telemetry.Partner, a.partner())
	telemetry.Number(span, telemetry.Seq, a.mined.seq)
	telemetry.Text(span, telemetry.Messaging, "kafka")
	telemetry.Text(span, telemetry.Topic, a.batch.topic)
	i.spans = append(i.spans, span)
	return telemetry.Parent(ctx)
}

func endAll(spans []telemetry.Span) {
	for _, span := range spans {
		telemetry.End(span, nil)
	}
}

// insert turns arrivals into deliveries, skipping those that name none of the partners,
// are quarantined or are known already. Each delivery starts in its partner's state and
// gets its partner's next sequence, under the lock of the partner's counter. A delivery
// that was mined again in another block is corrected (correction.go).
func insert(ctx context.Context, q *db.Queries, partners map[int64]string, arrivals []arrival) (insertion, error) {
	done := insertion{counts: map[string]int{}}
	of := len(arrivals)
	arrivals = slices.DeleteFunc(slices.Clone(arrivals), func(a arrival) bool { return partners[a.partner()] == "" })
	done.counts[recordUnclaimed] = of - len(arrivals)
	arrivals = slices.DeleteFunc(arrivals, func(a arrival) bool {
		if a.Quarantined != "" {
			done.deadletters = append(done.deadletters, deadletter{a.batch, a.record, recordQuarantined, a.Quarantined})
		}
		return a.Quarantined != ""
	})
	if len(arrivals) == 0 {
		return done, nil
	}
	last := map[int64]int64{}
	streams, err := q.LockStreams(ctx, slices.Sorted(maps.Keys(partners)))
	if err != nil {
		return done, err
	}
	for _, s := range streams {
		last[s.PartnerID] = s.LastSequence
	}
	known, err := readKnownDeliveries(ctx, q, arrivals)
	if err != nil {
		return done, err
	}
	var rows db.InsertDeliveriesParams
	for _, a := range arrivals {
		what, of, body, err := known.classify(a)
		if err != nil {
			return done, err
		}
		switch what {
		case recordConflict:
			done.deadletters = append(done.deadletters, deadletter{
				a.batch, a.record, recordConflict, fmt.Sprintf("event %s already exists with another body", of.event),
			})
			continue
		case recordCorrected:
			err = correct(ctx, q, of, a, body, &rows)
		case recordInserted:
			state := partners[a.partner()]
			if state == registry.Pending && !slices.Contains(done.toWake, a.partner()) {
				done.toWake = append(done.toWake, a.partner())
			}
			last[a.partner()]++
			known.add(&knownDelivery{
				event: a.ID, partner: a.partner(), kind: a.Type, body: a.body, mined: a.mined, row: len(rows.EventIds),
			})
			appendDelivery(&rows, a, last[a.partner()], state, done.trace(ctx, &a))
		}
		if err != nil {
			return done, err
		}
		done.counts[what]++
	}
	if len(rows.EventIds) == 0 {
		return done, nil
	}
	if err := q.InsertDeliveries(ctx, rows); err != nil {
		return done, err
	}
	var set db.SetStreamsParams
	for partner, sequence := range last {
		set.PartnerIds, set.LastSequences = append(set.PartnerIds, partner), append(set.LastSequences, sequence)
	}
	return done, q.SetStreams(ctx, set)
}

func appendDelivery(rows *db.InsertDeliveriesParams, a arrival, sequence int64, state, parent string) {
	rows.EventIds = append(rows.EventIds, a.ID)
	rows.PartnerIds = append(rows.PartnerIds, a.partner())
	rows.Sequences = append(rows.Sequences, sequence)
	rows.Types = append(rows.Types, a.Type)
	rows.Bodies = append(rows.Bodies, a.body)
	rows.States = append(rows.States, state)
	rows.TxHashes = append(rows.TxHashes, []byte(a.mined.tx))
	rows.BlockHashes = append(rows.BlockHashes, []byte(a.mined.block))
	rows.LogIndexes = append(rows.LogIndexes, a.mined.logIndex)
	rows.Seqs = append(rows.Seqs, a.mined.seq)
	rows.Traceparents = append(rows.Traceparents, parent)
}

// insertDeadletters stores records that cannot become a delivery, with their bytes, for
// an operator to inspect. It returns those that were not stored before.
func insertDeadletters(ctx context.Context, q *db.Queries, deadletters []deadletter) (stored []deadletter, err error) {
	for _, b := range deadletters {
		n, err := q.InsertDeadRecord(ctx, db.InsertDeadRecordParams{
			TopicID: b.batch.id, Partition: b.batch.partition, Offset: b.record.Offset, Topic: b.batch.topic,
			Reason: b.reason, Error: printable.Text(b.why, printable.Message), Value: b.record.Value,
		})
		if err != nil {
			return nil, err
		}
		if n > 0 {
			stored = append(stored, b)
		}
	}
	return stored, nil
}

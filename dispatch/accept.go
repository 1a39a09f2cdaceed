package dispatch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook"
)

// errMoved says that another dispatcher read the same records first.
var errMoved = errors.New("another dispatcher moved the position")

// byPosition is the one order in which positions are locked: PostgreSQL's own of a topic's id, and the partition, as
// PositionsPassed has it.
func byPosition(a, b parcel) int {
	return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.partition, b.partition))
}

// arrival is a referral record that can become a delivery.
type arrival struct {
	parcel  *parcel
	record  *kgo.Record
	event   uuid.UUID
	partner int64
	log     [16]byte // id of the log that it is of
	kind    string
	mined   mining
	body    []byte
	// envelope is what body was made of.
	envelope *webhook.Envelope
	// quarantined says why it counts nowhere; empty where it counts.
	quarantined string
}

// dead is a record that cannot become a delivery.
type dead struct {
	parcel *parcel
	record *kgo.Record
	reason string // recordPoison, recordConflict or recordQuarantined
	why    string
}

// accept makes deliveries of what was read and moves the positions, in one
// transaction. Records that cannot become one go to dead_record in the same. What
// names a partner that does not exist is passed over: anybody can write any id into
// the chain, and none is to cost us anything. The topics keep it, and adopt finds it
// when the partner comes to be. accept gives errMoved, and has done nothing, when
// another dispatcher was faster.
func (d *Dispatch) accept(ctx context.Context, parcels []parcel) error {
	slices.SortFunc(parcels, byPosition) // so that dispatchers cannot deadlock
	limited, cancel := context.WithTimeout(ctx, d.timing.database)
	defer cancel()
	arrivals, deads := d.open(parcels)
	followed, err := followedLog(limited, d.queries, arrivals)
	if err != nil {
		return err
	}
	parcels, arrivals, deads, refusal := ofLog(followed, parcels, arrivals, deads)
	if len(parcels) == 0 {
		return refusal
	}
	counts := map[string]int{}
	var told []int64 // partners with something to be sent
	err = pgx.BeginFunc(limited, d.pool, func(tx pgx.Tx) error {
		q := d.queries.WithTx(tx)
		if err := movePositions(limited, q, parcels); err != nil {
			return err
		}
		partners, err := knownPartners(limited, q, arrivals)
		if err != nil {
			return err
		}
		inserted, err := insert(limited, q, partners, arrivals, counts)
		if err != nil {
			return err
		}
		told, deads = inserted.told, append(deads, inserted.deads...)
		return bury(limited, q, deads, counts)
	})
	if err != nil && !errors.Is(err, errMoved) {
		return fmt.Errorf("write the deliveries of %d referrals: %w", len(arrivals), err)
	}
	if errors.Is(err, errMoved) {
		// The winner's deliveries are there, and the partner may be ours.
		told = d.endpoints.among(arrivals)
	}
	for _, p := range told {
		d.wake(p)
	}
	if err == nil {
		for result, n := range counts {
			d.metrics.records.WithLabelValues(result).Add(float64(n))
		}
		for _, b := range deads {
			d.log.Error("referral record cannot become a delivery, see dead_record", "topic", b.parcel.topic,
				"partition", b.parcel.partition, "offset", b.record.Offset, "reason", b.reason, "why", b.why)
		}
		return refusal
	}
	return err
}

// followedLog is the log that deliveries are made of: the one that they were made of so
// far, or that of the first arrival.
func followedLog(ctx context.Context, q *db.Queries, arrivals []arrival) (logID [16]byte, err error) {
	known, err := q.FollowedLog(ctx)
	switch {
	case err == nil:
		return [16]byte(known), nil // PostgreSQL keeps no shorter one
	case !errors.Is(err, pgx.ErrNoRows):
		return logID, fmt.Errorf("read which log deliveries are made of: %w", err)
	case len(arrivals) > 0:
		return arrivals[0].log, nil
	}
	return logID, nil
}

// ofLog cuts off each parcel at the first referral of another log than this, with an
// error that says so: two logs are two stories, and which is true only an operator
// can tell.
func ofLog(logID [16]byte, parcels []parcel, arrivals []arrival, deads []dead) ([]parcel, []arrival, []dead, error) {
	var refusal error
	for _, a := range arrivals {
		if a.log != logID {
			a.parcel.to = min(a.parcel.to, a.record.Offset)
			refusal = fmt.Errorf("%s holds referrals of the log %x, and deliveries were made of the log %x: is this the Kafka of before? Where the log was rebuilt from the same chain, `navlog webhook follow-log %x` goes on with it; known events are not told again",
				a.parcel.topic, a.log, logID, a.log)
		}
	}
	arrivals = slices.DeleteFunc(arrivals, func(a arrival) bool { return a.record.Offset >= a.parcel.to })
	deads = slices.DeleteFunc(deads, func(b dead) bool { return b.record.Offset >= b.parcel.to })
	for _, a := range arrivals {
		a.parcel.log = a.log[:]
	}
	// Of some nothing is left. (from says nothing of it: a partition that is read again
	// because it is shorter than its position ends before it.)
	left := make([]parcel, 0, len(parcels))
	for _, p := range parcels {
		if len(p.records) == 0 || p.records[0].Offset < p.to {
			left = append(left, p)
		}
	}
	return left, arrivals, deads, refusal
}

// open decodes the records.
func (d *Dispatch) open(parcels []parcel) (arrivals []arrival, deads []dead) {
	for i := range parcels {
		p := &parcels[i]
		for _, record := range p.records {
			a, err := decode(d.config.ChainID, record)
			if err != nil {
				deads = append(deads, dead{p, record, recordPoison, err.Error()})
				continue
			}
			a.parcel, a.record = p, record
			arrivals = append(arrivals, a)
		}
	}
	return arrivals, deads
}

// decode reads a referral record. Its error says why it is poison.
func decode(chainID uint64, record *kgo.Record) (arrival, error) {
	referral := new(event.Referral)
	if err := proto.Unmarshal(record.Value, referral); err != nil {
		return arrival{}, errors.New("it is not a referral")
	}
	if len(referral.GetLogId()) != 16 {
		return arrival{}, fmt.Errorf("its log id has %d bytes and must have 16", len(referral.GetLogId()))
	}
	if referral.GetChainId() != chainID {
		return arrival{}, fmt.Errorf("it belongs to chain %d, not to %d", referral.GetChainId(), chainID)
	}
	envelope, err := webhook.FromReferral(referral)
	if err != nil {
		return arrival{}, err
	}
	if kinds[referral.GetKind()] != envelope.Type {
		return arrival{}, fmt.Errorf("it says %s and its log is a %s", referral.GetKind(), envelope.Type)
	}
	body, err := envelope.Body()
	if err != nil {
		return arrival{}, err
	}
	log := referral.GetLog()
	return arrival{
		log: [16]byte(referral.GetLogId()), event: envelope.ID, partner: int64(envelope.PartnerID), kind: envelope.Type,
		mined: mining{tx: string(log.GetTxHash()), block: string(log.GetBlockHash()), logIndex: int64(log.GetLogIndex()), seq: int64(referral.GetSeq())},
		body:  body, envelope: envelope, quarantined: envelope.Quarantined,
	}, nil
}

var kinds = map[event.Referral_Kind]string{
	event.Referral_KIND_DEPOSIT:    webhook.DepositReferral,
	event.Referral_KIND_WITHDRAWAL: webhook.WithdrawalReferral,
}

func movePositions(ctx context.Context, q *db.Queries, parcels []parcel) error {
	for _, p := range parcels {
		n, err := q.MovePosition(ctx, db.MovePositionParams{TopicID: p.id, Partition: p.partition, ReadOffset: p.from, NextOffset: p.to, LogID: p.log})
		if err != nil {
			return err
		}
		if n == 0 {
			return errMoved
		}
	}
	return nil
}

// knownPartners gives the partners that the arrivals name and that exist, and how
// the deliveries of each begin.
func knownPartners(ctx context.Context, q *db.Queries, arrivals []arrival) (map[int64]string, error) {
	ids := map[int64]bool{}
	for _, a := range arrivals {
		ids[a.partner] = true
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

// insertion is what became of arrivals beside counts.
type insertion struct {
	told  []int64 // partners that have something to be sent
	deads []dead  // what is quarantined, or contradicts a known event
}

// insert makes deliveries of those arrivals that name one of the partners, count, and
// are not known yet, each in the state that its partner begins with and with the next
// sequence of its partner, under the lock of the partner's counter. What is known from
// another block is corrected (mined.go).
func insert(ctx context.Context, q *db.Queries, partners map[int64]string, arrivals []arrival, counts map[string]int) (insertion, error) {
	of := len(arrivals)
	arrivals = slices.DeleteFunc(slices.Clone(arrivals), func(a arrival) bool { return partners[a.partner] == "" })
	if n := of - len(arrivals); n > 0 {
		counts[recordUnclaimed] += n
	}
	var done insertion
	arrivals = slices.DeleteFunc(arrivals, func(a arrival) bool {
		if a.quarantined != "" {
			done.deads = append(done.deads, dead{a.parcel, a.record, recordQuarantined, a.quarantined})
		}
		return a.quarantined != ""
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
	known, err := readTellings(ctx, q, arrivals)
	if err != nil {
		return done, err
	}
	var rows db.InsertDeliveriesParams
	for _, a := range arrivals {
		what, of, body, err := known.judge(a)
		if err != nil {
			return done, err
		}
		switch what {
		case recordConflict:
			done.deads = append(done.deads, dead{a.parcel, a.record, recordConflict, fmt.Sprintf("event %s is known with another body", of.event)})
			continue
		case recordCorrected:
			err = correct(ctx, q, of, a, body, &rows)
		case recordInserted:
			state := partners[a.partner]
			if state == registry.Pending && !slices.Contains(done.told, a.partner) {
				done.told = append(done.told, a.partner)
			}
			last[a.partner]++
			known.add(&telling{event: a.event, partner: a.partner, kind: a.kind, body: a.body, mined: a.mined, row: len(rows.EventIds)})
			appendDelivery(&rows, a, last[a.partner], state)
		}
		if err != nil {
			return done, err
		}
		counts[what]++
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

func appendDelivery(rows *db.InsertDeliveriesParams, a arrival, sequence int64, state string) {
	rows.EventIds = append(rows.EventIds, a.event)
	rows.PartnerIds = append(rows.PartnerIds, a.partner)
	rows.Sequences = append(rows.Sequences, sequence)
	rows.Types = append(rows.Types, a.kind)
	rows.Bodies = append(rows.Bodies, a.body)
	rows.States = append(rows.States, state)
	rows.TxHashes = append(rows.TxHashes, []byte(a.mined.tx))
	rows.BlockHashes = append(rows.BlockHashes, []byte(a.mined.block))
	rows.LogIndexes = append(rows.LogIndexes, a.mined.logIndex)
	rows.Seqs = append(rows.Seqs, a.mined.seq)
}

// bury keeps what cannot become a delivery, bytes and all, where an operator can
// find it.
func bury(ctx context.Context, q *db.Queries, deads []dead, counts map[string]int) error {
	for _, b := range deads {
		err := q.InsertDeadRecord(ctx, db.InsertDeadRecordParams{
			TopicID: b.parcel.id, Partition: b.parcel.partition, Offset: b.record.Offset, Topic: b.parcel.topic,
			Reason: b.reason, Error: printable.Text(b.why, printable.Message), Value: b.record.Value,
		})
		if err != nil {
			return err
		}
		counts[b.reason]++
	}
	return nil
}

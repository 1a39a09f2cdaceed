package dispatch

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/registry/db"
)

// Before finality a transaction that was already sent to a partner may lose its block and
// be mined again in another. The referral topics then hold its referrals twice, with
// another block, time and, usually, log index, which is part of an event's id. Its partner
// still gets one event (docs/adr/0007):
//
//   - A transaction that is mined again emits the same logs in the same order. So its first
//     referral of a partner and type is the same as before, and likewise the second: this
//     is how the delivery is found. It keeps its id and sequence and gets the newest body.
//     The body may be the same, on a chain whose blocks have fixed times; the delivery still
//     gets the new block, or the second referral would be taken for it.
//   - A delivery that is not acknowledged yet is sent with the newest body, unless its POST
//     starts within a second of the correction (lane/due.go). An acknowledged one is not
//     sent again: the delivery records when it was corrected, and the pull stream and
//     replays return the newest body.
//   - The record with the higher seq is the newer mining. Reading a topic again from before
//     the newer one changes nothing.

// mining identifies the place where a referral's transaction was mined.
type mining struct {
	tx, block string // hashes; empty for rows from before they were stored
	logIndex  int64
	seq       int64 // of the record in the log
}

// knownDelivery is a delivery that exists, or is about to be inserted.
type knownDelivery struct {
	event   uuid.UUID
	partner int64
	kind    string
	body    []byte
	mined   mining
	row     int // its index among the rows to insert; -1: already in PostgreSQL
}

// knownDeliveries are the deliveries that arrivals may belong to.
type knownDeliveries struct {
	byEvent map[uuid.UUID]*knownDelivery
	byTx    map[string][]*knownDelivery // by sequence
}

func (k *knownDeliveries) add(t *knownDelivery) {
	k.byEvent[t.event] = t
	if t.mined.tx != "" {
		k.byTx[t.mined.tx] = append(k.byTx[t.mined.tx], t)
	}
}

func readKnownDeliveries(ctx context.Context, q *db.Queries, arrivals []arrival) (*knownDeliveries, error) {
	p := db.KnownDeliveriesParams{EventIds: make([]uuid.UUID, len(arrivals)), TxHashes: make([][]byte, len(arrivals))}
	for i, a := range arrivals {
		p.EventIds[i], p.TxHashes[i] = a.ID, []byte(a.mined.tx)
	}
	rows, err := q.KnownDeliveries(ctx, p)
	if err != nil {
		return nil, err
	}
	k := &knownDeliveries{byEvent: map[uuid.UUID]*knownDelivery{}, byTx: map[string][]*knownDelivery{}}
	for _, r := range rows {
		k.add(&knownDelivery{
			event: r.EventID, partner: r.PartnerID, kind: r.Type, body: r.Body, row: -1,
			mined: mining{tx: string(r.TxHash), block: string(r.BlockHash), logIndex: r.LogIndex, seq: r.Seq},
		})
	}
	return k, nil
}

// classify returns recordInserted for a new event, or recordKnown, recordConflict or
// recordCorrected together with the delivery that the arrival belongs to and the
// arrival's body under that delivery's id.
func (k *knownDeliveries) classify(a arrival) (what string, of *knownDelivery, body []byte, err error) {
	of, overtaken := k.find(a)
	switch {
	case of == nil:
		return recordInserted, nil, a.body, nil
	case overtaken:
		return recordKnown, of, nil, nil
	}
	if body, err = a.bodyOf(of.event); err != nil {
		return "", nil, nil, err
	}
	switch {
	case of.mined.tx != "" && of.mined.block != a.mined.block:
		return recordCorrected, of, body, nil
	case bytes.Equal(body, of.body):
		return recordKnown, of, nil, nil
	}
	return recordConflict, of, nil, nil
}

// find returns the delivery that an arrival belongs to: the delivery of the same log, or
// else the first of its transaction from an older mining, or else the delivery with its
// id. overtaken means that the arrival is from an older mining than the delivery. The first
// of a mining has the lowest log index: a backfill may give it a later sequence than the others.
func (k *knownDeliveries) find(a arrival) (of *knownDelivery, overtaken bool) {
	for _, t := range k.byTx[a.mined.tx] {
		switch {
		case t.partner != a.partner() || t.kind != a.Type:
		case t.mined.block == a.mined.block && t.mined.logIndex == a.mined.logIndex:
			return t, false
		case t.mined.block == a.mined.block:
		case t.mined.seq >= a.mined.seq:
			return t, true
		case of == nil || t.mined.block == of.mined.block && t.mined.logIndex < of.mined.logIndex:
			of = t
		}
	}
	if of == nil {
		of = k.byEvent[a.ID]
	}
	return of, false
}

// bodyOf returns the arrival's body under the id of the event's first mining.
func (a arrival) bodyOf(event uuid.UUID) ([]byte, error) {
	if event == a.ID {
		return a.body, nil
	}
	envelope := *a.Envelope
	envelope.ID = event
	body, err := envelope.Body()
	if err != nil {
		return nil, fmt.Errorf("correct event %s: %w", event, err)
	}
	return body, nil
}

// correct gives a delivery the place and the body of a newer mining.
func correct(
	ctx context.Context, q *db.Queries, of *knownDelivery, a arrival, body []byte, rows *db.InsertDeliveriesParams,
) error {
	of.body, of.mined = body, a.mined
	if i := of.row; i >= 0 { // not inserted yet
		rows.Bodies[i], rows.BlockHashes[i] = body, []byte(a.mined.block)
		rows.LogIndexes[i], rows.Seqs[i] = a.mined.logIndex, a.mined.seq
		return nil
	}
	return q.CorrectDelivery(ctx, db.CorrectDeliveryParams{
		EventID: of.event, Body: body, BlockHash: []byte(a.mined.block), LogIndex: a.mined.logIndex, Seq: a.mined.seq,
	})
}

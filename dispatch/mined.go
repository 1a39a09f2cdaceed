package dispatch

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/registry/db"
)

// Below final confirmations a transaction may be told of, lose its block, and be mined
// again in another: the referral topics then hold its referrals twice, with another
// block, time and, mostly, log index, by which an event's id is made. It is one event
// all the same, and its partner is told of it once (docs/adr/0007):
//
//   - a transaction that is mined again makes the same logs in the same order. So its first
//     referral of a partner and type is the first again, the second the second: that is how
//     the delivery is found. It keeps its id and sequence, and gets the newest body;
//   - what was not acknowledged yet is sent with that body, but where its POST began within
//     a second of the correction (lane/due.go). What was is not sent again:
//     the delivery says when it was corrected, and the pull stream and a replay give what
//     is true;
//   - which mining is the newer, the log says: its records have higher numbers. A topic
//     that is read again, from before the newer one, changes nothing.

// mining is where a referral's transaction was mined.
type mining struct {
	tx, block string // hashes; empty for what was written before they were kept
	logIndex  int64
	seq       int64 // of its record in the log
}

// telling is a delivery as insert sees it.
type telling struct {
	event   uuid.UUID
	partner int64
	kind    string
	body    []byte
	mined   mining
	row     int // among those that are inserted now; -1: it is in PostgreSQL
}

// tellings are the deliveries that arrivals may be known as.
type tellings struct {
	byEvent map[uuid.UUID]*telling
	byTx    map[string][]*telling // in the order of their sequences
}

func (k *tellings) add(t *telling) {
	k.byEvent[t.event] = t
	if t.mined.tx != "" {
		k.byTx[t.mined.tx] = append(k.byTx[t.mined.tx], t)
	}
}

func readTellings(ctx context.Context, q *db.Queries, arrivals []arrival) (*tellings, error) {
	p := db.KnownDeliveriesParams{EventIds: make([]uuid.UUID, len(arrivals)), TxHashes: make([][]byte, len(arrivals))}
	for i, a := range arrivals {
		p.EventIds[i], p.TxHashes[i] = a.event, []byte(a.mined.tx)
	}
	rows, err := q.KnownDeliveries(ctx, p)
	if err != nil {
		return nil, err
	}
	k := &tellings{byEvent: map[uuid.UUID]*telling{}, byTx: map[string][]*telling{}}
	for _, r := range rows {
		k.add(&telling{
			event: r.EventID, partner: r.PartnerID, kind: r.Type, body: r.Body, row: -1,
			mined: mining{tx: string(r.TxHash), block: string(r.BlockHash), logIndex: r.LogIndex, seq: r.Seq},
		})
	}
	return k, nil
}

// judge says what an arrival is: recordInserted for a new event, or recordKnown,
// recordConflict or recordCorrected of the delivery that it gives, with the body that
// the arrival has under that delivery's id.
func (k *tellings) judge(a arrival) (what string, of *telling, body []byte, err error) {
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
	case bytes.Equal(body, of.body):
		return recordKnown, of, nil, nil
	case of.mined.tx == "" || of.mined.block == a.mined.block:
		return recordConflict, of, nil, nil
	}
	return recordCorrected, of, body, nil
}

// find gives the delivery that an arrival is one with: that of the very same log, else
// the first of its transaction that is of an older mining, else that with its id.
// overtaken: the arrival itself is of an older mining than what is told.
func (k *tellings) find(a arrival) (of *telling, overtaken bool) {
	for _, t := range k.byTx[a.mined.tx] {
		switch {
		case t.partner != a.partner || t.kind != a.kind:
		case t.mined.block == a.mined.block && t.mined.logIndex == a.mined.logIndex:
			return t, false
		case t.mined.block == a.mined.block:
		case t.mined.seq >= a.mined.seq:
			return t, true
		case of == nil:
			of = t
		}
	}
	if of == nil {
		of = k.byEvent[a.event]
	}
	return of, false
}

// bodyOf is what is told of an arrival under another id than its own: the id of the
// event's first mining.
func (a arrival) bodyOf(event uuid.UUID) ([]byte, error) {
	if event == a.event {
		return a.body, nil
	}
	envelope := *a.envelope
	envelope.ID = event
	body, err := envelope.Body()
	if err != nil {
		return nil, fmt.Errorf("correct event %s: %w", event, err)
	}
	return body, nil
}

// correct gives a delivery the body of a newer mining.
func correct(ctx context.Context, q *db.Queries, of *telling, a arrival, body []byte, rows *db.InsertDeliveriesParams) error {
	of.body, of.mined = body, a.mined
	if i := of.row; i >= 0 { // nobody has seen it yet
		rows.Bodies[i], rows.BlockHashes[i], rows.LogIndexes[i], rows.Seqs[i] = body, []byte(a.mined.block), a.mined.logIndex, a.mined.seq
		return nil
	}
	return q.CorrectDelivery(ctx, db.CorrectDeliveryParams{
		EventID: of.event, Body: body, BlockHash: []byte(a.mined.block), LogIndex: a.mined.logIndex, Seq: a.mined.seq,
	})
}

package events

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
)

const (
	streamKind = "text/event-stream; charset=utf-8"
	// reconnectAfter sets how long a browser waits before it reconnects.
	reconnectAfter = "retry: 2000\n\n"
	// again is the pause after a failed query.
	again = time.Second
)

type only struct {
	kinds kinds
	vault *common.Address
	user  *common.Address
}

// Stream sends the log after a seq as server-sent events, for as long as the client stays connected.
func (f *Feed) Stream(r *serve.Request) (*serve.Answer, error) {
	selected := &only{kinds: kindsOf(r.Params), vault: r.Params.Filter("vault"), user: r.Params.Filter("user")}
	after, given := position(r)
	return r.Following(func(newest uint64) *serve.Answer {
		if !given {
			after = newest
		}
		return &serve.Answer{Kind: streamKind, Live: func(ctx context.Context, out *serve.Live) error {
			return f.follow(ctx, out, after, after != newest, selected)
		}}
	})
}

// position returns the seq after which the client wants events. A browser that reconnects sends the id of its last
// event, which takes precedence over the parameter of its first request.
func position(r *serve.Request) (after uint64, given bool) {
	field, value := "Last-Event-ID", r.HTTP.Header.Get("Last-Event-ID")
	asked := r.Params.Get("after")
	if value == "" {
		field, value = "after", asked
	}
	if value == "" {
		return 0, false
	}
	after, err := strconv.ParseUint(value, 10, 63)
	if err != nil {
		r.Params.Fault(field, fmt.Sprintf("must be the seq of an event, 0 to %d", math.MaxInt64))
	}
	return after, true
}

// follow sends everything after a seq, read by read, and waits at the end of the log for more. It also waits if the
// seq does not exist yet: another instance or the previous generation may have been ahead. The stream is behind after a
// seq that its client chose, or if its client was too slow for the shared reads, until it has reached the end of a
// snapshot, which no client chooses. However far the log jumps, a stream at its end is not behind.
func (f *Feed) follow(ctx context.Context, out *serve.Live, after uint64, behind bool, selected *only) error {
	if err := out.Send([]byte(reconnectAfter)); err != nil {
		return err
	}
	for {
		s, changed := out.Newest()
		var most time.Duration
		if s != nil && after < s.Seq {
			behind = behind || f.atEnd.left(s.Generation, after)
			to, err := f.sendNext(ctx, out, s, after, behind, selected)
			var question *state.Error
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err == nil:
				after, behind = to, behind && to < s.Seq
				continue
			case errors.Is(err, errUnsent), errors.As(err, &question) && question.Ours:
				return err
			}
			most = again // the engine is down or overloaded
		}
		if err := out.Wait(ctx, changed, most); err != nil {
			return err
		}
	}
}

// errUnsent marks the error of a broken connection.
var errUnsent = errors.New("the client receives nothing")

// sendNext sends the records after a seq, up to the seq that it returns. What a stream that is behind reads is seldom
// read by others, so such streams have few places to hold it until their clients have received it.
func (f *Feed) sendNext(
	ctx context.Context, out *serve.Live, s *state.Snapshot, after uint64, behind bool, selected *only,
) (to uint64, err error) {
	if behind {
		leave, err := out.CatchUp(ctx)
		if err != nil {
			return 0, err
		}
		defer leave()
	}
	st, err := f.next(ctx, out, s, after, behind, selected)
	if err != nil {
		return 0, err
	}
	if err := out.Send(st.pieces(selected)...); err != nil {
		return 0, errors.Join(errUnsent, err)
	}
	return st.to, nil
}

// stretch is a range of the log, encoded for sending.
type stretch struct {
	to     uint64
	frames []frame
}

// frame is one encoded event, with the fields that filters use.
type frame struct {
	seq         uint64 // of its record, which may have several frames: one for each effect, and the end of its unit
	unit        bool   // the end of a unit, which is sent to all streams
	kind        ask.Name
	vault, user common.Address
	text        []byte // without the id
	numbered    []byte // the same with the id
}

// pieces returns the frames that match a stream's filter. A client that reconnects continues after the record of its
// last id, so only the last frame of a record that the stream sends has an id.
func (st *stretch) pieces(selected *only) (out [][]byte) {
	numbered := uint64(0) // the record whose last frame was found
	for i := len(st.frames) - 1; i >= 0; i-- {
		switch fr := &st.frames[i]; {
		case !fr.unit && !selected.matches(fr.kind, fr.vault, fr.user):
		case fr.seq == numbered:
			out = append(out, fr.text)
		default:
			out = append(out, fr.numbered)
			numbered = fr.seq
		}
	}
	slices.Reverse(out)
	return out
}

func (o *only) matches(kind ask.Name, vault, user common.Address) bool {
	return (len(o.kinds) == 0 || slices.Contains(o.kinds, kind)) &&
		(o.vault == nil || *o.vault == vault) &&
		(o.user == nil || *o.user == user && user != common.Address{})
}

// stretchRow is an effect of a record of the log, or a record without effect.
type stretchRow struct {
	row
	Retracts uint64 `ch:"retracts"`
	Boundary bool   `ch:"boundary"`
	// the record belongs to a block that is still in the chain
	Indexed bool `ch:"indexed" sql:"record = 'block' AND sign = 1"`
	Sent    bool `ch:"sent"`
}

type ofStretch struct {
	After uint64 `ask:"after"`
	To    uint64 `ask:"to"`
}

var stretches = ask.New[ofStretch, stretchRow](state.SQL(files, "stretch"))

type unitJSON struct {
	Seq         string  `json:"seq"`
	Generation  int32   `json:"generation"`
	BlockNumber *string `json:"blockNumber"`
	Timestamp   *string `json:"timestamp"`
}

// read reads a range of the log, filtered by `selected` unless it is nil. Each record is sent as it was in the log;
// later changes to it are sent when they occur.
func read(ctx context.Context, s *state.Snapshot, after, to uint64, selected *only) (*stretch, error) {
	p := ask.Newest(s)
	rows, err := stretches.Rows(ctx, p, ofStretch{after, to})
	if err != nil {
		return nil, err
	}
	var logs []row
	for i := range rows {
		r := &rows[i]
		if r.Sent && selected != nil {
			r.Sent = selected.matches(ask.Name(r.Kind), r.Vault, r.User)
		}
		if r.Sent {
			logs = append(logs, r.row)
		}
	}
	described, err := describe(ctx, p, logs, false)
	if err != nil {
		return nil, err
	}
	out := &stretch{to: to}
	for i := range rows {
		r := &rows[i]
		if r.Sent {
			event := described[0]
			described = described[1:]
			name := event.Kind
			if r.Retracts != 0 {
				name, event.State = retracted, retracted
				event.Seq, event.RetractedBySeq = serve.Decimal(r.Retracts), new(serve.Decimal(r.Seq))
			}
			fr := frame{seq: r.Seq, kind: ask.Name(r.Kind), vault: r.Vault, user: r.User}
			if err := fr.encode(name, event); err != nil {
				return nil, err
			}
			out.frames = append(out.frames, fr)
		}
		if r.Boundary && (i+1 == len(rows) || rows[i+1].Seq != r.Seq) { // the last row of the record
			unit := unitJSON{Seq: serve.Decimal(r.Seq), Generation: s.Generation}
			if r.Indexed {
				unit.BlockNumber, unit.Timestamp = new(serve.Decimal(r.Block)), new(serve.Time(uint64(r.Time)))
			}
			fr := frame{seq: r.Seq, unit: true}
			if err := fr.encode("unit", unit); err != nil {
				return nil, err
			}
			out.frames = append(out.frames, fr)
		}
	}
	return out, nil
}

func (fr *frame) encode(name string, data any) error {
	body, err := serve.Encode(data)
	if err != nil {
		return err
	}
	id := fmt.Sprintf("id: %d\n", fr.seq)
	fr.numbered = fmt.Appendf(nil, "%sevent: %s\ndata: %s\n", id, name, body)
	fr.text = fr.numbered[len(id):]
	return nil
}

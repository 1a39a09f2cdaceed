package chainlog

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/telemetry"
)

// Encode returns the Kafka record of r for chain.<id>.log. The key (the address that the
// fact is about) and the header "type" are for people and tools; readers use only the value.
func Encode(r *event.Record) (*kgo.Record, error) {
	value, err := proto.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode record %d: %w", r.GetSeq(), err)
	}
	out := &kgo.Record{Topic: LogTopic(r.GetChainId()), Partition: 0, Value: value}
	switch fact := r.GetFact().(type) {
	case *event.Record_Log:
		out.Key, out.Timestamp = fact.Log.GetAddress(), blockTime(fact.Log.GetBlockTime())
	case *event.Record_Block:
		out.Timestamp = blockTime(fact.Block.GetTime())
	case *event.Record_Vault:
		out.Key = fact.Vault.GetAddress()
	case *event.Record_Decision:
		out.Timestamp = time.UnixMilli(int64(fact.Decision.GetTime()))
	case *event.Record_Sample:
		out.Key, out.Timestamp = fact.Sample.GetVault(), blockTime(fact.Sample.GetBlockTime())
	default:
		return nil, fmt.Errorf("encode record %d: it has no fact", r.GetSeq())
	}
	out.Headers = typeHeaders[TypeOf(r)]
	return out, nil
}

// EncodeCursor returns the Kafka record of a cursor for chain.<id>.cursor.
func EncodeCursor(c *event.Cursor) (*kgo.Record, error) {
	value, err := proto.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode the cursor: %w", err)
	}
	return &kgo.Record{Topic: CursorTopic(c.GetChainId()), Key: strconv.AppendUint(nil, c.GetChainId(), 10), Value: value},
		nil
}

// typeHeaders are shared by all records, since nothing writes to the headers of a produced record.
var typeHeaders = func() map[string][]kgo.RecordHeader {
	headers := map[string][]kgo.RecordHeader{}
	for _, t := range []string{"log", "block", "vault", "decision", "sample"} {
		headers[t] = []kgo.RecordHeader{{Key: "type", Value: []byte(t)}}
	}
	return headers
}()

// Carry adds the trace context of a record to its headers; parent may be empty. The content of the log is the values of
// its records: readers compare, count and map those only, so a log is the same with and without traces.
func Carry(r *kgo.Record, parent string) {
	if parent != "" {
		header := kgo.RecordHeader{Key: telemetry.Header, Value: []byte(parent)}
		r.Headers = append(slices.Clip(r.Headers), header) // typeHeaders are shared
	}
}

// Parent returns the trace context that a record carries, or an empty text.
func Parent(r *kgo.Record) string {
	if r == nil {
		return ""
	}
	for i := range r.Headers {
		if r.Headers[i].Key == telemetry.Header {
			return string(r.Headers[i].Value)
		}
	}
	return ""
}

// Decode decodes a record of chain.<chainID>.log. The error names the topic and the offset. Callers must not skip a
// record that cannot be decoded, because everything after it would build on a hole.
func Decode(chainID uint64, in *kgo.Record) (*event.Record, error) {
	if _, err := Peek(chainID, in); err != nil {
		return nil, err
	}
	r := new(event.Record)
	if err := proto.Unmarshal(in.Value, r); err != nil {
		return nil, &CorruptError{Topic: in.Topic, Partition: in.Partition, Offset: in.Offset, Err: err}
	}
	return r, nil
}

// Field numbers of Record in event.proto.
const (
	fieldSeq      = Varint | 1
	fieldBoundary = Varint | 3
	fieldChainID  = Varint | 4
	fieldFact     = 8 // the first of the facts
	fieldLastFact = 12
)

// Peek decodes only what the order of records needs, and rejects what Decode would reject
// because of that; it does not decode the fact.
func Peek(chainID uint64, in *kgo.Record) (Raw, error) {
	out := Raw{Offset: in.Offset, Value: in.Value, Kafka: in}
	var chain uint64
	fact := false
	err := Fields(in.Value, func(n protowire.Number, v uint64, _ []byte) {
		switch {
		case n == fieldSeq:
			out.Seq = v
		case n == fieldBoundary:
			out.Boundary = v != 0
		case n == fieldChainID:
			chain = v
		case n >= fieldFact && n <= fieldLastFact:
			fact = true
		}
	})
	switch {
	case err != nil:
	case !fact || out.Seq == 0:
		err = errNoFact
	case chain != chainID:
		err = fmt.Errorf("it is of chain %d, not %d", chain, chainID)
	}
	if err != nil {
		return Raw{}, &CorruptError{Topic: in.Topic, Partition: in.Partition, Offset: in.Offset, Err: err}
	}
	return out, nil
}

// Varint marks the number of a varint field for the caller of Fields, so that a field with an unexpected wire type has
// none of the expected numbers.
const Varint = 1 << 30

// Fields calls see for each field of a protobuf message, with v for a varint and b for bytes.
func Fields(m []byte, see func(n protowire.Number, v uint64, b []byte)) error {
	for len(m) > 0 {
		number, kind, n := protowire.ConsumeTag(m)
		if n < 0 {
			return ErrMalformed
		}
		m = m[n:]
		switch kind {
		case protowire.VarintType:
			var v uint64
			if v, n = protowire.ConsumeVarint(m); n >= 0 {
				see(Varint|number, v, nil)
			}
		case protowire.BytesType:
			var b []byte
			if b, n = protowire.ConsumeBytes(m); n >= 0 {
				see(number, 0, b)
			}
		default:
			n = protowire.ConsumeFieldValue(number, kind, m)
		}
		if n < 0 {
			return ErrMalformed
		}
		m = m[n:]
	}
	return nil
}

// ErrMalformed means that bytes are not the protobuf of a record.
var ErrMalformed = errors.New("it is not the protobuf of a record")

var errNoFact = errors.New("it has no fact or no seq")

// CorruptError reports a record that navlog cannot have written.
type CorruptError struct {
	Topic     string
	Partition int32
	Offset    int64
	Err       error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("record at offset %d of %s, partition %d, is corrupt: %v: nothing after it was applied; "+
		"restore the topic from a replica or a backup, and restart", e.Offset, e.Topic, e.Partition, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// TypeOf returns the kind of fact in r: log, block, vault, decision or sample.
func TypeOf(r *event.Record) string {
	switch r.GetFact().(type) {
	case *event.Record_Log:
		return "log"
	case *event.Record_Block:
		return "block"
	case *event.Record_Vault:
		return "vault"
	case *event.Record_Decision:
		return "decision"
	case *event.Record_Sample:
		return "sample"
	}
	return "unknown"
}

// Sign returns -1 for a retraction and +1 for every other record.
func Sign(r *event.Record) int8 {
	if r.GetRetracts() != 0 {
		return -1
	}
	return 1
}

func blockTime(seconds uint64) time.Time { return time.Unix(int64(seconds), 0) }

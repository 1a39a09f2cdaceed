package rpc

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/go-faster/jx"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
)

// maxTopics is the maximum number of topics of an EVM log.
const maxTopics = 4

// maxRemoved is the maximum number of logs that a response may report as removed: such a log may have no other member,
// so that it takes much more memory than its text.
const maxRemoved = 10_000

// noTime stands for the block time of a log whose node does not return it.
const noTime = math.MaxUint64

type answer struct {
	logs     []*event.Log // in the order of the chain, without duplicates
	bytes    int          // size of the response
	received int          // logs in the response except pending ones; duplicates and removed ones count
	// unsorted is true if the logs came in another order, so that a truncated response may lack any of them.
	unsorted bool
	// removed are logs that the node reports as no longer in a block of its chain.
	removed []*event.Log
	null    bool // instead of a list
}

// decodeLogs decodes the result of eth_getLogs; null is an empty list. The logs do not reference the result. Their
// memory is allocated in slabs: half a million small allocations a second are most of the cost of a generic decoder.
func decodeLogs(result []byte) (*answer, error) {
	return decodeInto(result, func(d *decoder, a *answer) error {
		if a.null = none(result); a.null {
			return nil
		}
		return d.logsIn(result, a)
	})
}

// decodeReceipts decodes the logs in the result of eth_getBlockReceipts. It returns ErrNoReceipts for null.
func decodeReceipts(result []byte) (*answer, error) {
	if none(result) {
		return nil, ErrNoReceipts
	}
	return decodeInto(result, func(d *decoder, a *answer) error {
		return list(result, "a list of receipts", func(text *jx.Decoder) error {
			receipt, err := next(text)
			if err != nil {
				return err
			}
			return d.receipt(receipt, a)
		})
	})
}

// decodeReceipt decodes the logs of one receipt. null has none.
func decodeReceipt(result []byte) (*answer, error) {
	return decodeInto(result, func(d *decoder, a *answer) error {
		if none(result) {
			return nil
		}
		return d.receipt(result, a)
	})
}

func decodeInto(result []byte, decode func(*decoder, *answer) error) (*answer, error) {
	a := &answer{bytes: len(result)}
	if n := len(result) / typicalLogBytes; n > 0 {
		a.logs = make([]*event.Log, 0, n)
	}
	if err := decode(new(decoder), a); err != nil {
		return nil, err
	}
	return a, a.order()
}

func (d *decoder) receipt(text []byte, a *answer) error {
	var logs []byte
	err := object(text, "a receipt", func(name, value []byte) error {
		switch {
		case string(name) != "logs":
		case logs != nil:
			return errors.New("logs: it is there twice")
		default:
			logs = value
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case logs == nil:
		return errors.New("a receipt has no logs")
	case none(logs):
		return nil
	}
	return d.logsIn(logs, a)
}

func (d *decoder) logsIn(text []byte, a *answer) error {
	return list(text, "a list of logs", func(text *jx.Decoder) error {
		l, state, err := d.log(text)
		if err != nil {
			return fmt.Errorf("log %d: %w", a.received, err)
		}
		switch state {
		case removed:
			if len(a.removed) == maxRemoved {
				return fmt.Errorf("more than %d logs are reported as removed", maxRemoved)
			}
			a.received++
			a.removed = append(a.removed, l)
		case mined:
			a.received++
			if last := len(a.logs) - 1; last >= 0 && compareLogs(a.logs[last], l) >= 0 {
				a.unsorted = true
			}
			a.logs = append(a.logs, l)
		}
		return nil
	})
}

func compareLogs(a, b *event.Log) int {
	return cmp.Or(cmp.Compare(a.BlockNumber, b.BlockNumber), cmp.Compare(a.LogIndex, b.LogIndex))
}

// order sorts the logs and removes duplicates. Two different logs at one position are an error.
func (a *answer) order() error {
	if !a.unsorted {
		return nil
	}
	slices.SortStableFunc(a.logs, compareLogs)
	kept := a.logs[:1]
	for _, l := range a.logs[1:] {
		before := kept[len(kept)-1]
		switch {
		case compareLogs(before, l) != 0:
			kept = append(kept, l)
		case !proto.Equal(before, l):
			return fmt.Errorf("logIndex: two different logs have number %d in block %d", l.LogIndex, l.BlockNumber)
		}
	}
	a.logs = kept
	return nil
}

// typicalLogBytes is roughly the smallest size of a log in JSON, in bytes.
const typicalLogBytes = 550

const (
	slabLogs   = 128
	slabTopics = 512
	slabBytes  = 32 << 10
)

// decoder decodes logs into slabs. A field that repeats the text of the log before it is not decoded again.
type decoder struct {
	logs   []event.Log
	topics [][]byte
	bytes  []byte

	address, blockHash, txHash repeated
}

// repeated is a field that often has the same value as in the log before.
type repeated struct {
	text, value []byte
}

// logMembers are the members of a log that are read. The needed ones come first: the others may be missing, because the
// header of the block has the time, and the transaction index affects no decision.
var logMembers = [...]string{"address", "topics", "data", "blockNumber", "blockHash", "transactionHash", "logIndex",
	"transactionIndex", "blockTimestamp", "removed"}

// Positions of members.
const (
	atNumber    = 3 // from this one on, null is the same as no value, as in a log that is in no block
	atBlockHash = 4
	needed      = 7
	atRemoved   = 9
)

func (d *decoder) member(l *event.Log, name string, value []byte) (err error) {
	switch name {
	case "address":
		l.Address, err = d.decodeRepeated(&d.address, value, common.AddressLength)
	case "topics":
		l.Topics, err = d.topicList(value)
	case "data":
		err = d.data(l, value)
	case "blockNumber":
		l.BlockNumber, err = quantity(value)
	case "blockHash":
		l.BlockHash, err = d.decodeRepeated(&d.blockHash, value, common.HashLength)
	case "transactionHash":
		l.TxHash, err = d.decodeRepeated(&d.txHash, value, common.HashLength)
	case "logIndex":
		l.LogIndex, err = index(value)
	case "transactionIndex":
		l.TxIndex, err = index(value)
	case "blockTimestamp":
		l.BlockTime = timeOf(value)
	case "removed":
		if v := string(value); v != "true" && v != "false" {
			err = unexpectedValue(value, "true or false")
		}
	}
	return err
}

// logState is where a log is, according to the node.
type logState int

const (
	mined   logState = iota
	pending          // in no block yet
	removed          // no longer in a block of the node's chain
)

func (d *decoder) log(text *jx.Decoder) (*event.Log, logState, error) {
	var values [len(logMembers)][]byte
	err := members(text, "a log", func(name, value []byte) error {
		i := slices.Index(logMembers[:], string(name))
		if i < 0 {
			return nil
		}
		if values[i] != nil && !bytes.Equal(values[i], value) {
			return fmt.Errorf("%s: it is there twice, with two values", name)
		}
		values[i] = value
		return nil
	})
	if err != nil {
		return nil, mined, err
	}
	if len(d.logs) == 0 {
		d.logs = make([]event.Log, slabLogs)
	}
	l := &d.logs[0]
	d.logs = d.logs[1:]
	l.BlockTime = noTime
	for i, value := range values {
		if value == nil || i >= atNumber && none(value) {
			continue
		}
		if err := d.member(l, logMembers[i], value); err != nil {
			return nil, mined, fmt.Errorf("%s: %w", logMembers[i], err)
		}
	}
	switch {
	case string(values[atRemoved]) == "true":
		return l, removed, nil
	case bytes.Equal(values[atNumber], null) && bytes.Equal(values[atBlockHash], null):
		return l, pending, nil
	}
	for i, value := range values[:needed] {
		switch {
		case value == nil:
			return nil, mined, fmt.Errorf("it has no %s", logMembers[i])
		case i >= atNumber && none(value):
			return nil, mined, fmt.Errorf("%s: it is null", logMembers[i])
		}
	}
	return l, mined, nil
}

// timeOf reads the time of a log. A zero, or anything that is not a number of seconds, counts as missing.
func timeOf(value []byte) uint64 {
	if n, err := quantity(value); err == nil && n > 0 && n <= maxSeconds {
		return n
	}
	return noTime
}

// maxSeconds is in the year 36812. A larger value is in milliseconds, or not a time.
const maxSeconds = 1 << 40

// decodeRepeated decodes a value of fixed size, which is often the same as before.
func (d *decoder) decodeRepeated(before *repeated, value []byte, size int) ([]byte, error) {
	if !bytes.Equal(value, before.text) {
		decoded := d.alloc(size)
		if err := decodeFixed(decoded, value); err != nil {
			return nil, err
		}
		*before = repeated{value, decoded}
	}
	return before.value, nil
}

// topicList decodes the topics. null is an empty list, as some nodes write it.
func (d *decoder) topicList(value []byte) ([][]byte, error) {
	if none(value) {
		return nil, nil
	}
	if len(d.topics) < maxTopics {
		d.topics = make([][]byte, slabTopics)
	}
	n := 0
	err := list(value, "a list of topics", func(text *jx.Decoder) error {
		if n == maxTopics {
			return fmt.Errorf("there are more than %d", maxTopics)
		}
		value, err := next(text)
		if err != nil {
			return err
		}
		topic := d.alloc(common.HashLength)
		d.topics[n] = topic
		n++
		return decodeFixed(topic, value)
	})
	topics := d.topics[:n:n]
	d.topics = d.topics[n:]
	return topics, err
}

func (d *decoder) data(l *event.Log, value []byte) error {
	hexed, err := digits(value)
	if err != nil || len(hexed) == 0 {
		return err
	}
	data := d.alloc(len(hexed) / 2)
	_, err = hex.Decode(data, hexed)
	l.SetData(data)
	return err
}

// alloc allocates size bytes from a slab.
func (d *decoder) alloc(size int) []byte {
	if size > len(d.bytes) {
		if size > slabBytes/8 { // allocated separately: the rest of the slab is still useful
			return make([]byte, size)
		}
		d.bytes = make([]byte, slabBytes)
	}
	room := d.bytes[:size:size]
	d.bytes = d.bytes[size:]
	return room
}

// decodeHeader decodes the result of eth_getBlockBy…; nil for null. Only block 0 may lack a parent and a time.
func decodeHeader(result []byte) (*Header, error) {
	if none(result) {
		return nil, nil
	}
	h, names := &Header{NoBloom: true}, [...]string{"number", "hash", "parentHash", "timestamp"}
	var has [len(names)]bool
	err := object(result, "a block", func(name, value []byte) (err error) {
		if none(value) {
			return nil // treated as missing
		}
		switch string(name) {
		case "number":
			h.Number, err = quantity(value)
		case "hash":
			err = decodeFixed(h.Hash[:], value)
		case "parentHash":
			err = decodeFixed(h.Parent[:], value)
		case "timestamp":
			if h.Time, err = quantity(value); h.Time > maxSeconds {
				err = fmt.Errorf("%d is not a time in seconds", h.Time)
			}
		case "logsBloom":
			err = h.bloom(value)
		default:
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if i := slices.Index(names[:], string(name)); i >= 0 {
			has[i] = true
		}
		return nil
	})
	for i, name := range names {
		if err == nil && !has[i] && (i < 2 || h.Number > 0) {
			err = fmt.Errorf("it has no %s", name)
		}
	}
	return h, err
}

// bloom reads the bloom of a header. "" and "0x" mean that it has none.
func (h *Header) bloom(value []byte) error {
	hexed, err := digits(value)
	if err != nil || len(hexed) == 0 {
		return err
	}
	h.NoBloom = false
	return decodeFixed(h.Bloom[:], value)
}

func decodeBytes(result []byte) ([]byte, error) {
	if none(result) {
		return nil, unexpectedValue(result, "a string")
	}
	hexed, err := digits(result)
	if err != nil {
		return nil, err
	}
	return hex.DecodeString(string(hexed))
}

package event

import (
	"bytes"

	"github.com/ethereum/go-ethereum/crypto"
)

// MaxData is how many bytes of data a record of the log holds: a batch of Kafka has one million, which is the default of
// brokers and the least that navlog asks of them, and the rest of a record takes less than two thousand. On chain, data of
// this length costs eight million gas.
const MaxData = 998_000

// SetData gives a log its data, or, if no record holds it, the length and the hash of the data: the log stays complete,
// and the data can be proven to whoever has it. No event that navlog knows has data of that length.
func (x *Log) SetData(data []byte) {
	if len(data) <= MaxData {
		x.Data, x.DataLength, x.DataHash = data, 0, nil
		return
	}
	x.Data, x.DataLength, x.DataHash = nil, uint64(len(data)), crypto.Keccak256(data)
}

// Omitted reports whether the log had data that its record does not hold.
func (x *Log) Omitted() bool { return len(x.GetDataHash()) > 0 }

// HasData reports whether data is what the log has, or had.
func (x *Log) HasData(data []byte) bool {
	if !x.Omitted() {
		return bytes.Equal(x.GetData(), data)
	}
	return x.GetDataLength() == uint64(len(data)) && bytes.Equal(x.GetDataHash(), crypto.Keccak256(data))
}

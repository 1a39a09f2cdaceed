package event

import (
	"bytes"

	"github.com/ethereum/go-ethereum/crypto"
)

// MaxData is the maximum number of data bytes in a record of the log. A Kafka batch holds one million bytes, the
// default of brokers and the minimum that navlog requires, and the rest of a record takes less than two thousand. On
// chain, data of this length costs eight million gas.
const MaxData = 998_000

// SetData sets the data of a log or, if it is too long for a record, its length and hash: the log stays complete, and
// anyone who has the data can verify it. No event that navlog knows has data of that length.
func (x *Log) SetData(data []byte) {
	if len(data) <= MaxData {
		x.Data, x.DataLength, x.DataHash = data, 0, nil
		return
	}
	x.Data, x.DataLength, x.DataHash = nil, uint64(len(data)), crypto.Keccak256(data)
}

// Omitted reports whether the log's data was too long for its record.
func (x *Log) Omitted() bool { return len(x.GetDataHash()) > 0 }

// HasData reports whether data is the log's data, even if the record has only its hash.
func (x *Log) HasData(data []byte) bool {
	if !x.Omitted() {
		return bytes.Equal(x.GetData(), data)
	}
	return x.GetDataLength() == uint64(len(data)) && bytes.Equal(x.GetDataHash(), crypto.Keccak256(data))
}

package readmodel

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// The places of a list of users are kept in buckets, which are numbered along
// the ascending order of the list: by key, then by user. How many users each
// bucket holds is in a projection, so that a page is found by adding up the
// buckets before it, and made of those that it lies in.
//
//	bucket   0 ............ 2047   2048 ................................
//	key      0, by the user's      from 1 on: amounts 128 to an octave,
//	         first 11 bits         times by the 34 minutes
//
// Key 0 is many users' (whoever never claimed anything) and is divided by user
// for that; any other key is in one bucket.

// ZeroBuckets is how many buckets hold the places with key 0, by user.
const ZeroBuckets = 1 << zeroBits

const (
	zeroBits = 11 // of the user
	stepBits = 7  // of an amount, after the leading one
	timeBits = 11 // of a time, that are left out
)

// AmountBucket is the bucket of a place in the lists whose key is an amount:
// the amount's length in bits, and the bits that follow its leading one. The
// amount is in native units, from 0 to 2^255 - 1.
func AmountBucket(key *uint256.Int, user common.Address) uint32 {
	if key.IsZero() {
		return uint32(binary.BigEndian.Uint16(user[:]) >> (16 - zeroBits))
	}
	length := key.BitLen()
	if length <= stepBits {
		return ZeroBuckets + uint32(key.Uint64())
	}
	var lead uint256.Int // the leading one and stepBits more
	lead.Rsh(key, uint(length-1-stepBits))
	return ZeroBuckets + uint32(length-1-stepBits)<<stepBits + uint32(lead.Uint64())
}

// TimeBucket is the bucket of a place in the list whose key is a time, in Unix
// seconds.
func TimeBucket(key uint32) uint32 { return ZeroBuckets + key>>timeBits }

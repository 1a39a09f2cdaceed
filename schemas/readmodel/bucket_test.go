package readmodel_test

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"github.com/navlog/navlog/schemas/readmodel"
)

func two(exponent uint, plus int64) *big.Int {
	return new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), exponent), big.NewInt(plus))
}

// TestAmountBucketsFollowTheOrder: over the whole range, a place that comes later
// in the order is never in an earlier bucket, and a bucket is narrow.
func TestAmountBucketsFollowTheOrder(t *testing.T) {
	var keys []*big.Int
	for n := range int64(300) {
		keys = append(keys, big.NewInt(n))
	}
	for length := uint(8); length < 255; length++ {
		keys = append(keys, two(length, -1), two(length, 0), two(length, 1))
		for range 20 {
			keys = append(keys, new(big.Int).Add(two(length, 0), new(big.Int).SetBytes(random(int(length)/8))))
		}
	}
	keys = append(keys, two(191, -1), two(255, -1))
	slices.SortFunc(keys, (*big.Int).Cmp)
	var before uint32
	for i, key := range keys {
		got := readmodel.AmountBucket(uint256.MustFromBig(key), common.Address{})
		if got < before {
			t.Fatalf("%d is in bucket %d, and the smaller %d in %d", key, got, keys[i-1], before)
		}
		before = got
		// Two keys that are a 128th apart are never in one bucket.
		next := new(big.Int).Add(key, new(big.Int).Add(new(big.Int).Rsh(key, 7), big.NewInt(1)))
		if next.BitLen() < 256 && readmodel.AmountBucket(uint256.MustFromBig(next), common.Address{}) == got {
			t.Errorf("%d and %d are both in bucket %d", key, next, got)
		}
	}
}

func TestBuckets(t *testing.T) {
	low, high := common.Address{}, common.HexToAddress("0xffffffffffffffffffffffffffffffffffffffff")
	for _, c := range []struct {
		key    *big.Int
		user   common.Address
		bucket uint32
	}{
		{big.NewInt(0), low, 0},
		{big.NewInt(0), common.HexToAddress("0x001f000000000000000000000000000000000000"), 0},
		{big.NewInt(0), common.HexToAddress("0x0020000000000000000000000000000000000000"), 1},
		{big.NewInt(0), high, 2047},
		{big.NewInt(1), low, 2049},
		{big.NewInt(127), high, 2048 + 127},
		{big.NewInt(128), low, 2048 + 128},
		{big.NewInt(255), low, 2048 + 255},
		{big.NewInt(256), low, 2048 + 256},
		{big.NewInt(257), low, 2048 + 256},
		{big.NewInt(258), low, 2048 + 257},
		{two(191, -1), high, 2048 + 185*128 - 1},
		{two(255, -1), high, 2048 + 249*128 - 1},
	} {
		key := uint256.MustFromBig(c.key)
		if got := readmodel.AmountBucket(key, c.user); got != c.bucket {
			t.Errorf("%d of %s is in bucket %d, should be %d", c.key, c.user, got, c.bucket)
		}
		if zero := c.key.Sign() == 0; c.bucket < readmodel.ZeroBuckets != zero {
			t.Errorf("bucket %d is on the wrong side of %d", c.bucket, readmodel.ZeroBuckets)
		}
	}
	for key, want := range map[uint32]uint32{0: 2048, 1<<11 - 1: 2048, 1 << 11: 2049, 1_700_000_000: 2048 + 830_078, 1<<32 - 1: 2048 + 2_097_151} {
		if got := readmodel.TimeBucket(key); got != want {
			t.Errorf("time %d is in bucket %d, should be %d", key, got, want)
		}
	}
}

// FuzzBucketsFollowTheOrder compares any two places.
func FuzzBucketsFollowTheOrder(f *testing.F) {
	f.Add([]byte{0}, []byte{1}, []byte{}, []byte{0xff})
	f.Add([]byte{127}, []byte{128}, []byte{1}, []byte{})
	f.Add(two(191, -1).Bytes(), two(191, 0).Bytes(), []byte{2}, []byte{1})
	f.Add([]byte{}, []byte{}, []byte{0, 0x1f, 0xff}, []byte{0, 0x20})
	f.Fuzz(func(t *testing.T, a, b, userA, userB []byte) {
		keyA, keyB := new(big.Int).SetBytes(a[:min(len(a), 31)]), new(big.Int).SetBytes(b[:min(len(b), 31)])
		addressA, addressB := common.BytesToAddress(common.RightPadBytes(userA, 20)), common.BytesToAddress(common.RightPadBytes(userB, 20))
		order := keyA.Cmp(keyB)
		if order == 0 {
			order = addressA.Cmp(addressB)
		}
		bucketA := readmodel.AmountBucket(uint256.MustFromBig(keyA), addressA)
		bucketB := readmodel.AmountBucket(uint256.MustFromBig(keyB), addressB)
		if order < 0 && bucketA > bucketB || order > 0 && bucketA < bucketB {
			t.Errorf("%d of %s is in bucket %d, %d of %s in %d", keyA, addressA, bucketA, keyB, addressB, bucketB)
		}
		if order != 0 && keyA.Cmp(keyB) == 0 && keyA.Sign() > 0 && bucketA != bucketB {
			t.Errorf("key %d is in the buckets %d and %d", keyA, bucketA, bucketB)
		}
		if timeA, timeB := uint32(keyA.Uint64()), uint32(keyB.Uint64()); timeA <= timeB && readmodel.TimeBucket(timeA) > readmodel.TimeBucket(timeB) {
			t.Errorf("times %d and %d are out of order", timeA, timeB)
		}
	})
}

func random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

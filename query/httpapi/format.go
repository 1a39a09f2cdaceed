package httpapi

import (
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/webhook"
)

// How values look in answers, and in rows of the read models.

// Decimal writes a number the way the API writes block numbers.
func Decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// Time writes a time in Unix seconds.
func Time(seconds uint64) string { return webhook.FormatTime(seconds) }

// TimeOrNull writes a time in Unix seconds; 0 is never.
func TimeOrNull(seconds uint64) *string {
	if seconds == 0 {
		return nil
	}
	s := Time(seconds)
	return &s
}

// Millis is a time in the API's form: ISO 8601, UTC, milliseconds.
func Millis(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// MillisOrNull is Millis of a time that may not be.
func MillisOrNull(t *time.Time) *string {
	if t == nil {
		return nil
	}
	s := Millis(*t)
	return &s
}

// PartnerOrAbsent leaves out partner 0, which is none.
func PartnerOrAbsent(id uint32) *uint32 {
	if id == 0 {
		return nil
	}
	return &id
}

// ToAddress reads the bytes of a FixedString(20).
func ToAddress(s string) common.Address { return common.BytesToAddress([]byte(s)) }

// ToHash writes the bytes of a FixedString(32).
func ToHash(s string) string { return common.BytesToHash([]byte(s)).Hex() }

// SampleID names a sample of NAV, which has no log. It is opaque to clients.
func SampleID(vault string, block uint64) string {
	return vault + "-" + Decimal(block)
}

// LogID names a log of a transaction. It is opaque to clients.
func LogID(tx string, logIndex uint32) string {
	return tx + "-" + strconv.FormatUint(uint64(logIndex), 10)
}

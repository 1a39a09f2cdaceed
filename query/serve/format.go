package serve

import (
	"strconv"
	"time"

	"github.com/navlog/navlog/schemas/webhook"
)

// The formats of values in responses.

// Decimal formats a number like a block number in the API.
func Decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// Time formats a time in Unix seconds.
func Time(seconds uint64) string { return webhook.FormatTime(seconds) }

// TimeOrNull formats a time in Unix seconds; 0 means never and returns nil.
func TimeOrNull(seconds uint64) *string {
	if seconds == 0 {
		return nil
	}
	return new(Time(seconds))
}

// Millis formats a time as the API does: ISO 8601, UTC, milliseconds.
func Millis(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// MillisOrNull is Millis for a time that may be nil.
func MillisOrNull(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return new(Millis(*t))
}

// OrNull returns nil for the zero value, which means none.
func OrNull[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}

// SampleID returns the id of a NAV sample, which has no log. It is opaque to clients.
func SampleID(vault string, block uint64) string {
	return vault + "-" + Decimal(block)
}

// EffectID returns the id of an effect of a transaction's log; sub is its number in the log. It is opaque to clients.
func EffectID(tx string, logIndex uint32, sub uint8) string {
	id := tx + "-" + strconv.FormatUint(uint64(logIndex), 10)
	if sub > 0 {
		id += "." + strconv.FormatUint(uint64(sub), 10)
	}
	return id
}

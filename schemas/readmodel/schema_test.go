package readmodel

import "testing"

// A comment of a table is no part of its schema: rewritten, it makes no other generation.
func TestCommentsAreNoSchema(t *testing.T) {
	with, without := "-- one, \n-- two\nCREATE TABLE t (\n  -- three\n  seq UInt64\n)\n", "CREATE TABLE t (\n  seq UInt64\n)\n"
	if got := uncommented(with); got != without {
		t.Errorf("without its comments a table is %q, want %q", got, without)
	}
}

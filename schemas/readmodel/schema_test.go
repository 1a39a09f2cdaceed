package readmodel

import "testing"

// A comment is not part of the schema: changing it does not require another generation.
func TestCommentsAreNotInTheSchema(t *testing.T) {
	with, without := "-- one, \n-- two\nCREATE TABLE t (\n  -- three\n  seq UInt64\n)\n",
		"CREATE TABLE t (\n  seq UInt64\n)\n"
	if got := uncommented(with); got != without {
		t.Errorf("without its comments a table is %q, want %q", got, without)
	}
}

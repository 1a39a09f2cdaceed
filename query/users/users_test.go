package users

import (
	"strings"
	"testing"
)

// TestDirections: the two directions of a list are the same question.
func TestDirections(t *testing.T) {
	for desc, asc := range map[string]string{sqlPageDesc: sqlPageAsc, sqlAddedDesc: sqlAddedAsc} {
		if strings.ReplaceAll(desc, "DESC", "ASC") != asc {
			t.Errorf("these are not one question in two directions:\n%s\n%s", desc, asc)
		}
	}
}

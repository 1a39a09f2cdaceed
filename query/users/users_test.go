package users

import (
	"strings"
	"testing"
)

// TestDirections: the two directions of a list are the same question.
func TestDirections(t *testing.T) {
	turned := strings.NewReplacer("DESC", "ASC", "key <= {from_key", "key >= {from_key", "(key, user) <", "(key, user) >")
	for desc, asc := range map[string]string{sqlPageDesc: sqlPageAsc, sqlAddedDesc: sqlAddedAsc} {
		if turned.Replace(desc) != asc {
			t.Errorf("these are not one question in two directions:\n%s\n%s", desc, asc)
		}
	}
}

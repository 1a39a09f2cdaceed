package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/config/configtest"
)

// Who holds a lock of a PostgreSQL session is refused behind a pooler, by name of the
// setting; the configuration may be shared with programs that are not.
func TestSessionBehindAPooler(t *testing.T) {
	c, err := config.Load(configtest.Write(t, configtest.Sound), []string{"NAVLOG_POSTGRES_POOLED=true", configtest.SecretKey})
	if err = errors.Join(err, c.Validate(config.AllSections...)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NAVLOG_POSTGRES_POOLED", "true")
	for _, command := range [][]string{{"project"}, {"migrate"}, {"projection", "drop", "2"}} {
		err := run(t.Context(), append(command, "--config", configtest.Write(t, configtest.Sound)), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "NAVLOG_POSTGRES_POOLED=false") {
			t.Errorf("%s behind a pooler: %v", command, err)
		}
	}
}

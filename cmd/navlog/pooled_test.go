package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/config/configtest"
)

// A program that holds a session lock of PostgreSQL is rejected behind a pooler, with the name of the setting; it may
// share the configuration with programs that hold none.
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

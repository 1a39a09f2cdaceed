package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/config/configtest"
)

// A migration holds a session lock of PostgreSQL and is rejected behind a pooler, with the name of the setting. It may
// share the configuration with the programs, which hold none.
func TestSessionBehindAPooler(t *testing.T) {
	c, err := config.Load(configtest.Write(t, configtest.Sound),
		[]string{"NAVLOG_POSTGRES_POOLED=true", configtest.SecretKey})
	if err = errors.Join(err, c.Validate(config.AllSections...)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NAVLOG_POSTGRES_POOLED", "true")
	err = run(t.Context(), []string{"migrate", "--config", configtest.Write(t, configtest.Sound)}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "NAVLOG_POSTGRES_POOLED=false") {
		t.Errorf("a migration behind a pooler: %v", err)
	}
}

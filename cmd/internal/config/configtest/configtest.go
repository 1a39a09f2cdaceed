// Package configtest provides a valid configuration for tests.
package configtest

import (
	"os"
	"path/filepath"
	"testing"
)

// Sound has every required setting.
const Sound = `
chain:
  id: 31337
  rpc: [http://127.0.0.1:8545]
  vaults:
    - {address: "0x00000000000000000000000000000000000000A1", startBlock: 3, name: One}
  pollInterval: 250ms
kafka: {brokers: [127.0.0.1:9092]}
clickhouse: {addr: 127.0.0.1:9000}
postgres: {url: postgres://navlog@127.0.0.1/navlog}
http: {router: "0x00000000000000000000000000000000000000b2"}
`

// SecretKey is the environment variable of the secret key, with a value.
const SecretKey = "NAVLOG_SECRET_KEY=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

// Write writes a configuration file and returns its name.
func Write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "navlog.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

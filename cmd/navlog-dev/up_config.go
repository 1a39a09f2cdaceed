package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// secretKeyFile holds the secret key of a data folder.
const secretKeyFile = "secret.key"

// configuration is the file with which the commands of navlog find the running system.
func (u *up) configuration() string { return filepath.Join(u.cmd.Data, "navlog.yaml") }

// writeConfiguration writes the file, readable by its owner only: it holds the database's password.
func (u *up) writeConfiguration() error {
	c := u.config
	text, err := yaml.Marshal(map[string]any{
		"chain": map[string]any{"id": c.Chain.ID, "profile": c.Chain.Profile, "rpc": c.Chain.RPC,
			"vaults": c.Chain.Vaults},
		"kafka": map[string]any{"brokers": c.Kafka.Brokers, "replicationFactor": c.Kafka.ReplicationFactor},
		"clickhouse": map[string]any{"addr": c.ClickHouse.Addr, "prefix": c.ClickHouse.Prefix,
			"queryUser": c.ClickHouse.QueryUser},
		"postgres": map[string]any{"url": c.Postgres.URL},
		"http":     map[string]any{"router": c.HTTP.Router},
	})
	if err != nil {
		return fmt.Errorf("encode the configuration: %w", err)
	}
	text = append([]byte("# Written at each start of navlog-dev up, for the commands of navlog.\n"), text...)
	if err := os.WriteFile(u.configuration(), text, 0o600); err != nil {
		return fmt.Errorf("write the configuration for the commands of navlog: %w", err)
	}
	return nil
}

package enginetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/schemas/chainlog"
)

// A GuardedKafka is a broker with logins and access control, as in compose.yaml.
type GuardedKafka struct {
	*engines.ApacheKafka
	// Secrets is a folder with one password file per user.
	Secrets string
}

// StartGuardedKafka starts Apache Kafka with deploy/docker/kafka/server.properties, for this test. docker is the path
// of deploy/docker. At first admin is the only user with rights.
func StartGuardedKafka(t testing.TB, docker string) *GuardedKafka {
	t.Helper()
	if err := engines.ApacheKafkaAvailable(); err != nil {
		LeaveOut(t, err)
	}
	properties, err := os.ReadFile(filepath.Join(docker, "kafka", "server.properties"))
	if err != nil {
		t.Fatal(err)
	}
	k := &GuardedKafka{Secrets: t.TempDir()}
	for _, user := range append([]string{"admin"}, chainlog.Users...) {
		password := make([]byte, 24)
		rand.Read(password) // never fails
		if err := os.WriteFile(filepath.Join(k.Secrets, "kafka_"+user), []byte(hex.EncodeToString(password)),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*startWait) // two programs in Java
	defer cancel()
	login := k.Config(t, "admin").Options()
	k.ApacheKafka, err = engines.StartGuardedApacheKafka(ctx, t.TempDir(),
		engines.Guarded{Properties: string(properties), Secrets: k.Secrets, Login: login[len(login)-1]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Kill)
	return k
}

// Config returns the connection settings of a user; admin uses a separate listener.
func (k *GuardedKafka) Config(t testing.TB, user string) chainlog.Config {
	t.Helper()
	password, err := os.ReadFile(filepath.Join(k.Secrets, "kafka_"+user))
	if err != nil {
		t.Fatal(err)
	}
	c := chainlog.DefaultConfig()
	c.SASL = chainlog.SASL{Mechanism: "SCRAM-SHA-512", User: chainlog.UserName(user), Password: string(password)}
	if user == "admin" {
		c.SASL.Mechanism, c.SASL.User = "PLAIN", user
	}
	if k.ApacheKafka == nil {
		return c // while the broker is still starting
	}
	if c.Brokers = []string{k.Addr}; user == "admin" {
		c.Brokers = []string{k.Admin}
	}
	return c
}

// As returns a client that is logged in as a user.
func (k *GuardedKafka) As(t testing.TB, user string, more ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(k.Config(t, user).Options(), more...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// AdminAs returns an admin client that is logged in as a user.
func (k *GuardedKafka) AdminAs(t testing.TB, user string) *kadm.Client {
	t.Helper()
	return kadm.NewClient(k.As(t, user))
}

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

// A GuardedKafka is a broker with logins and rights, as compose.yaml has it.
type GuardedKafka struct {
	*engines.ApacheKafka
	// Secrets is a folder with the passwords, a file for each.
	Secrets string
}

// StartGuardedKafka starts Apache Kafka with deploy/docker/kafka/server.properties, for this test. docker is the path of
// deploy/docker. Nobody has rights but admin, and nobody else is there.
func StartGuardedKafka(t testing.TB, docker string) *GuardedKafka {
	t.Helper()
	if err := engines.ApacheKafkaAvailable(); err != nil {
		leaveOut(t, err)
	}
	properties, err := os.ReadFile(filepath.Join(docker, "kafka", "server.properties"))
	if err != nil {
		t.Fatal(err)
	}
	k := &GuardedKafka{Secrets: t.TempDir()}
	for _, user := range append([]string{"admin"}, chainlog.Users...) {
		password := make([]byte, 24)
		rand.Read(password) // never fails
		if err := os.WriteFile(filepath.Join(k.Secrets, "kafka_"+user), []byte(hex.EncodeToString(password)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*startWait) // two programs in Java
	defer cancel()
	login := k.Config(t, "admin").Options()
	k.ApacheKafka, err = engines.StartGuardedApacheKafka(ctx, t.TempDir(), engines.Guarded{Properties: string(properties), Secrets: k.Secrets, Login: login[len(login)-1]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Kill)
	return k
}

// Config is how a user comes in, or admin by a door of its own.
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
		return c // of a broker that is about to start
	}
	if c.Brokers = []string{k.Addr}; user == "admin" {
		c.Brokers = []string{k.Admin}
	}
	return c
}

// As is a client of a user.
func (k *GuardedKafka) As(t testing.TB, user string, more ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(k.Config(t, user).Options(), more...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// AdminAs asks as a user.
func (k *GuardedKafka) AdminAs(t testing.TB, user string) *kadm.Client {
	t.Helper()
	return kadm.NewClient(k.As(t, user))
}

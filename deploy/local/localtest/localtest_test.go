package localtest_test

import (
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/deploy/local"
	"github.com/navlog/navlog/deploy/local/localtest"
)

func TestClickHouse(t *testing.T) {
	if first, second := localtest.ClickHouse(t), localtest.ClickHouse(t); first != second {
		t.Fatalf("two engines, %s and %s, where one is shared", first, second)
	}
	conn, err := clickhouse.Open(&clickhouse.Options{Addr: []string{localtest.ClickHouse(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestPostgresDatabasesAreApart(t *testing.T) {
	for range 2 {
		conn, err := pgx.Connect(t.Context(), localtest.Postgres(t))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if _, err := conn.Exec(t.Context(), "CREATE TABLE mine ()"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKafka(t *testing.T) {
	client, err := kgo.NewClient(kgo.SeedBrokers(localtest.Kafka(t)...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestApacheKafka(t *testing.T) {
	client, err := kgo.NewClient(kgo.SeedBrokers(localtest.ApacheKafka(t)...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAnvil(t *testing.T) {
	client, err := ethclient.DialContext(t.Context(), localtest.Anvil(t, local.AnvilOptions{ChainID: 7}).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	id, err := client.ChainID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if id.Uint64() != 7 {
		t.Fatalf("chain id %s, want 7", id)
	}
}

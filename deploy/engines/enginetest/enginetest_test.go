package enginetest_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
)

func TestClickHouse(t *testing.T) {
	if first, second := enginetest.ClickHouse(t), enginetest.ClickHouse(t); first != second {
		t.Fatalf("two engines, %s and %s, where one is shared", first, second)
	}
	conn, err := clickhouse.Open(&clickhouse.Options{Addr: []string{enginetest.ClickHouse(t)}})
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
		conn, err := pgx.Connect(t.Context(), enginetest.Postgres(t))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if _, err := conn.Exec(t.Context(), "CREATE TABLE mine ()"); err != nil {
			t.Fatal(err)
		}
	}
}

// Copies of a template have its content and are separate, and the template is filled once.
func TestPostgresTemplate(t *testing.T) {
	filled := 0
	template := enginetest.NewPostgresTemplate(func(ctx context.Context, url string) error {
		filled++
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, "CREATE TABLE ours (id int)")
		return err
	})
	for range 2 {
		conn, err := pgx.Connect(t.Context(), template.Postgres(t))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		var rows int
		if err := conn.QueryRow(t.Context(), "INSERT INTO ours VALUES (1) RETURNING (SELECT count(*) FROM ours)").Scan(&rows); err != nil || rows != 0 {
			t.Errorf("a new copy has %d rows: %v", rows, err)
		}
	}
	if filled != 1 {
		t.Errorf("the template was filled %d times", filled)
	}
}

func TestKafka(t *testing.T) {
	for name, start := range map[string]func(testing.TB) []string{"kfake": enginetest.Kafka, "Apache": enginetest.ApacheKafka} {
		t.Run(name, func(t *testing.T) {
			if name == "Apache" && testing.Short() {
				t.Skip("starts a broker")
			}
			client, err := kgo.NewClient(kgo.SeedBrokers(start(t)...))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if err := client.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestAnvil(t *testing.T) {
	client, err := ethclient.DialContext(t.Context(), enginetest.Anvil(t, engines.AnvilOptions{ChainID: 7}).URL)
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

// outcome is a test that records how it ended.
type outcome struct {
	testing.TB
	how string
}

func (o *outcome) Helper() {}

func (o *outcome) Skip(why ...any) {
	o.how = "skipped: " + fmt.Sprint(why...)
	runtime.Goexit()
}

func (o *outcome) Fatal(why ...any) {
	o.how = "failed: " + fmt.Sprint(why...)
	runtime.Goexit()
}

// Tests are skipped if the machine lacks something, but not if the environment promises that it is there.
func TestWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for program, start := range map[string]func(testing.TB){
		"pgbouncer": func(t testing.TB) { enginetest.PgBouncer(t, "postgres://navlog@127.0.0.1:1/navlog") },
		"java":      func(t testing.TB) { enginetest.ApacheKafka(t) },
		"no java":   func(t testing.TB) { enginetest.StartGuardedKafka(t, "../../docker") },
	} {
		for ci, want := range map[string]string{"true": "failed: ", "": "skipped: "} {
			t.Setenv("CI", ci)
			var o outcome
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				start(&o)
			}()
			<-ended
			if !strings.HasPrefix(o.how, want) || !strings.Contains(o.how, program) {
				t.Errorf("without %s and with CI=%s a test is %q, want %s", program, ci, o.how, want)
			}
		}
	}
}

package registry

import (
	"context"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/deploy/engines/enginetest"
)

// psql runs a file like psql, with what deploy/docker/postgres-logins.sql needs: \set from a
// file, whose text is in secrets, :'variable', and \gexec, which runs the result of a query.
func psql(t *testing.T, pool *pgxpool.Pool, file string, secrets map[string]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	script := regexp.MustCompile(`(?m)--.*$`).ReplaceAllString(string(text), "")
	variables := map[string]string{}
	set := regexp.MustCompile("(?m)^\\\\set (\\w+) `cat /run/secrets/(\\w+)`$")
	for _, m := range set.FindAllStringSubmatch(script, -1) {
		variables[m[1]] = secrets[m[2]]
	}
	script = set.ReplaceAllString(script, "")
	script = regexp.MustCompile(`:'(\w+)'`).ReplaceAllStringFunc(script, func(m string) string {
		value := variables[strings.Trim(m, ":'")]
		if value == "" {
			t.Fatalf("%s is not set", m)
		}
		return "'" + strings.ReplaceAll(value, "'", "''") + "'"
	})
	for _, part := range regexp.MustCompile(`(?s)[^;\\]+(;|\\gexec)`).FindAllString(script, -1) {
		question, generates := strings.CutSuffix(part, `\gexec`)
		if !generates {
			if _, err := pool.Exec(t.Context(), part); err != nil {
				t.Fatalf("%s: %v", part, err)
			}
			continue
		}
		rows, err := pool.Query(t.Context(), question)
		if err != nil {
			t.Fatalf("%s: %v", question, err)
		}
		commands, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", question, err)
		}
		for _, command := range commands {
			if _, err := pool.Exec(t.Context(), command); err != nil {
				t.Fatalf("%s: %v", command, err)
			}
		}
	}
}

// The logins of compose.yaml, on a new database and on one whose tables have another owner:
// none is a superuser, only migrate changes tables, and each of the others has exactly the
// rights of its role.
func TestLoginsOfCompose(t *testing.T) {
	ctx := context.Background()
	secrets := map[string]string{}
	for _, name := range []string{"MIGRATE", "INGEST", "PROJECT", "SERVE", "DISPATCH", "OPERATOR"} {
		secrets["postgres_"+strings.ToLower(name)] = "it's " + name
	}
	for what, prepare := range map[string]func(*pgxpool.Pool) error{
		"new":         func(*pgxpool.Pool) error { return nil },
		"from before": func(pool *pgxpool.Pool) error { return Migrate(ctx, pool) },
	} {
		t.Run(what, func(t *testing.T) {
			at := enginetest.Postgres(t)
			superuser, err := Connect(ctx, Config{URL: at, MaxConns: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer superuser.Close()
			if err := prepare(superuser); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				psql(t, superuser, "../../deploy/docker/postgres-logins.sql", secrets)
			}
			login := func(name string) Config {
				u, err := url.Parse(at)
				if err != nil {
					t.Fatal("parse the test's URL")
				}
				u.User = url.User("navlog_" + name)
				return Config{URL: u.String(), Password: "it's " + strings.ToUpper(name), MaxConns: 2}
			}
			owner, err := Open(ctx, login("migrate"))
			if err != nil {
				t.Fatal(err)
			}
			defer owner.Close()
			if err := GrantRoles(ctx, owner); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"migrate", "ingest", "project", "serve", "dispatch", "operator"} {
				c := login(name)
				c.SkipMigrations = true
				pool, err := Open(ctx, c)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				var powers int
				if err := pool.QueryRow(ctx,
					"SELECT count(*) FROM pg_roles WHERE rolname = session_user AND (rolsuper OR rolcreaterole OR rolcreatedb OR "+
						"rolbypassrls)").Scan(&powers); err != nil || powers != 0 {
					t.Errorf("%s has more rights than a program needs (%v)", name, err)
				}
				_, err = pool.Exec(ctx, "CREATE TABLE made_by_"+name+" (n int)")
				if (err == nil) != (name == "migrate") {
					t.Errorf("%s creates a table: %v", name, err)
				}
				pool.Close()
			}
			if _, err := owner.Exec(ctx, "DROP TABLE made_by_migrate"); err != nil {
				t.Error(err)
			}
			if _, err := owner.Exec(ctx, "ALTER TABLE delivery ADD COLUMN later text"); err != nil {
				t.Errorf("the next migration: %v", err)
			}
		})
	}
}

package main

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/bench/workload"
	"github.com/navlog/navlog/schemas/registry/db"
)

// The same data as a service without an event log would store it: one row per deposit and one per withdrawal request,
// updated in place, with the indexes that its questions need.
const (
	factTables = `
DROP SCHEMA IF EXISTS facts CASCADE;
CREATE SCHEMA facts;
CREATE TABLE facts.deposit (vault bytea NOT NULL, deposit_id bigint NOT NULL, owner bytea NOT NULL, partner bigint NOT NULL,
  assets numeric NOT NULL, block bigint NOT NULL, log_index integer NOT NULL, ts bigint NOT NULL);
CREATE TABLE facts.request (vault bytea NOT NULL, request_index bigint NOT NULL, owner bytea NOT NULL, estimate numeric NOT NULL,
  expires bigint NOT NULL, funded boolean NOT NULL, claimed boolean NOT NULL, cancelled boolean NOT NULL, claimed_assets numeric NOT NULL, block bigint NOT NULL, log_index integer NOT NULL);
CREATE TABLE facts.sweep (vault bytea NOT NULL, to_id bigint NOT NULL);`
	factIndexes = `
CREATE UNIQUE INDEX ON facts.deposit (vault, deposit_id);
CREATE INDEX ON facts.deposit (owner, block DESC, log_index DESC);
CREATE INDEX ON facts.deposit (partner, block DESC, log_index DESC);
CREATE UNIQUE INDEX ON facts.request (vault, request_index);
CREATE INDEX ON facts.request (owner, block DESC, log_index DESC);
CREATE INDEX ON facts.request (vault, block, log_index) WHERE NOT claimed AND NOT cancelled;
CREATE INDEX ON facts.sweep (vault, to_id);
ANALYZE facts.deposit, facts.request, facts.sweep;`
)

// comparison is a question asked of both systems.
type comparison struct {
	name     string
	analytic bool   // navlog must be faster; otherwise it may be up to 5 ms slower
	key      uint32 // partner whose API key is used
	path     func(*rand.Rand) string
	sql      string
	args     func(*rand.Rand) []any
}

func (w *world) comparisons() []comparison {
	vault := func(r *rand.Rand) []any { return []any{workload.VaultAddress(r.IntN(workload.Vaults)).Bytes()} }
	none := func(*rand.Rand) []any { return nil }
	fixed := func(path string) func(*rand.Rand) string { return func(*rand.Rand) string { return path } }
	user := func(r *rand.Rand) int { return r.IntN(int(w.known.Load())) }
	return []comparison{
		{"partner statistics", true, workload.BigPartner, fixed("/api/v1/partner/stats"),
			`SELECT vault, count(*), sum(assets)::text, (SELECT count(DISTINCT owner) FROM facts.deposit WHERE partner = 1) FROM facts.deposit WHERE partner = 1 GROUP BY vault`, none},
		{"users of a vault", true, 0, func(r *rand.Rand) string {
			return "/api/v1/vaults/" + workload.VaultAddress(r.IntN(workload.Vaults)).Hex()
		},
			`SELECT count(*) FROM (SELECT owner FROM facts.deposit WHERE vault = $1 UNION SELECT owner FROM facts.request WHERE vault = $1) u`, vault},
		{"settlement", true, 0, fixed("/api/v1/settlement/summary"),
			`SELECT v.vault, (SELECT count(*) || ' ' || coalesce(sum(assets), 0) FROM facts.deposit d WHERE d.vault = v.vault AND d.deposit_id > v.swept),
			   (SELECT count(*) || ' ' || coalesce(sum(estimate), 0) FROM facts.request r WHERE r.vault = v.vault AND NOT funded AND NOT claimed AND NOT cancelled AND (expires = 0 OR expires > extract(epoch FROM now())))
			 FROM (SELECT vault, max(to_id) AS swept FROM facts.sweep GROUP BY vault) v`, none},
		{"users by total deposited", true, 0, fixed("/api/v1/users?sortBy=totalDeposited"),
			`SELECT owner, sum(assets)::text AS total FROM facts.deposit GROUP BY owner ORDER BY sum(assets) DESC, owner LIMIT 20`, none},
		{"one user", false, 0, func(r *rand.Rand) string { return "/api/v1/users/" + workload.UserAddress(user(r)).Hex() },
			`SELECT vault, count(*), sum(assets)::text FROM facts.deposit WHERE owner = $1 GROUP BY vault`, func(r *rand.Rand) []any { return []any{workload.UserAddress(user(r)).Bytes()} }},
		{"a user's deposits", false, 0, func(r *rand.Rand) string { return "/api/v1/users/" + workload.UserAddress(user(r)).Hex() + "/deposits" },
			`SELECT vault, deposit_id, assets::text FROM facts.deposit WHERE owner = $1 ORDER BY block DESC, log_index DESC LIMIT 20`, func(r *rand.Rand) []any { return []any{workload.UserAddress(user(r)).Bytes()} }},
	}
}

// compare asks navlog, with its cache off, and PostgreSQL the same questions, one after the other.
func (w *world) compare(ctx context.Context, o options) ([]bench.Bar, error) {
	if err := w.loadFacts(ctx); err != nil {
		return nil, fmt.Errorf("load PostgreSQL: %w", err)
	}
	s, err := w.serve(ctx, o.Navlog, 0)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	a := newAsker("http://"+s.addr, w.keys)
	fmt.Printf("\nthe same questions to PostgreSQL with indexes, one at a time\n%-28s %14s %14s %10s\n", "question", "navlog p50 ms", "postgres p50", "times")
	var bars []bench.Bar
	for _, c := range w.comparisons() {
		ours, err := median(o.Each/12, func(r *rand.Rand) error {
			return a.ask(ctx, question{partner: c.key}, c.path(r))
		})
		if err != nil {
			return nil, err
		}
		theirs, err := median(o.Each/12, func(r *rand.Rand) error {
			rows, err := w.Pool.Query(ctx, c.sql, c.args(r)...)
			if err != nil {
				return err
			}
			rows.Close() // reads them all
			return rows.Err()
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Printf("%-28s %14.1f %14.1f %10.1f\n", c.name, ours, theirs, theirs/ours)
		name := map[bool]string{true: "ahead-of-postgres", false: "p50-ms"}[c.analytic] + "-" + dashed(c.name)
		if c.analytic {
			bars = append(bars, bench.Bar{Name: name, Value: theirs / ours, Bound: 1, Least: true})
		} else {
			bars = append(bars, bench.Bar{Name: name, Value: ours, Bound: 5})
		}
	}
	return bars, nil
}

func dashed(s string) string {
	out := []byte(s)
	for i, c := range out {
		if c == ' ' || c == '\'' {
			out[i] = '-'
		}
	}
	return string(out)
}

// median returns the median duration of as many calls as fit into the given time, at least five, in milliseconds.
func median(for_ time.Duration, call func(*rand.Rand) error) (float64, error) {
	rng, end := rand.New(rand.NewPCG(3, 3)), time.Now().Add(for_)
	var took []time.Duration
	for len(took) < 5 || time.Now().Before(end) {
		start := time.Now()
		if err := call(rng); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	return bench.Quantile(took, 0.5), nil
}

// loadFacts fills PostgreSQL from the read models, once for each data set.
func (w *world) loadFacts(ctx context.Context) error {
	mark := w.dir + "/facts.loaded"
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	start := time.Now()
	if _, err := w.Pool.Exec(ctx, factTables); err != nil {
		return err
	}
	generation, err := db.New(w.Pool).LiveGeneration(ctx)
	if err != nil {
		return err
	}
	// live selects the events with these effects that are not retracted.
	live := func(effects string) string {
		from := w.ReadModel().Database(generation.ID) + ".events"
		return from + " WHERE record = 'log' AND effect IN (" + effects + ") AND NOT passed AND NOT quarantined AND sign = 1" +
			" AND seq NOT IN (SELECT retracts FROM " + from + " WHERE sign = -1)"
	}
	for _, c := range []struct {
		table   string
		columns []string
		query   string
	}{
		{"deposit", []string{"vault", "deposit_id", "owner", "partner", "assets", "block", "log_index", "ts"},
			`SELECT vault, toInt64(id), user, toInt64(partner), toString(assets), toInt64(block), toInt32(log_index), toInt64(ts) FROM ` + live("'deposit'")},
		{"request", []string{"vault", "request_index", "owner", "estimate", "expires", "funded", "claimed", "cancelled", "claimed_assets", "block", "log_index"},
			`SELECT vault, toInt64(id), anyIf(user, effect = 'requested'), toString(anyIf(assets, effect = 'requested')), toInt64(anyIf(expires, effect = 'requested')),
			   countIf(effect = 'funded') > 0, countIf(effect = 'claimed') > 0, countIf(effect IN ('cancelled', 'expired')) > 0, toString(sumIf(assets, effect = 'claimed')),
			   toInt64(anyIf(block, effect = 'requested')), toInt32(anyIf(log_index, effect = 'requested'))
			 FROM ` + live("'requested', 'funded', 'claimed', 'cancelled', 'expired'") + ` GROUP BY vault, id HAVING countIf(effect = 'requested') > 0`},
		{"sweep", []string{"vault", "to_id"}, `SELECT vault, toInt64(id_to) FROM ` + live("'sweep'")},
	} {
		rows, err := w.Conn.Query(ctx, c.query)
		if err != nil {
			return err
		}
		n, err := w.Pool.CopyFrom(ctx, pgx.Identifier{"facts", c.table}, c.columns, pgx.CopyFromFunc(func() ([]any, error) {
			if !rows.Next() {
				return nil, rows.Err()
			}
			return scanFact(c.table, rows.Scan)
		}))
		rows.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", c.table, err)
		}
		w.log.Info("PostgreSQL", "table", c.table, "rows", n, "took", time.Since(start).Round(time.Second))
	}
	if _, err := w.Pool.Exec(ctx, factIndexes); err != nil {
		return err
	}
	w.log.Info("PostgreSQL", "indexes", "made", "took", time.Since(start).Round(time.Second))
	return os.WriteFile(mark, nil, 0o644)
}

func scanFact(table string, scan func(...any) error) ([]any, error) {
	var vault, owner, amount, claimed string
	var id, partner, block, ts int64
	var index int32
	var f, c, x bool
	switch table {
	case "deposit":
		if err := scan(&vault, &id, &owner, &partner, &amount, &block, &index, &ts); err != nil {
			return nil, err
		}
		return []any{[]byte(vault), id, []byte(owner), partner, numeric(amount), block, index, ts}, nil
	case "request":
		var fu, cl, ca uint8
		if err := scan(&vault, &id, &owner, &amount, &ts, &fu, &cl, &ca, &claimed, &block, &index); err != nil {
			return nil, err
		}
		f, c, x = fu > 0, cl > 0, ca > 0
		return []any{[]byte(vault), id, []byte(owner), numeric(amount), ts, f, c, x, numeric(claimed), block, index}, nil
	}
	if err := scan(&vault, &id); err != nil {
		return nil, err
	}
	return []any{[]byte(vault), id}, nil
}

// numeric converts a whole number for PostgreSQL.
func numeric(s string) any {
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil
	}
	return pgtype.Numeric{Int: n, Valid: true}
}

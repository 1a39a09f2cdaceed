package registry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/registry/db"
)

// leasesOf returns the leases of generations of a new owner.
func leasesOf(pool *pgxpool.Pool, period time.Duration) *Leases {
	return &Leases{Queries: db.New(pool), Kind: GenerationLease, Owner: uuid.New(), Period: period}
}

func (s *Leases) mustTake(t *testing.T, key int64) *Lease {
	t.Helper()
	l, err := s.Take(t.Context(), key)
	if err != nil || l == nil {
		t.Fatalf("the lease of %d is not available: %v", key, err)
	}
	return l
}

// isFree reports whether another owner could take a lease.
func isFree(t *testing.T, pool *pgxpool.Pool, key int64) bool {
	t.Helper()
	l, err := leasesOf(pool, time.Minute).Take(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if l != nil {
		l.Drop(t.Context())
	}
	return l != nil
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(context.WithoutCancel(t.Context()), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// One owner has a lease. Another one stands by, is called back once, and gets the lease when it is dropped. Other keys
// and kinds are independent.
func TestLeaseIsDropped(t *testing.T) {
	pool := open(t, migrated.Postgres(t))
	leases := leasesOf(pool, time.Minute)
	first := leases.mustTake(t, 1)
	leasesOf(pool, time.Minute).mustTake(t, 2)
	(&Leases{Queries: db.New(pool), Kind: IntakeLease, Owner: uuid.New(), Period: time.Minute}).mustTake(t, 1)
	standby, got := make(chan struct{}, 10), make(chan *Lease, 1)
	go func() {
		l, err := leasesOf(pool, time.Minute).Acquire(t.Context(), 1, func() { standby <- struct{}{} })
		if err != nil {
			t.Errorf("the second owner: %v", err)
		}
		got <- l
	}()
	<-standby
	if len(got) > 0 || !first.Safe() || !first.Held() {
		t.Fatal("two owners have the lease")
	}
	first.Drop(t.Context())
	second := <-got
	if first.Safe() || first.Held() || !second.Safe() || len(standby) > 0 {
		t.Errorf("first held %v; second safe %v; called back again: %v", first.Held(), second.Safe(), len(standby) > 0)
	}
	if second.Fence() <= first.Fence() {
		t.Errorf("the fence is %d, and then %d", first.Fence(), second.Fence())
	}
	select {
	case <-first.Lost():
		t.Error("a lease that was dropped counts as lost")
	default:
	}
}

// A standby that is stopped, or that cannot reach PostgreSQL, gets an error and no lease.
func TestNoLease(t *testing.T) {
	pool := open(t, migrated.Postgres(t))
	leasesOf(pool, time.Minute).mustTake(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	if l, err := leasesOf(pool, time.Minute).Acquire(ctx, 1, cancel); l != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v, %v", l, err)
	}
	exec(t, pool, "ALTER TABLE job_lease RENAME TO elsewhere")
	l, err := leasesOf(pool, time.Minute).Acquire(t.Context(), 1, func() {})
	if l != nil || err == nil || !strings.HasPrefix(err.Error(), "take the lease of generation 1: ") {
		t.Errorf("without a table: %v, %v", l, err)
	}
}

// A holder renews its lease past its first end, and keeps it; one that does not loses it.
func TestLeaseExpires(t *testing.T) {
	pool := open(t, migrated.Postgres(t))
	leases := leasesOf(pool, 600*time.Millisecond)
	l := leases.mustTake(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- l.Watch(ctx) }()
	var first time.Time
	if err := pool.QueryRow(t.Context(), "SELECT until FROM job_lease").Scan(&first); err != nil {
		t.Fatal(err)
	}
	wait.For(t, "the lease is renewed past its first end", func() (renewed bool) {
		if err := pool.QueryRow(t.Context(), "SELECT now() > $1 AND until > now() FROM job_lease",
			first).Scan(&renewed); err != nil {
			t.Fatal(err)
		}
		return renewed
	})
	if !l.Safe() || isFree(t, pool, 1) {
		t.Error("the lease was not kept")
	}
	cancel()
	if err := <-watched; err != nil {
		t.Errorf("a program that ends gets %v", err)
	}
	wait.For(t, "the lease expires", func() bool { return isFree(t, pool, 1) })
	if l.Safe() {
		t.Error("a lease that has expired counts as safe")
	}
}

// A holder keeps its lease during a short outage of PostgreSQL, and loses it if it is not renewed in
// time.
func TestLeaseWithoutPostgreSQL(t *testing.T) {
	url := migrated.Postgres(t)
	pool := open(t, url)
	brief := leasesOf(pool, time.Minute)
	l := brief.mustTake(t, 1)
	exec(t, pool, "ALTER TABLE job_lease RENAME TO elsewhere")
	if err := brief.Renew(t.Context()); err == nil || !l.Safe() {
		t.Errorf("during an outage: %v, safe %v", err, l.Safe())
	}
	exec(t, pool, "ALTER TABLE elsewhere RENAME TO job_lease")
	if err := brief.Renew(t.Context()); err != nil || !l.Safe() {
		t.Errorf("after the outage: %v, safe %v", err, l.Safe())
	}
	own, err := Connect(t.Context(), Config{URL: url, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	long := leasesOf(own, 300*time.Millisecond)
	l = long.mustTake(t, 2)
	own.Close()
	if err := l.Watch(t.Context()); !errors.Is(err, ErrLeaseLost) ||
		!strings.Contains(err.Error(), "renew leases of generation") {
		t.Errorf("after the lease: %v", err)
	}
	if l.Safe() || l.Held() {
		t.Errorf("safe %v, held %v", l.Safe(), l.Held())
	}
	wait.For(t, "another owner takes it", func() bool { return isFree(t, pool, 2) })
}

// A lease that another owner took is lost, and its former holder changes nothing about the new one.
func TestLeaseIsTaken(t *testing.T) {
	pool := open(t, migrated.Postgres(t))
	leases := leasesOf(pool, 300*time.Millisecond)
	kept, stolen := leases.mustTake(t, 1), leases.mustTake(t, 2)
	other := leasesOf(pool, time.Hour)
	exec(t, pool, "UPDATE job_lease SET owner = $1, fence = fence + 1, until = now() + interval '1 hour' WHERE key = 2",
		other.Owner)
	if err := leases.Renew(t.Context()); err != nil || !kept.Safe() {
		t.Errorf("%v; the other lease is safe: %v", err, kept.Safe())
	}
	<-stolen.Lost()
	if err := stolen.Watch(t.Context()); !errors.Is(err, ErrLeaseLost) ||
		!strings.Contains(err.Error(), "another instance has generation 2") {
		t.Errorf("watched: %v", err)
	}
	stolen.Drop(t.Context())
	if err := leases.Renew(t.Context()); err != nil || stolen.Safe() || isFree(t, pool, 2) {
		t.Errorf("the new owner has lost its lease: %v", err)
	}
}

// A fence names one lease: no operation with an older fence, however late, affects a newer lease of the same owner.
func TestFenceNamesOneLease(t *testing.T) {
	pool := open(t, migrated.Postgres(t))
	leases := leasesOf(pool, time.Minute)
	first, second := leases.mustTake(t, 1), leases.mustTake(t, 1)
	if second.Fence() <= first.Fence() {
		t.Fatalf("the fence is %d, and then %d for the next lease", first.Fence(), second.Fence())
	}
	first.Drop(t.Context())
	if isFree(t, pool, 1) {
		t.Fatal("dropping the first lease dropped the second")
	}
	if err := leases.renew(t.Context(), []*Lease{first, second}); err != nil || !second.Safe() {
		t.Errorf("the second lease is not renewed: %v", err)
	}
	second.Drop(t.Context())
	if err := leases.renew(t.Context(), []*Lease{second}); err != nil || !isFree(t, pool, 1) {
		t.Errorf("a dropped lease is renewed: %v", err)
	}
	select {
	case <-second.Lost():
		t.Error("a lease that was dropped while it was renewed counts as lost")
	default:
	}
}

// A process that was suspended for longer than its lease treats it as unsafe. If no other owner took the lease
// meanwhile, the next renewal keeps it; otherwise it is lost.
func TestSuspendedHolder(t *testing.T) {
	pool := open(t, migrated.Postgres(t))
	leases := leasesOf(pool, time.Millisecond)
	free, succeeded := leases.mustTake(t, 1), leases.mustTake(t, 2)
	wait.For(t, "the leases are over", func() bool { return !free.Safe() && !succeeded.Safe() })
	successor := leasesOf(pool, time.Minute)
	var next *Lease
	wait.For(t, "another owner takes one", func() bool {
		var err error
		next, err = successor.Take(t.Context(), 2)
		return err == nil && next != nil
	})
	leases.Period = time.Minute
	if err := leases.Renew(t.Context()); err != nil || !free.Safe() || succeeded.Held() || !next.Safe() {
		t.Errorf("%v; the lease that is still free is safe: %v; the other one is held: %v", err, free.Safe(),
			succeeded.Held())
	}
}

// The clock of a holder's machine plays no part: PostgreSQL's is five hours ahead of it here. When that one is set back,
// a lease that was dropped before is free.
func TestLeaseIgnoresTheMachinesClock(t *testing.T) {
	url := migrated.Postgres(t)
	pool := open(t, url)
	exec(t, pool, "CREATE SCHEMA skew")
	exec(t, pool, "CREATE FUNCTION skew.now() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT pg_catalog.now() + "+
		"interval '5 hours' $$")
	var name string
	if err := pool.QueryRow(t.Context(), "SELECT current_database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `ALTER DATABASE "`+name+`" SET search_path = skew, pg_catalog, public`)
	skewed := open(t, url)
	leases := leasesOf(skewed, 3*time.Second)
	l := leases.mustTake(t, 1)
	until := func() (at time.Time, ahead bool) {
		err := skewed.QueryRow(t.Context(),
			"SELECT until, until > pg_catalog.now() + interval '4 hours' FROM job_lease WHERE key = 1").Scan(&at, &ahead)
		if err != nil {
			t.Fatal(err)
		}
		return at, ahead
	}
	first, ahead := until()
	if !ahead {
		t.Fatal("until is not of PostgreSQL's clock: the test proves nothing")
	}
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- l.Watch(ctx) }()
	wait.For(t, "the lease is renewed", func() bool {
		if !l.Held() || isFree(t, skewed, 1) {
			t.Fatal("the lease is not kept")
		}
		at, _ := until()
		return at.After(first)
	})
	cancel()
	if err := <-watched; err != nil {
		t.Error(err)
	}
	leasesOf(skewed, 100*time.Millisecond).mustTake(t, 2)
	wait.For(t, "a lease that is not renewed expires", func() bool { return isFree(t, skewed, 2) })
	l.Drop(t.Context())
	exec(t, pool, `ALTER DATABASE "`+name+`" RESET search_path`)
	if !isFree(t, open(t, url), 1) {
		t.Error("a dropped lease is not free after PostgreSQL's clock was set back")
	}
}

// A project of the version before leases holds an advisory lock. While it does, no owner takes the lease of that
// generation, and a holder loses it; other generations and kinds are not affected.
func TestOldProjectKeepsItsGeneration(t *testing.T) {
	pool := open(t, migrated.Postgres(t))
	old, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer old.Release()
	lock := func(what string) {
		t.Helper()
		if _, err := old.Exec(t.Context(), "SELECT "+what+"(x'6e61766c'::integer, 1)"); err != nil {
			t.Fatal(err)
		}
	}
	lock("pg_advisory_lock")
	if isFree(t, pool, 1) || !isFree(t, pool, 2) {
		t.Fatal("the lease of the generation is free, or that of another one is not")
	}
	(&Leases{Queries: db.New(pool), Kind: PartnerLease, Owner: uuid.New(), Period: time.Minute}).mustTake(t, 1)
	lock("pg_advisory_unlock")
	leases := leasesOf(pool, time.Minute)
	l := leases.mustTake(t, 1)
	lock("pg_advisory_lock") // the old program was started again
	if err := leases.Renew(t.Context()); err != nil || l.Held() {
		t.Errorf("two programs write the generation: %v", err)
	}
}

// A dispatcher of the version before these leases finds its table of leases as a view, and divides the partners with
// dispatchers of this version: its statements take, renew, check and drop the same rows.
func TestOldDispatcherSharesThePartners(t *testing.T) {
	url := migrated.Postgres(t)
	owner := open(t, url)
	if err := GrantRoles(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	pool := as(t, url, "navlog_dispatch")
	leases := &Leases{Queries: db.New(pool), Kind: PartnerLease, Owner: uuid.New(), Period: time.Minute}
	old := uuid.New()
	affects := func(want int64, sql string, args ...any) {
		t.Helper()
		tag, err := pool.Exec(t.Context(), sql, args...)
		if err != nil || tag.RowsAffected() != want {
			t.Errorf("%d rows, want %d: %v\n%s", tag.RowsAffected(), want, err, sql)
		}
	}
	const take = `INSERT INTO lease (partner_id, owner, fence, until) VALUES ($1, $2, 1, now() + interval '1 minute')
		ON CONFLICT (partner_id) DO UPDATE SET fence = lease.fence + 1, owner = excluded.owner, until = excluded.until
		WHERE lease.owner = excluded.owner OR lease.until <= now() RETURNING fence`
	l := leases.mustTake(t, 7)
	affects(0, take, 7, old)
	affects(1, take, 8, old)
	if other, err := leases.Take(t.Context(), 8); other != nil || err != nil {
		t.Errorf("the lease of an old dispatcher was taken: %v", err)
	}
	affects(1,
		`UPDATE lease l SET until = now() + interval '1 minute' FROM (SELECT 8::bigint AS partner_id, 1::bigint AS fence) held
		WHERE l.partner_id = held.partner_id AND l.fence = held.fence AND l.owner = $1 RETURNING l.partner_id`, old)
	affects(1, `SELECT FROM lease l WHERE l.partner_id = 8 AND l.owner = $1 AND l.fence = 1`, old)
	affects(1, `UPDATE lease SET until = now(), fence = fence + 1 WHERE owner = $1 AND partner_id = 8 AND fence = 1`, old)
	if next := leases.mustTake(t, 8); next.Fence() != 3 {
		t.Errorf("the fence is %d after the old dispatcher dropped its lease", next.Fence())
	}
	l.Drop(t.Context())
	affects(1, take, 7, old)
	affects(2, "DELETE FROM lease")
	affects(1,
		`INSERT INTO backfill_lease AS l (owner, until) VALUES ($1, now()) ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, until = excluded.until
		WHERE l.owner = excluded.owner OR l.until <= now()`, old)
}

// PostgreSQL ends the session of a host that is gone within seconds, and so frees what it has locked.
func TestSessionOfALostHost(t *testing.T) {
	pool := open(t, migrated.Postgres(t))
	for setting, want := range map[string]string{
		"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3", "tcp_user_timeout": "20000",
	} {
		var got string
		if err := pool.QueryRow(t.Context(), "SHOW "+setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, want %s: %v", setting, got, want, err) // all are 0 if the connection is not TCP
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

const (
	partnerCount = 100
	eventRate    = 100 // a second, where latency is measured
	measureFor   = 30 * time.Second
	outageEvents = 50_000
	parkedEvents = 1_000_000
)

// rate: all events are in the topic when the dispatchers start; they deliver as fast as the receiver responds.
func (b *benchmark) rate(ctx context.Context) ([]bench.Bar, error) {
	ids, err := b.partners(ctx, partnerCount, noPartner)
	if err != nil {
		return nil, err
	}
	b.receiver.forget()
	size := 0
	for from := 0; from < b.Events; from += 1000 {
		var batch []partners.Referral
		for n := from; n < min(from+1000, b.Events); n++ {
			r, err := partners.Withdrawal(ids[n%len(ids)], n)
			if err != nil {
				return nil, err
			}
			batch, size = append(batch, r), size+len(r.Body)
		}
		b.receiver.expect(batch...)
		if err := b.world.Produce(ctx, batch...); err != nil {
			return nil, err
		}
	}
	bench.Say("rate: %d events for %d partners, bodies of %d bytes", b.Events, partnerCount, size/b.Events)
	var peak int64 // of the largest dispatcher
	var used time.Duration
	err = b.dispatching(ctx, b.Dispatchers, func(ctx context.Context, all []*stack.Process) error {
		err := b.receiver.all(ctx, b.Events)
		for _, d := range all {
			peak = max(peak, stack.Peak(d.Pid))
			cpu, failed := stack.CPU(d.Pid)
			used, err = used+cpu, errors.Join(err, failed)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	seen, err := b.receiver.soFar()
	if err != nil {
		return nil, err
	}
	rate := float64(b.Events) / seen.last.Sub(seen.first).Seconds()
	bench.Say("rate: %.0f deliveries a second with %d dispatchers, at most %d MiB each, %d microseconds of processor "+
		"time a delivery",
		rate, b.Dispatchers, peak>>20, (used / time.Duration(b.Events)).Microseconds())
	return []bench.Bar{{Name: "deliveries-per-s", Value: rate, Bound: 5000, Least: true}}, nil
}

// latency: a steady trickle of events to partners, some of which never respond. The latency of the others is compared
// with a run in which all partners respond.
func (b *benchmark) latency(ctx context.Context) ([]bench.Bar, error) {
	var bars []bench.Bar
	var baseline float64
	for _, dead := range []int{0, 10, 20, 50, 30} {
		// percent; 30 comes after 50 because the machine slows down as it gets warm
		p99, err := b.trickle(ctx, dead)
		if err != nil {
			return nil, fmt.Errorf("with %d of 100 partners dead: %w", dead, err)
		}
		if dead == 0 {
			baseline = p99
			bars = append(bars, bench.Bar{Name: "append-to-receipt-p99-ms", Value: p99, Bound: 50})
			continue
		}
		bars = append(bars, bench.Bar{Name: fmt.Sprintf("healthy-p99-ratio-%d-dead", dead), Value: p99 / baseline,
			Bound: 1.5})
	}
	return bars, nil
}

// warmUp is not measured: connections are still being opened, and the breakers of the dead partners have not seen
// enough failures yet.
const warmUp = 10 * time.Second

// trickle returns the p99 latency of the healthy partners, in milliseconds.
func (b *benchmark) trickle(ctx context.Context, dead int) (float64, error) {
	isDead := func(i int) bool { return i < dead }
	ids, err := b.partners(ctx, partnerCount, isDead)
	if err != nil {
		return 0, err
	}
	b.receiver.forget()
	var counted []uuid.UUID
	err = b.dispatching(ctx, 1, func(ctx context.Context, _ []*stack.Process) error {
		healthy := 0
		tick := time.NewTicker(time.Second / eventRate)
		defer tick.Stop()
		total := int((warmUp + measureFor).Seconds() * eventRate)
		for n := range total {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
			// 37 and 100 have no common divisor, so dead and healthy partners alternate.
			i := n * 37 % len(ids)
			r, err := partners.Withdrawal(ids[i], n)
			if err != nil {
				return err
			}
			b.receiver.expect(r)
			if err := b.world.Produce(ctx, r); err != nil {
				return err
			}
			if !isDead(i) {
				healthy++
				if n >= int(warmUp.Seconds())*eventRate {
					counted = append(counted, r.ID)
				}
			}
		}
		return b.receiver.all(ctx, healthy)
	})
	if err != nil {
		return 0, err
	}
	took := b.receiver.took(counted)
	p99 := bench.Quantile(took, 0.99)
	bench.Say("latency: %d of 100 partners dead: p50 %.1f ms, p99 %.1f ms, longest %.1f ms of %d", dead,
		bench.Quantile(took, 0.5), p99, bench.Quantile(took, 1), len(took))
	return p99, nil
}

// drain: a partner comes back after ten minutes, with its breaker open and all its deliveries parked.
func (b *benchmark) drain(ctx context.Context) ([]bench.Bar, error) {
	ids, err := b.partners(ctx, 1, noPartner)
	if err != nil {
		return nil, err
	}
	b.receiver.forget()
	if err := b.park(ctx, ids[0], outageEvents, "now()"); err != nil {
		return nil, err
	}
	if err := b.expectParked(ctx, ids[0]); err != nil {
		return nil, err
	}
	started := time.Now()
	err = b.dispatching(ctx, 1, func(ctx context.Context, _ []*stack.Process) error {
		return b.delivered(ctx, ids[0], outageEvents)
	})
	if err != nil {
		return nil, err
	}
	took := time.Since(started)
	seen, err := b.receiver.soFar()
	if err != nil {
		return nil, err
	}
	bench.Say("drain: %d parked events in %.1f s, at most %d at a time", outageEvents, took.Seconds(), seen.most)
	return []bench.Bar{{Name: "drain-most-at-once", Value: float64(seen.most), Bound: 4}}, nil
}

// parked: a million events are parked for partners that never respond.
func (b *benchmark) parked(ctx context.Context) ([]bench.Bar, error) {
	ids, err := b.partners(ctx, 10, func(int) bool { return true })
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := b.park(ctx, id, parkedEvents/len(ids), "now() + interval '5 seconds'"); err != nil {
			return nil, err
		}
	}
	var peak int64
	err = b.dispatching(ctx, 1, func(ctx context.Context, all []*stack.Process) error {
		bench.Say("parked: %d events, probes for 30 s", parkedEvents)
		watch, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		<-watch.Done()
		peak = stack.Peak(all[0].Pid)
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	bench.Say("parked: the dispatcher took at most %d MiB", peak>>20)
	return []bench.Bar{{Name: "rss-mib-1m-parked", Value: float64(peak >> 20), Bound: 256}}, nil
}

// park writes what a ten-minute outage leaves behind, with bodies of 700 bytes: parked deliveries, and a breaker that
// is open until openUntil.
func (b *benchmark) park(ctx context.Context, partner uint32, n int, openUntil string) error {
	_, err := b.world.Pool.Exec(ctx,
		`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, due_at, created_at)
		SELECT gen_random_uuid(), $1, n, 'withdrawal.referral',
			convert_to(rpad('{"n":' || n, 699, ' ') || '}', 'UTF8'), 'parked',
			now() - interval '10 minutes', now() - interval '10 minutes' FROM generate_series(1, $2::integer) n`, int64(partner),
		n)
	if err == nil {
		_, err = b.world.Pool.Exec(ctx, "INSERT INTO stream (partner_id, last_sequence) VALUES ($1, $2)", int64(partner), n)
	}
	if err == nil {
		_, err = b.world.Pool.Exec(ctx,
			`INSERT INTO breaker (partner_id, endpoint_version, url, state, opened_at, open_until, open_ms)
			SELECT partner_id, version, url, 'open', now() - interval '10 minutes', `+openUntil+
				`, 320000 FROM endpoint WHERE partner_id = $1`, int64(partner))
	}
	if err == nil {
		_, err = b.world.Pool.Exec(ctx, "ANALYZE delivery")
	}
	if err != nil {
		return fmt.Errorf("park %d events: %w", n, err)
	}
	return nil
}

// expectParked registers a partner's parked events with the receiver.
func (b *benchmark) expectParked(ctx context.Context, partner uint32) error {
	rows, err := b.world.Pool.Query(ctx, "SELECT event_id, body FROM delivery WHERE partner_id = $1 AND state = 'parked'",
		int64(partner))
	var parked []partners.Referral
	if err == nil {
		parked, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r partners.Referral, err error) {
			return r, row.Scan(&r.ID, &r.Body)
		})
	}
	if err != nil {
		return fmt.Errorf("count the parked deliveries: %w", err)
	}
	b.receiver.expect(parked...)
	return nil
}

// delivered waits until none of a partner's n events is pending. Events whose retries are exhausted are not pending
// either, so it also checks that all were delivered and arrived.
func (b *benchmark) delivered(ctx context.Context, partner uint32, n int) error {
	err := wait.Poll(ctx, 200*time.Millisecond, func() (bool, error) {
		var waiting bool
		err := b.world.Pool.QueryRow(ctx,
			"SELECT EXISTS (SELECT FROM delivery WHERE partner_id = $1 AND state IN ('pending', 'parked'))",
			int64(partner)).Scan(&waiting)
		_, fault := b.receiver.soFar()
		return !waiting, errors.Join(err, fault)
	})
	if err != nil {
		return err
	}
	var delivered int
	if err := b.world.Pool.QueryRow(ctx, "SELECT count(*) FROM delivery WHERE partner_id = $1 AND state = 'delivered'",
		int64(partner)).Scan(&delivered); err != nil {
		return err
	}
	seen, err := b.receiver.soFar()
	if err == nil && (delivered != n || seen.n != n) {
		err = fmt.Errorf("of %d events that waited %d are delivered, and %d arrived", n, delivered, seen.n)
	}
	return err
}

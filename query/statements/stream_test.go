package statements

import (
	"fmt"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/blocks"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/registry"
)

// What a statement reads grows with its length and no more: each page reads about as many
// rows as the one before, the last one too, and all of them each row about once.
func TestEachPageReadsAboutItsOwnRows(t *testing.T) {
	if testing.Short() {
		t.Skip("many rows")
	}
	g := readtest.New(t, enginetest.ClickHouse(t))
	log := readtest.NewLog(readtest.ChainID)
	log.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1))
	log.Append(readtest.BlockRecord(1))
	g.Write(log)
	// 40 events of two partners in each block, half of them requests that are claimed later; retracted and mined again, some of them.
	const perBlock, last, first = 40, 2000, 10
	const events = perBlock * last
	source := fmt.Sprintf(`(SELECT number AS n, %d + number AS s, 2 + intDiv(number, %d) AS b, toUInt32(number %% %d) AS l, toUInt32(1700000000 + 12 * b) AS t FROM numbers(%d))`, first, perBlock, perBlock, events)
	exec := func(sql string, args ...any) { t.Helper(); g.Exec(fmt.Sprintf(sql, args...)) }
	exec(`INSERT INTO records (seq, sign, kind, event, block, hash, ts, vault, log_index) SELECT s, 1, 'log', if(l < 20, 'DepositAccepted', 'WithdrawalRequested'), b, '', t, x'%x', l FROM %s`, readtest.VaultA, source)
	exec(`INSERT INTO records (seq, sign, kind, boundary, block, hash, ts) SELECT %d + number, 1, 'block', 1, 2 + number, '', 1700000000 + 12 * (2 + number) FROM numbers(%d)`, first+events, last+2)
	exec(`INSERT INTO deposits (seq, sign, vault, deposit_id, user, sender, partner, assets, shares, block, ts, tx, log_index)
		SELECT s, 1, x'%[1]x', n, x'%[2]x', x'%[2]x', 7 + l %% 2, 5, 5, b, t, '', l FROM %[3]s WHERE l < 20`, readtest.VaultA, readtest.Alice, source)
	for kind, later := range map[string]int{"requested": 0, "funded": 50, "claimed": 1000} {
		exec(`INSERT INTO withdrawal_events (seq, sign, vault, request_index, kind, user, partner, shares, assets, block, ts, tx, log_index)
			SELECT s, 1, x'%x', n, '%s', x'%x', 7 + l %% 2, 5, 5, b + %d, t, '', l FROM %s WHERE l >= 20`, readtest.VaultA, kind, readtest.Alice, later, source)
	}
	for _, table := range []string{"records", "deposits", "withdrawal_events"} {
		exec("OPTIMIZE TABLE %s FINAL", table)
	}
	client := readtest.Serve(t, g)
	p, err := client.Watcher.Snapshot().At(nil)
	if err != nil {
		t.Fatal(err)
	}
	read := uint64(0)
	ctx := clickhouse.Context(t.Context(), clickhouse.WithProgress(func(p *clickhouse.Progress) { read += p.Rows }))
	b, err := begin(ctx, p, 7, httpapi.Span{From: 1_700_000_000, To: 1_700_000_000 + 12*(last+1)}, &registry.ProgramStatus{State: registry.Following})
	if err != nil {
		t.Fatal(err)
	}
	if read > 4*last {
		t.Errorf("to find its place in the log it reads %d rows, of %d blocks", read, last)
	}
	streams, total, found := b.streams(), uint64(0), 0
	for page := 1; ; page++ {
		read = 0
		some, err := b.next(ctx, streams)
		if err != nil {
			t.Fatal(err)
		}
		if len(some) == 0 {
			break
		}
		own := read
		if _, err := blocks.Hashes(ctx, p, some, (*event).log); err != nil {
			t.Fatal(err)
		}
		t.Logf("page %d: %d events, %d rows, with the hashes of their blocks %d", page, len(some), own, read)
		// Two pages of rows at most are read ahead in each table; a request has three rows, of which half are another partner's.
		if own > 8*atOnce || read > 12*atOnce {
			t.Errorf("page %d of %d events reads %d rows, with the hashes of their blocks %d", page, len(some), own, read)
		}
		found, total = found+len(some), total+read
	}
	if found != events/2 {
		t.Errorf("%d events, want %d", found, events/2)
	}
	if total > 6*events {
		t.Errorf("%d rows are read for %d events of %d", total, found, events)
	}
}

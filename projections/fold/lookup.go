package fold

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

var (
	//go:embed sql/rows.sql
	sqlRows string
	//go:embed sql/newest_block.sql
	sqlNewestBlock string
	//go:embed sql/skipped_block.sql
	sqlSkippedBlock string
)

// listedKeys is the maximum number of keys in one list of a look-up. More keys need another look-up, because the engine
// parses queries of up to 256 KiB only (max_query_size).
const listedKeys = 1000

// keys name rows of lists: by the condition that ends with a column or tuple, the values that it may have, as SQL.
type keys map[string]map[string]bool

func (k keys) add(condition string, value any) {
	if k[condition] == nil {
		k[condition] = map[string]bool{}
	}
	k[condition][fmt.Sprint(value)] = true
}

// take returns the conditions for the rows, and forgets them.
func (k keys) take() (out []string) {
	for condition, values := range k {
		for some := range slices.Chunk(slices.Sorted(maps.Keys(values)), listedKeys) {
			out = append(out, fmt.Sprintf("(%s IN (%s))", condition, strings.Join(some, ",")))
		}
	}
	clear(k)
	return out
}

// read looks up the rows of lists for the keys that the units name, as far as a change above the ancestor can affect
// them. The look-ups may see different units if another writer continues at the same time: then the resulting insert
// is rejected.
func (s *Change) read(ctx context.Context, conn driver.Conn) error {
	for n := range s.blocks {
		if n <= s.before.Block {
			s.places.add(placesOf("blocks", "none", common.Address{})+" AND key", n)
		}
	}
	group, limited := errgroup.WithContext(ctx)
	group.Go(func() error { return s.readPlaces(limited, conn, s.places.take()) })
	group.Go(func() error { return s.readNumbers(limited, conn, s.numbers.take()) })
	if err := group.Wait(); err != nil {
		return err
	}
	s.addKeysOfFound()
	if err := s.readNumbers(ctx, conn, s.numbers.take()); err != nil {
		return err
	}
	rows := append(s.lineKeys(), s.sweptKeys()...)
	if s.retracts {
		rows = append(rows, s.reverted.take()...)
	}
	if err := s.readPlaces(ctx, conn, rows); err != nil {
		return err
	}
	s.reindex()
	return nil
}

func placesOf(list, kind string, owner common.Address) string {
	return fmt.Sprintf("list = '%s' AND owner = %s AND scope = %s AND kind = '%s'",
		list, quoted(owner), quoted(common.Address{}), kind)
}

// addDerived records the rows of valuations of a vault or claims of a user in it, in a block.
func (s *Change) addDerived(kind readmodel.EffectKind, vault, user common.Address, block uint64) {
	list, owner := "vault_events", vault
	if kind == readmodel.Claimed {
		list, owner = "user_events", user
	}
	s.reverted.add(placesOf(list, kind.String(), owner)+" AND key = 0 AND vault = "+quoted(vault)+" AND block", block)
}

// lineKeys returns conditions for the requests that claims of the units can close, or that retracted ones have closed:
// those that follow the shares claimed at the ancestor, as far as all these claims reach. A line may be long, and a
// unit seldom reaches more than its beginning.
func (s *Change) lineKeys() (out []string) {
	for k, shares := range s.targets.lines {
		claimed := s.totals[k].before.clip(s.ancestor).newest().ClaimedShares
		var last readmodel.Amount
		last.Add(&claimed, shares)
		out = append(out, fmt.Sprintf(
			"(list = 'fifo' AND owner = %s AND scope = %s AND kind = 'requested' AND key > %s AND key <= %s)",
			quoted(k.owner), quoted(k.scope), signed(claimed), signed(last)))
	}
	return out
}

// sweptKeys returns conditions for the deposits that sweeps of the units may reach, or that retracted sweeps had
// reached: those after the last number that was swept at the ancestor.
func (s *Change) sweptKeys() (out []string) {
	for vault, to := range s.targets.swept {
		t := s.totals[totalsOf(vault, vault)]
		from := t.before.clip(s.ancestor).newest().SweptTo
		to = max(to, t.before.newest().SweptTo)
		if to > from {
			above := fmt.Sprintf("key > %d", from)
			if from == 0 {
				above = "key >= 0" // nothing was swept, not even a deposit with the impossible number 0
			}
			out = append(out, fmt.Sprintf("(%s AND %s AND key <= %d)", placesOf("vault_events", "deposit", vault), above, to))
		}
	}
	return out
}

// signed formats a 256-bit number as a literal: without the quotes, the engine reads a long number as a float.
func signed(a readmodel.Amount) string { return "toInt256('" + mapping.Decimal(&a) + "')" }

// addTotals records totals, of which steps above the ancestor and the one before them are needed.
func (s *Change) addTotals(keys ...totalKey) {
	for _, k := range keys {
		if s.totals[k] != nil {
			continue
		}
		s.totals[k] = new(total)
		name := map[readmodel.List]string{readmodel.Totals: "totals", readmodel.UserTotals: "user_totals"}[k.list]
		s.numbers.add(fmt.Sprintf("list = '%s' AND kind = 'none' AND key > %d AND (owner, scope)", name, s.ancestor),
			tuple(k.owner, k.scope))
	}
}

func (s *Change) addMember(k memberKey) {
	if s.members[k] == nil {
		s.members[k] = new(pair[first])
		key := addressKey(k.user)
		s.numbers.add("list = 'members' AND kind = 'none' AND (owner, scope, key)",
			fmt.Sprintf("(%s,%s,'%s')", quoted(k.owner), quoted(k.scope), key.Dec()))
	}
}

func tuple(owner, scope common.Address) string {
	return "(" + quoted(owner) + "," + quoted(scope) + ")"
}

// quoted formats an address as a literal, which the engine parses faster than a call of unhex.
func quoted(a common.Address) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 4*len(a)+2)
	out = append(out, '\'')
	for _, c := range a {
		out = append(out, '\\', 'x', digits[c>>4], digits[c&15])
	}
	return string(append(out, '\''))
}

// keyBytes limits the text of the keys of a look-up, and queryBytes the whole query.
const (
	keyBytes   = 256 << 10
	queryBytes = 2 * keyBytes
)

// queryKeys runs a query for some keys, in batches that fit into one query, and calls scan for each row.
func queryKeys(
	ctx context.Context, conn driver.Conn, question string, keys []string, scan func(driver.Rows) error,
) error {
	settings := readmodel.SmallQuery()
	settings["max_query_size"] = queryBytes
	// These take time to plan, and a look-up has no use for them: it names the keys of its rows.
	settings["optimize_move_to_prewhere"], settings["use_skip_indexes"] = 0, 0
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(settings))
	for len(keys) > 0 {
		n, size := 0, 0
		for ; n < len(keys) && (n == 0 || size+len(keys[n]) < keyBytes); n++ {
			size += len(keys[n])
		}
		rows, err := conn.Query(ctx, strings.Replace(question, "{keys}", strings.Join(keys[:n], "\n  OR "), 1))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// The columns that are needed of the rows of entries and blocks, and of those of totals and members.
const (
	placeColumns = "sign, list, owner, kind, block, log_index, sub, user, vault, other, partner, id, " +
		"shares, assets, nav, expires, ts, hash, " +
		"funded_block, funded_ts, funded_assets, closed_block, closed_ts, closed_by, closed_assets, " +
		"by, grouped, group_id, source_id, matures, priced_block, priced_assets, cum_from, cum_to"
	numberColumns = "sign, list, owner, scope, user, block, ts, " +
		"deposits, deposited, requests, estimated, claims, claimed, users, swept, swept_assets, swept_to, valuations, " +
		"supply, funded_shares, claimed_shares, funded_to, deposits_to, requests_to, " +
		"shares, assets, nav, valued_block, valued_log, valued_ts, swept_block, swept_ts"
)

// readRows reads some columns of the live rows with some keys: those whose signs add up to 1.
func readRows(
	ctx context.Context, conn driver.Conn, columns string, keys []string,
) (live []readmodel.ListRow, err error) {
	reader := readmodel.ListsTable.NewReader(columns)
	signs := map[readmodel.ListRow]int{}
	err = queryKeys(ctx, conn, strings.Replace(sqlRows, "{columns}", reader.SQL, 1), keys, func(rows driver.Rows) error {
		if err := reader.Scan(rows); err != nil {
			return err
		}
		row := reader.Row
		row.Sign = 0
		signs[row] += int(reader.Row.Sign)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read what lists holds of the keys of a unit: %w", err)
	}
	for row, sign := range signs {
		switch sign {
		case 0:
		case 1:
			live = append(live, row)
		default:
			return nil, fmt.Errorf("the signs of a row of lists add up to %d: %+v", sign, row)
		}
	}
	return live, nil
}

// readPlaces reads entries, each of which is in several lists with the same values, and blocks.
func (s *Change) readPlaces(ctx context.Context, conn driver.Conn, keys []string) error {
	live, err := readRows(ctx, conn, placeColumns, keys)
	for _, row := range live {
		if row.List == readmodel.Blocks {
			b := block{row.Hash, row.TS}
			s.blocks[row.Block] = &pair[block]{&b, &b}
			continue
		}
		row.List, row.Owner = 0, common.Address{}
		found := pair[entry]{&entry{ListRow: row}, &entry{ListRow: row}}
		switch k := found.after.key(); row.Kind {
		case readmodel.Requested:
			s.entries[requestKey(row.Vault, row.ID)] = &found
		case readmodel.Deposit:
			s.entries[k] = &found
		default:
			if s.entries[k] != nil { // others in the block are not asked for
				s.entries[k] = &found
			}
		}
	}
	return err
}

func (s *Change) readNumbers(ctx context.Context, conn driver.Conn, keys []string) error {
	live, err := readRows(ctx, conn, numberColumns, keys)
	slices.SortFunc(live, func(a, b readmodel.ListRow) int { return cmp.Compare(a.Block, b.Block) })
	for _, row := range live {
		if row.List == readmodel.Members {
			since := first{row.Block, row.TS}
			s.members[memberKey{row.Owner, row.Scope, row.User}] = &pair[first]{&since, &since}
			continue
		}
		t := s.totals[totalKey{row.List, row.Owner, row.Scope}]
		t.before, t.after = append(t.before, row), append(t.after, row)
	}
	return err
}

// ancestorOf finds the newest block that is not newer than an ancestor; 0 if there is none. Its time is that of the
// newest listed block: the generation may skip the block itself.
func ancestorOf(
	ctx context.Context, conn driver.Conn, ancestor, seq uint64,
) (number uint64, ts uint32, err error) {
	if number, ts, err = listedUpTo(ctx, conn, ancestor); err != nil {
		return 0, 0, err
	}
	var skipped uint64
	about := readmodel.Parameters(ctx, map[string]uint64{"after": number, "last": ancestor, "seq": seq})
	if err := conn.QueryRow(about, sqlSkippedBlock).Scan(&skipped); err != nil {
		return 0, 0, fmt.Errorf("read the skipped blocks of events: %w", err)
	}
	return max(number, skipped), ts, nil
}

// listedUpTo finds the newest listed block up to an ancestor. It searches in growing steps, because there usually is
// one near the ancestor.
func listedUpTo(
	ctx context.Context, conn driver.Conn, ancestor uint64,
) (number uint64, ts uint32, err error) {
	for back := uint64(1000); ; back *= 64 {
		from := ancestor - min(back, ancestor)
		within := readmodel.Parameters(ctx, map[string]uint64{"from": from, "to": ancestor})
		err = conn.QueryRow(within, sqlNewestBlock).Scan(&number, &ts)
		if err == nil || from == 0 && errors.Is(err, sql.ErrNoRows) {
			return number, ts, nil
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return 0, 0, fmt.Errorf("read the newest listed block up to %d: %w", ancestor, err)
		}
	}
}

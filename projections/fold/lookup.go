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

// read looks up the rows of lists for the keys that the state names, as far as a change above the ancestor can affect
// them. The look-ups may see different units if another writer continues at the same time: then the resulting insert
// is rejected.
func (s *state) read(ctx context.Context, conn driver.Conn, ancestor uint64, retracts bool) error {
	group, limited := errgroup.WithContext(ctx)
	places := append(s.placeKeys(), s.targetKeys(ancestor)...)
	group.Go(func() error { return s.readPlaces(limited, conn, places) })
	numbers := s.numberKeys(ancestor)
	group.Go(func() error { return s.readNumbers(limited, conn, numbers) })
	if err := group.Wait(); err != nil {
		return err
	}
	s.addFound()
	if err := s.readNumbers(ctx, conn, s.numberKeys(ancestor)); err != nil {
		return err
	}
	places = s.lineKeys(ancestor)
	if retracts {
		places = slices.AppendSeq(places, maps.Keys(s.targets.derived))
	}
	return s.readPlaces(ctx, conn, places)
}

// placeKeys returns conditions for the requests and deposits that the state names by their numbers.
func (s *state) placeKeys() (out []string) {
	type list struct {
		list, kind string
		vault      common.Address
	}
	ids := map[list][]uint64{}
	for k := range s.requests {
		l := list{"requests", "requested", k.vault}
		ids[l] = append(ids[l], k.id)
	}
	for k := range s.targets.deposits {
		l := list{"vault_events", "deposit", k.vault}
		ids[l] = append(ids[l], k.id)
	}
	for l, all := range ids {
		slices.Sort(all)
		out = append(out, among(placesOf(l.list, l.kind, l.vault)+" AND key", slices.Compact(all))...)
	}
	return out
}

// among returns conditions for rows in which the column or tuple at the end of a condition has one of some values. The
// text of a value has no spaces.
func among[T any](condition string, values []T) (out []string) {
	for some := range slices.Chunk(values, listedKeys) {
		list := strings.Trim(strings.ReplaceAll(fmt.Sprint(some), " ", ","), "[]")
		out = append(out, fmt.Sprintf("(%s IN (%s))", condition, list))
	}
	return out
}

func placesOf(list, kind string, vault common.Address) string {
	return fmt.Sprintf("list = '%s' AND owner = %s AND scope = %s AND kind = '%s'",
		list, quoted(vault), quoted(common.Address{}), kind)
}

// targetKeys returns conditions for what the state names by other means than numbers; for groups, the entries that
// wait for their price or funding, or stopped waiting above the ancestor.
func (s *state) targetKeys(ancestor uint64) (out []string) {
	sources := map[common.Address][]string{}
	for k := range s.targets.sources {
		var key readmodel.Amount
		key.SetBytes32(k.source[:])
		sources[k.vault] = append(sources[k.vault], signed(key))
	}
	for vault, all := range sources {
		out = append(out, among(placesOf("request_sources", "requested", vault)+" AND key", all)...)
	}
	for k := range s.targets.groups {
		owner, scope := k.vault, common.Address{}
		if !k.whole {
			owner, scope = k.user, k.vault
		}
		out = append(out, fmt.Sprintf("(list = 'groups' AND owner = %s AND scope = %s AND kind = '%s' AND key > %d)",
			quoted(owner), quoted(scope), k.kind, ancestor))
	}
	return out
}

// derivedRow returns the condition for the rows of valuations of a vault or claims of a user in it, in a block.
func derivedRow(kind readmodel.EffectKind, vault, user common.Address, block uint64) string {
	list, owner := "vault_events", vault
	if kind == readmodel.Claimed {
		list, owner = "user_events", user
	}
	return fmt.Sprintf("(%s AND key = 0 AND block = %d AND vault = %s)", placesOf(list, kind.String(), owner), block,
		quoted(vault))
}

// lineKeys returns conditions for the requests that claims of the units can close, or that retracted ones have closed:
// those that follow the shares claimed at the ancestor, as far as all these claims reach. A line may be long, and a
// unit seldom reaches more than its beginning.
func (s *state) lineKeys(ancestor uint64) (out []string) {
	for k, shares := range s.targets.lines {
		claimed := s.totals[k].before.clip(ancestor).newest().ClaimedShares
		var last readmodel.Amount
		last.Add(&claimed, shares)
		out = append(out, fmt.Sprintf(
			"(list = 'fifo' AND owner = %s AND scope = %s AND kind = 'requested' AND key > %s AND key <= %s)",
			quoted(k.owner), quoted(k.scope), signed(claimed), signed(last)))
	}
	return out
}

// signed formats a 256-bit number as a literal: without the quotes, the engine reads a long number as a float.
func signed(a readmodel.Amount) string { return "toInt256('" + mapping.Decimal(&a) + "')" }

// numberKeys returns conditions for the totals and members that the state names and that are not read yet.
func (s *state) numberKeys(ancestor uint64) (out []string) {
	totals := map[readmodel.List][]string{}
	for k, t := range s.totals {
		if t.read {
			continue
		}
		t.read = true
		totals[k.list] = append(totals[k.list], fmt.Sprintf("(%s,%s)", quoted(k.owner), quoted(k.scope)))
	}
	for list, name := range map[readmodel.List]string{readmodel.Totals: "totals", readmodel.UserTotals: "user_totals"} {
		condition := fmt.Sprintf("list = '%s' AND kind = 'none' AND key > %d AND (owner, scope)", name, ancestor)
		out = append(out, among(condition, totals[list])...)
	}
	var members []string
	for k, m := range s.members {
		if m.read {
			continue
		}
		m.read = true
		key := addressKey(k.user)
		members = append(members, fmt.Sprintf("(%s,%s,'%s')", quoted(k.owner), quoted(k.scope), key.Dec()))
	}
	return append(out, among("list = 'members' AND kind = 'none' AND (owner, scope, key)", members)...)
}

// quoted formats an address as a literal, which the engine parses faster than a call of unhex.
func quoted(a common.Address) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, c := range a {
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	b.WriteByte('\'')
	return b.String()
}

// keyBytes limits the text of the keys of a look-up, and queryBytes the whole query.
const (
	keyBytes   = 256 << 10
	queryBytes = 2 * keyBytes
)

// ask runs a query for some keys, in batches that fit into one query, and calls scan for each row.
func ask(ctx context.Context, conn driver.Conn, question string, keys []string, scan func(driver.Rows) error) error {
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

// The columns that the state needs of the rows of requests and deposits, of those of totals and members, and of blocks.
const (
	placeColumns = "sign, list, owner, kind, block, log_index, sub, user, vault, other, partner, id, " +
		"shares, assets, nav, expires, ts, hash, " +
		"funded_block, funded_ts, funded_assets, closed_block, closed_ts, closed_by, closed_assets, " +
		"by, grouped, group_id, source_id, matures, priced_block, priced_assets, cum_from, cum_to"
	numberColumns = "sign, list, owner, scope, user, block, ts, " +
		"deposits, deposited, requests, estimated, claims, claimed, users, swept, swept_assets, swept_to, valuations, " +
		"supply, funded_shares, claimed_shares, funded_to, deposits_to, requests_to, " +
		"shares, assets, nav, valued_block, valued_log, valued_ts, swept_block, swept_ts"
	blockColumns = "sign, block, hash, ts"
)

// readRows reads some columns of the live rows with some keys: those whose signs add up to 1.
func readRows(
	ctx context.Context, conn driver.Conn, columns string, keys []string,
) (live []readmodel.ListRow, err error) {
	reader := readmodel.ListsTable.NewReader(columns)
	signs := map[readmodel.ListRow]int{}
	err = ask(ctx, conn, strings.Replace(sqlRows, "{columns}", reader.SQL, 1), keys, func(rows driver.Rows) error {
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

// readPlaces reads requests and deposits. Each is in several lists, with the same values.
func (s *state) readPlaces(ctx context.Context, conn driver.Conn, keys []string) error {
	live, err := readRows(ctx, conn, placeColumns, keys)
	for _, row := range live {
		row.List, row.Owner = 0, common.Address{}
		found := pair[entry]{&entry{ListRow: row}, &entry{ListRow: row}}
		switch row.Kind {
		case readmodel.Requested:
			s.requests[entryKey{vault: row.Vault, id: row.ID}] = &found
		case readmodel.Deposit:
			s.deposits[entryKey{row.Vault, row.ID, found.after.place()}] = &found
		default:
			if d := s.derived[entryKey{vault: row.Vault, place: found.after.place()}]; d != nil {
				*d = found
			}
		}
	}
	return err
}

func (s *state) readNumbers(ctx context.Context, conn driver.Conn, keys []string) error {
	live, err := readRows(ctx, conn, numberColumns, keys)
	slices.SortFunc(live, func(a, b readmodel.ListRow) int { return cmp.Compare(a.Block, b.Block) })
	for _, row := range live {
		if row.List == readmodel.Members {
			since := first{row.Block, row.TS}
			s.members[memberKey{row.Owner, row.Scope, row.User}] = &member{pair[first]{&since, &since}, true}
			continue
		}
		t := s.totals[totalKey{row.List, row.Owner, row.Scope}]
		t.before, t.after = append(t.before, row), append(t.after, row)
	}
	return err
}

// readSwept reads the deposits that sweeps of the units may reach, or that retracted sweeps had reached: those after
// the last number that was swept at the ancestor.
func (s *state) readSwept(ctx context.Context, conn driver.Conn, ancestor uint64) error {
	var keys []string
	for vault, to := range s.targets.swept {
		t := s.totals[totalsOf(vault, vault)]
		from := t.before.clip(ancestor).newest().SweptTo
		to = max(to, t.before.newest().SweptTo)
		if to > from {
			above := fmt.Sprintf("key > %d", from)
			if from == 0 {
				above = "key >= 0" // nothing was swept, not even a deposit with the impossible number 0
			}
			keys = append(keys, fmt.Sprintf("(%s AND %s AND key <= %d)", placesOf("vault_events", "deposit", vault), above, to))
		}
	}
	return s.readPlaces(ctx, conn, keys)
}

// readBlocks reads the blocks of the units that are not newer than the newest block.
func (s *state) readBlocks(ctx context.Context, conn driver.Conn, newest uint64) error {
	var numbers []uint64
	for n := range s.blocks {
		if n <= newest {
			numbers = append(numbers, n)
		}
	}
	keys := among(placesOf("blocks", "none", common.Address{})+" AND key", numbers)
	listed, err := readRows(ctx, conn, blockColumns, keys)
	for _, row := range listed {
		b := block{row.Hash, row.TS}
		s.blocks[row.Block] = &pair[block]{&b, &b}
	}
	return err
}

// ancestorOf finds the newest block that is not newer than an ancestor; 0 if there is none. Its time is that of the
// newest listed block: the generation may skip the block itself.
func (s *state) ancestorOf(
	ctx context.Context, conn driver.Conn, ancestor, seq uint64,
) (number uint64, ts uint32, err error) {
	if number, ts, err = s.listedUpTo(ctx, conn, ancestor); err != nil {
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
func (s *state) listedUpTo(
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

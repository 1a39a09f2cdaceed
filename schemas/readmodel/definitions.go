package readmodel

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ListDefinition is the content of some lists as of a seq, as a query over the temporary tables of Derive. Its file in
// definitions has its name.
type ListDefinition struct {
	Name  string
	Lists []List
	// Columns are the columns of lists that the query returns, besides sign and the cursor's writer; all others have
	// their defaults.
	Columns string
}

// Definitions are the definitions of all lists except touched, which describes changes. The cursor is last.
var Definitions = []ListDefinition{
	{Name: "blocks", Lists: []List{Blocks}, Columns: "list, key, block, hash, ts"},
	{Name: "effects", Lists: []List{VaultEvents, UserEvents, PartnerEvents},
		Columns: "list, owner, kind, block, log_index, sub, user, vault, other, partner, id, id_to, " +
			"shares, assets, nav, expires, ts, hash, matures, by, grouped, group_id, source_id"},
	{Name: "deposits", Lists: []List{VaultEvents, UserEvents, PartnerEvents, Groups},
		Columns: "list, owner, scope, kind, key, block, log_index, sub, user, vault, other, partner, id, shares, assets, " +
			"ts, hash, closed_block, closed_ts, closed_by, grouped, group_id, priced_block"},
	{Name: "requests", Lists: []List{Queue, Requests, UserRequests, Sources, Groups, FifoList},
		Columns: "list, owner, scope, kind, key, block, log_index, sub, user, vault, other, partner, id, shares, assets, " +
			"expires, ts, hash, funded_block, funded_ts, funded_assets, closed_block, closed_ts, closed_by, closed_assets, " +
			"by, grouped, group_id, source_id, matures, priced_block, priced_assets, cum_from, cum_to"},
	{Name: "members", Lists: []List{Members, FirstSeen, Deposited, Withdrawn},
		Columns: "list, owner, scope, key, block, user, ts"},
	{Name: "user_totals", Lists: []List{UserTotals},
		Columns: "list, owner, scope, key, block, ts, closed_ts, deposits, deposited, requests, estimated, claims, " +
			"claimed, funded_shares, claimed_shares"},
	{Name: "totals", Lists: []List{Totals},
		Columns: "list, owner, scope, key, block, ts, closed_ts, deposits, deposited, requests, estimated, claims, " +
			"claimed, users, swept, swept_assets, swept_to, valuations, supply, funded_to, deposits_to, requests_to, " +
			"shares, assets, nav, valued_block, valued_log, valued_ts, swept_block, swept_ts"},
	{Name: "cursor", Lists: []List{CursorList, CursorEnd}, Columns: "list, block, ts, seq, rewrites"},
}

// derived are the temporary tables that definitions read. Each may use those before it; the first ones read events.
var derived = []string{"live", "mined", "newest", "reached", "reach", "exact", "grouped", "grouped_deposit", "deposit",
	"special", "about", "keyed", "found", "settled", "turn", "turn_within", "turn_earlier", "counted", "line", "plain",
	"request", "paid", "member", "change", "delta", "earlier", "valued",
	"user_earlier", "user_change"}

// inOrder are the derived tables that a window reads in their order: it sorts nothing then. Sorting the rows of delta
// needed more memory than a query has.
var inOrder = map[string]string{"delta": "owner, scope, bucket, block", "user_change": "user, vault, bucket, block",
	"turn": "vault, user, line_place, place"}

// bucketBlocks is the number of blocks in a bucket. ClickHouse keeps all rows of a window's partition in memory, and a
// vault may have millions, so the totals of vaults are added up within buckets and over buckets. With ten changes in
// each block, a bucket has 40,000 rows of 1 kB. Users with more changes than that in a vault have buckets too, such as
// a contract that deposits for others; with buckets for each user, joining them would need the memory instead. The
// line of an owner's requests and claims is divided into buckets of as many rows.
const bucketBlocks = 4096

// Derive computes, in temporary tables of a session (OpenSession), the meaning of events up to a seq, which must be the
// end of a unit. The SQL of definitions works in the session until Derive is called again or the session ends. Each
// table is planned and computed once, however many definitions read it.
func Derive(ctx context.Context, session driver.Conn, seq uint64) error {
	ctx = Parameters(ctx, map[string]uint64{"seq": seq, "bucket": bucketBlocks})
	for _, table := range derived {
		for _, sql := range []string{"DROP TEMPORARY TABLE IF EXISTS " + table,
			"CREATE TEMPORARY TABLE " + table + " ENGINE = MergeTree ORDER BY (" + inOrder[table] + ") SETTINGS " + scratch +
				" AS\n" + definition(table)} {
			if err := session.Exec(ctx, sql); err != nil {
				return fmt.Errorf("derive %s from events up to seq %d: %w", table, seq, err)
			}
		}
	}
	return nil
}

// scratch are the settings of a table that is read a few times and dropped: no merges.
const scratch = "max_bytes_to_merge_at_max_space_in_pool = 1, max_bytes_to_merge_at_min_space_in_pool = 1, " +
	"auto_statistics_types = ''"

func definition(name string) string {
	return quotient.ReplaceAllString(uncommented(file("definitions", name)), quotientSQL)
}

// quotient matches mulDiv(a, b, c) in a file: a * b / c of amounts, rounded down, 0 if the result does not fit an
// amount or c is 0. The product of two amounts has more than 256 bits, so a is divided in three pieces of 64 bits.
var quotient = regexp.MustCompile(`\bmulDiv\((\w+), (\w+), (\w+)\)`)

var quotientSQL = strings.NewReplacer("{64}", "toUInt256('18446744073709551616')",
	"{limit}", "bitShiftLeft(toUInt256(1), 191)", "\n", " ", "\t", "").Replace(`if($3 > 0 AND $1 >= 0 AND $2 >= 0, toInt256(arrayMap(q -> if(q < {limit}, q, 0),
	[arrayFold((acc, piece) -> (
	least(acc.1, {limit}) * {64} +
	least(intDiv(acc.2 * {64} + piece * toUInt256($2), toUInt256(greatest($3, 1))), {limit}),
	(acc.2 * {64} + piece * toUInt256($2)) % toUInt256(greatest($3, 1))),
	[intDiv(toUInt256($1), {64} * {64}), intDiv(toUInt256($1), {64}) % {64}, toUInt256($1) % {64}],
	(toUInt256(0), toUInt256(0))).1])[1]), toInt256(0))`)

// SQL returns the query, for a session of Derive, which sets the seq, and with Parameters.
func (d *ListDefinition) SQL() string { return definition(d.Name) }

// Rows returns the query for complete rows of lists: all columns but sign.
func (d *ListDefinition) Rows() string {
	given := map[string]bool{}
	for _, name := range strings.Split(d.Columns, ", ") {
		given[name] = true
	}
	var columns []string
	for _, c := range ListsTable.Columns {
		text := "'" + strings.ReplaceAll(c.Type, "'", "\\'") + "'"
		switch {
		case given[c.Name]:
			columns = append(columns, "CAST("+c.Name+", "+text+") AS "+c.Name)
		case c.Name != "sign":
			columns = append(columns, "defaultValueOfTypeName("+text+") AS "+c.Name)
		}
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM (\n" + d.SQL() + ")"
}

// BuildLists fills a table, lists or a draft of it, from events up to a seq, which must be the end of a unit. It
// empties the table first, so that an interrupted build starts again. The cursor, with the id of the writer, is
// inserted last and is the commit point: before it, lists must not be used. session must be a session of the
// generation's database (OpenSession).
func BuildLists(ctx context.Context, session driver.Conn, table string, seq, writer uint64) error {
	if err := session.Exec(ctx, "TRUNCATE TABLE "+table); err != nil {
		return fmt.Errorf("empty %s: %w", table, err)
	}
	if err := Derive(ctx, session, seq); err != nil {
		return err
	}
	ctx = Parameters(ctx, nil)
	for _, d := range Definitions {
		if err := d.build(ctx, session, table, writer); err != nil {
			return fmt.Errorf("build %s of lists as of seq %d: %w", d.Name, seq, err)
		}
	}
	return nil
}

// build inserts the rows of a definition into a table.
func (d *ListDefinition) build(ctx context.Context, session driver.Conn, table string, writer uint64) error {
	columns, values := d.Columns, d.Columns
	if d.Name == "cursor" {
		columns, values = columns+", writer", fmt.Sprintf("%s, %d", values, writer)
	}
	settings := clickhouse.Settings{
		"deduplicate_insert_select": "disable", // no block is sent twice, and equal ones must all count
		// No two rows of a build collapse. Looking for such rows took three quarters of its time.
		"optimize_on_insert": 0,
	}
	return session.Exec(clickhouse.Context(ctx, clickhouse.WithSettings(settings)),
		"INSERT INTO "+table+" (sign, "+columns+") SELECT 1, "+values+" FROM (\n"+d.SQL()+")")
}

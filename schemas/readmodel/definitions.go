package readmodel

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ListDefinition is what some lists hold as of a seq, as a question over events. Its file in
// definitions has its name.
type ListDefinition struct {
	Name  string
	Lists []List
	// Columns are those of lists that the question gives, besides sign and the cursor's
	// writer; all others have their default.
	Columns string
	// Sliced says that the question is for the users of one slice of several.
	Sliced bool
}

// Definitions are those of all lists but touched, which says what changed. The cursor is the last.
var Definitions = []ListDefinition{
	{Name: "blocks", Lists: []List{Blocks}, Columns: "list, key, block, hash, ts"},
	{Name: "effects", Lists: []List{VaultEvents, UserEvents, PartnerEvents},
		Columns: "list, owner, kind, block, log_index, sub, user, vault, other, partner, id, id_to, " +
			"shares, assets, nav, expires, ts, hash, matures, by, grouped, group_id, source_id"},
	{Name: "deposits", Lists: []List{VaultEvents, UserEvents, PartnerEvents, Groups},
		Columns: "list, owner, scope, kind, key, block, log_index, sub, user, vault, other, partner, id, shares, assets, ts, hash, " +
			"closed_block, closed_ts, closed_by, grouped, group_id, priced_block"},
	{Name: "requests", Lists: []List{Queue, Requests, UserRequests, Sources, Groups, FifoList},
		Columns: "list, owner, scope, kind, key, block, log_index, sub, user, vault, other, partner, id, shares, assets, expires, ts, " +
			"hash, funded_block, funded_ts, funded_assets, closed_block, closed_ts, closed_by, closed_assets, " +
			"by, grouped, group_id, source_id, matures, priced_block, priced_assets, cum_from, cum_to"},
	{Name: "members", Lists: []List{Members, FirstSeen, Deposited, Withdrawn}, Sliced: true,
		Columns: "list, owner, scope, key, block, user, ts"},
	{Name: "user_totals", Lists: []List{UserTotals}, Sliced: true,
		Columns: "list, owner, scope, key, block, ts, closed_ts, deposits, deposited, requests, estimated, claims, claimed, " +
			"funded_shares, claimed_shares"},
	{Name: "totals", Lists: []List{Totals},
		Columns: "list, owner, scope, key, block, ts, closed_ts, deposits, deposited, requests, estimated, claims, claimed, " +
			"users, swept, swept_assets, swept_to, valuations, supply, funded_to, deposits_to, requests_to"},
	{Name: "cursor", Lists: []List{CursorList, CursorEnd}, Columns: "list, block, ts, seq, rewrites"},
}

// parts are what definitions are made of. Each may name those before it.
var parts = []string{"live", "reached", "reach", "exact", "grouped_deposit", "deposit", "special", "about", "keyed", "settled",
	"line", "plain", "request", "paid", "valued", "member", "change", "mined"}

// quotient is mulDiv(a, b, c) in a part: a * b / c of amounts, rounded down, 0 if that is no amount or c is 0. The
// product of two amounts has more than 256 bits, so a is divided in three pieces of 64 bits.
var quotient = regexp.MustCompile(`\bmulDiv\((\w+), (\w+), (\w+)\)`)

var quotientSQL = strings.NewReplacer("{64}", "toUInt256('18446744073709551616')", "{limit}", "bitShiftLeft(toUInt256(1), 191)",
	"\n", " ", "\t", "").Replace(`if($3 > 0 AND $1 >= 0 AND $2 >= 0, toInt256(arrayMap(q -> if(q < {limit}, q, 0), [arrayFold((acc, piece) -> (
	least(acc.1, {limit}) * {64} + least(intDiv(acc.2 * {64} + piece * toUInt256($2), toUInt256(greatest($3, 1))), {limit}),
	(acc.2 * {64} + piece * toUInt256($2)) % toUInt256(greatest($3, 1))),
	[intDiv(toUInt256($1), {64} * {64}), intDiv(toUInt256($1), {64}) % {64}, toUInt256($1) % {64}],
	(toUInt256(0), toUInt256(0))).1])[1]), toInt256(0))`)

// SQL is the query, with the parameters of AsOf. Events is the table of the connection's database. grouped must be true if
// the events up to the seq have groups or lines (Grouped).
func (d *ListDefinition) SQL(grouped bool) string {
	sql := uncommented(file("definitions", d.Name))
	if !grouped {
		return withParts(sql, emptyParts)
	}
	sql = withParts(sql, nil)
	for _, part := range computedOnce {
		sql = strings.Replace(sql, part+" AS (\n", part+" AS MATERIALIZED (\n", 1)
	}
	return sql
}

// computedOnce lists the parts that the engine computes once per query and keeps in memory. It would plan and compute any
// other part again for each place that names it, with all parts below. These parts describe groups and lines only. Over empty
// tables this does not make planning faster.
var computedOnce = []string{"reached", "reach", "exact", "grouped_deposit", "special", "keyed", "settled", "line"}

// emptyParts replace the parts that have no row if there are no groups and lines. To plan these parts takes most of the time of
// a definition: all definitions over empty tables take 1.9 s with them and 0.42 s without. The test of the definitions compares the columns.
var emptyParts = map[string]string{
	"grouped_deposit": emptyTable("block UInt64, log_index UInt32, sub UInt8, ts UInt32, vault FixedString(20), user FixedString(20), " +
		"other FixedString(20), partner UInt32, partner_owner FixedString(20), id UInt64, assets Int256, tx FixedString(32), grouped Bool, " +
		"group_id UInt64, is_void UInt8, is_priced UInt8, price_assets Int256, price_shares Int256, shares Int256, priced_block UInt64, " +
		"closed_block UInt64, closed_ts UInt32"),
	"line": emptyTable("vault FixedString(20), id UInt64, place UInt128, block UInt64, log_index UInt32, sub UInt8, ts UInt32, " +
		"user FixedString(20), other FixedString(20), partner UInt32, partner_owner FixedString(20), shares Int256, assets Int256, " +
		"expires UInt64, hash FixedString(32), by String, grouped Bool, group_id UInt64, source_id FixedString(32), matures UInt64, " +
		"priced_block UInt64, priced_assets Int256, funded_block UInt64, funded_ts UInt32, funded_assets Int256, " +
		"last Tuple(UInt128, UInt64, UInt32, Int256, {effect}, Bool), in_line UInt8, line_place UInt128, is_claim Bool, claimed Int256, " +
		"cum_to Int256, taken Int256, more UInt8, raises Bool, paid Tuple(UInt128, UInt64, UInt32, {effect})"),
}

func emptyTable(columns string) string {
	for _, c := range EventsTable.Columns {
		if c.Name == "effect" {
			columns = strings.ReplaceAll(columns, "{effect}", c.Type)
		}
	}
	return "SELECT * FROM null('" + strings.ReplaceAll(columns, "'", "\\'") + "')"
}

// Grouped reports whether the events up to a seq have groups or lines: deposits or requests of a group, or requests that are
// claimed first in, first out.
func Grouped(ctx context.Context, conn driver.Conn, seq uint64) (grouped bool, err error) {
	err = conn.QueryRow(Parameters(ctx, map[string]uint64{"seq": seq}), uncommented(file("definitions", "grouped"))).Scan(&grouped)
	if err != nil {
		return false, fmt.Errorf("look for groups in events: %w", err)
	}
	return grouped, nil
}

// withParts puts the parts that a question names before it.
func withParts(sql string, instead map[string]string) string {
	return quotient.ReplaceAllString(namedParts(sql, instead), quotientSQL)
}

func namedParts(sql string, instead map[string]string) string {
	var needed []string
	for i := len(parts) - 1; i >= 0; i-- { // a part is named by the question, or by a part after it
		part, replaced := instead[parts[i]]
		if !replaced {
			part = uncommented(file("definitions", parts[i]))
		}
		if regexp.MustCompile(`\b(FROM|JOIN|IN) ` + parts[i] + `\b`).MatchString(sql + strings.Join(needed, "\n")) {
			needed = append(needed, fmt.Sprintf("%s AS (\n%s)", parts[i], part))
		}
	}
	slices.Reverse(needed)
	return "WITH " + strings.Join(needed, ", ") + "\n" + sql
}

// Rows is the question for the rows as lists has them: all columns but sign.
func (d *ListDefinition) Rows(grouped bool) string {
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
	return "SELECT " + strings.Join(columns, ", ") + " FROM (\n" + d.SQL(grouped) + ")"
}

// DefinitionsOf are the definitions that give rows of a list.
func DefinitionsOf(list List) (out []ListDefinition) {
	for _, d := range Definitions {
		for _, l := range d.Lists {
			if l == list {
				out = append(out, d)
			}
		}
	}
	return out
}

// AsOf gives definitions the seq as of which they are asked, and which slice of how many.
// A definition that is not Sliced ignores the slice.
func AsOf(ctx context.Context, seq, slice, slices uint64) context.Context {
	return Parameters(ctx, map[string]uint64{"seq": seq, "slice": slice, "slices": slices})
}

// sliceSeqs is how many records one slice is made of at most: so much stays in memory.
const sliceSeqs = 2_000_000

// BuildLists fills a table, lists or a draft of it, from events up to a seq, which must be
// the end of a unit. What the table holds is removed before: a build that was interrupted starts
// again. The cursor, with the id of the writer, is inserted last and is the commit point:
// before it, nobody may use lists. conn is to the generation's database (OpenPatient).
func BuildLists(ctx context.Context, conn driver.Conn, table string, seq, writer uint64) error {
	if err := conn.Exec(ctx, "TRUNCATE TABLE "+table); err != nil {
		return fmt.Errorf("empty %s: %w", table, err)
	}
	grouped, err := Grouped(ctx, conn, seq)
	if err != nil {
		return err
	}
	for _, d := range Definitions {
		slices := uint64(1)
		if d.Sliced {
			slices += seq / sliceSeqs
		}
		for slice := range slices {
			if err := d.build(AsOf(ctx, seq, slice, slices), conn, table, writer, grouped); err != nil {
				return fmt.Errorf("build %s of lists as of seq %d, slice %d of %d: %w", d.Name, seq, slice, slices, err)
			}
		}
	}
	return nil
}

// build inserts the rows of a definition into a table.
func (d *ListDefinition) build(ctx context.Context, conn driver.Conn, table string, writer uint64, grouped bool) error {
	columns, values := d.Columns, d.Columns
	if d.Name == "cursor" {
		columns, values = columns+", writer", fmt.Sprintf("%s, %d", values, writer)
	}
	settings := clickhouse.Settings{
		"deduplicate_insert_select": "disable", // no block is sent twice, and equal ones must all count
		// No two rows of a build collapse. To look for them was three quarters of its time.
		"optimize_on_insert": 0,
		// A row has 600 bytes before it is compressed.
		"max_insert_block_size":              1 << 18,
		"min_insert_block_size_rows":         1 << 18,
		"min_insert_block_size_bytes":        1 << 28,
		"max_insert_threads":                 1,
		"max_threads":                        2,
		"max_bytes_before_external_sort":     writerMemory / 4,
		"max_bytes_before_external_group_by": writerMemory / 2,
	}
	return conn.Exec(clickhouse.Context(ctx, clickhouse.WithSettings(settings)),
		"INSERT INTO "+table+" (sign, "+columns+") SELECT 1, "+values+" FROM (\n"+d.SQL(grouped)+")")
}

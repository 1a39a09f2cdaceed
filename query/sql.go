package query

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"
)

// The questions to ClickHouse, one file each. The files are templates only to
// share the parts in parts.sql and the fixed orders of a list, and for lists of
// keys that the engine gave itself, which are written as literals: only of these
// it sees which rows to read. Values are written as literals too (withValues).
var (
	//go:embed sql/*.sql
	sqlFiles     embed.FS
	sqlTemplates = template.Must(template.ParseFS(sqlFiles, "sql/*.sql"))
)

// question gives the text of sql/<name>.sql.
func question(name string, data any) string {
	var b bytes.Buffer
	if err := sqlTemplates.ExecuteTemplate(&b, name+".sql", data); err != nil {
		panic(err) // the files are part of the binary, and each is rendered at start
	}
	return b.String()
}

// key names rows by a vault and numbers; literal writes it as a tuple.
type key interface{ literal() string }

// keyList writes keys for an IN (...). A tuple of nothing but literals is parsed
// at once; with a function call in it, each key costs more than looking it up.
func keyList[K key](keys []K) string {
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k.literal()
	}
	return strings.Join(list, ",")
}

// hexLiteral writes the bytes of a FixedString.
func hexLiteral(s string) string { return fmt.Sprintf("x'%x'", s) }

var (
	sqlCursor          = question("cursor", nil)
	sqlNewestBlocks    = question("newest_blocks", nil)
	sqlIndexedBlock    = question("indexed_block", nil)
	sqlFirstBlock      = question("first_block", nil)
	sqlBoundary        = question("boundary", nil)
	sqlVaults          = question("vaults", nil)
	sqlNavs            = newList("navs")
	sqlNavsCount       = question("navs_count", nil)
	sqlPrefix          = question("prefix", nil)
	sqlCalendar        = question("calendar", nil)
	sqlLateNavs        = question("late_navs", nil)
	sqlNewNavs         = question("new_navs", nil)
	sqlNewRecords      = question("new_records", nil)
	sqlNewDeposits     = question("new_deposits", nil)
	sqlNewestNavs      = question("newest_navs", nil)
	sqlLatestNav       = question("latest_nav", nil)
	sqlUsersAsOfCnt    = question("users_as_of_count", nil)
	sqlUser            = question("user", nil)
	sqlUserLogs        = question("user_logs", nil)
	sqlUserDeposits    = newUserList("user_deposits")
	sqlSweeps          = question("sweeps", nil)
	sqlQueueBefore     = question("queue_before", nil)
	sqlQueueBetween    = question("queue_between", nil)
	sqlWithdrawals     = newUserList("user_withdrawals")
	sqlByStatus        = question("user_withdrawals_by_status", nil)
	sqlByStatusCount   = question("user_withdrawals_by_status_count", nil)
	sqlVaultMoves      = question("vault_moves", nil)
	sqlSpanMoves       = question("span_moves", nil)
	sqlQueueLater      = question("queue_later", nil)
	sqlPartnerDeps     = newList("partner_deposits")
	sqlPartnerStats    = question("partner_stats", nil)
	sqlPartnerStatsNew = question("partner_stats_new", nil)
	sqlPartnerBetween  = question("partner_stats_between", nil)
	sqlPartnerUsers    = question("partner_users", nil)
	sqlVaultUsersRow   = question("vault_users_by_row", nil)

	// Out of the totals that the engine holds in each part.
	sqlVaultUsers         = question("vault_users", nil)
	sqlPartnerStatsNewest = question("partner_stats_newest", nil)
	sqlPartnerStatsAsOf   = question("partner_stats_as_of", nil)
	sqlQueueNewest        = question("queue_newest", nil)
)

// generation is one database of read models and the way to it.
type generation struct {
	conn     driver.Conn
	id       int32
	database string
}

// A param is a value of a question, for its {name:Type}.
type param struct {
	name  string
	value any
}

func named(name string, value any) param { return param{name, value} }

// anyVault is in the place of a vault's address where all are asked for.
type anyVault struct{}

// bounds are conditions of questions by the parameter, and by the value with
// which every row meets them.
var bounds = []struct {
	name      string
	value     any
	condition string
}{
	{"block", uint64(math.MaxUint64), "AND block <= {block:UInt64}"},
	{"vault", anyVault{}, "AND vault = {vault:FixedString(20)}"},
	{"vault", anyVault{}, "WHERE vault = {vault:FixedString(20)}"},
	{"to", int64(math.MaxInt64), "AND ts <= {to:Int64}"},
	{"from", int64(0), "AND ts >= {from:Int64}"},
	{"since", uint64(0), "AND seq > {since:UInt64}"},
	{"from", uint64(0), "AND block >= {from:UInt64}"},
	{"to", uint64(math.MaxUint64), "AND block <= {to:UInt64}"},
}

// needed leaves the bounds out that every row meets. To weigh a condition costs
// the engine more than to read the rows, where these are few: a fifth of a
// millisecond each.
func needed(question string, args []param) string {
	for _, b := range bounds {
		if slices.Contains(args, named(b.name, b.value)) {
			question = strings.ReplaceAll(question, b.condition, "")
		}
	}
	return question
}

// placeholder is where a question wants a value: {name:Type}, as the engine itself
// writes its parameters. OneOf(Type), which it does not know, is a condition: = or IN.
var placeholder = regexp.MustCompile(`\{(\w+):([A-Za-z0-9]+(?:\([A-Za-z0-9]+\))?)\}`)

// withValues writes values into a question as literals. A parameter costs the
// engine a function to plan, a tenth of a look-up for its three or four. Nothing
// that a client wrote gets into the text: what it sent was parsed, and a literal is
// of a number, of an address's bytes, or one of our own words.
func withValues(question string, args []param) (string, error) {
	var fault error
	out := placeholder.ReplaceAllStringFunc(question, func(place string) string {
		parts := placeholder.FindStringSubmatch(place)
		i := slices.IndexFunc(args, func(a param) bool { return a.name == parts[1] })
		if i < 0 {
			fault = fmt.Errorf("a question needs %s and has no such value", place)
			return place
		}
		text, ok := literal(parts[2], args[i].value)
		if !ok {
			fault = fmt.Errorf("a question needs %s and has %T %v", place, args[i].value, args[i].value)
		}
		return text
	})
	return out, fault
}

// ownWord is a name of ours.
var ownWord = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// literal writes a value as a literal of a type of the engine's, or as OneOf such.
func literal(kind string, value any) (string, bool) {
	switch v := value.(type) {
	case uint64:
		return strconv.FormatUint(v, 10), kind == "UInt64"
	case uint32:
		return strconv.FormatUint(uint64(v), 10), kind == "UInt32"
	case int64:
		return strconv.FormatInt(v, 10), kind == "Int64"
	case []uint32:
		texts := make([]string, len(v))
		for i, n := range v {
			texts[i] = strconv.FormatUint(uint64(n), 10)
		}
		if len(texts) == 1 {
			return "= " + texts[0], kind == "OneOf(UInt32)"
		}
		// Of an array the engine would make a set, for a fifth of the time of a page of users.
		return "IN (" + strings.Join(texts, ",") + ")", kind == "OneOf(UInt32)" && len(v) > 0
	case common.Address:
		return hexLiteral(string(v[:])), kind == "FixedString(20)"
	case string:
		if kind == "Identifier" {
			return v, ownWord.MatchString(v)
		}
		return "'" + v + "'", kind == "String" && ownWord.MatchString(v)
	}
	return "", false
}

// ask puts a question to a generation and gives its rows.
func ask[T any](ctx context.Context, g generation, question string, args ...param) (out []T, err error) {
	err = g.put(ctx, question, args, func(ctx context.Context, question string) error {
		return g.conn.Select(ctx, &out, question)
	})
	return out, err
}

// askEach is ask for many rows: it reads each to the same places, in the order of the
// columns, and tells when it has. To look up for every row where its columns belong, as
// ask does, takes longer than to read them.
func askEach(ctx context.Context, g generation, question string, places []any, each func(), args ...param) error {
	return g.put(ctx, question, args, func(ctx context.Context, question string) error {
		rows, err := g.conn.Query(ctx, question)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := rows.Scan(places...); err != nil {
				return err
			}
			each()
		}
		return cmp.Or(rows.Close(), rows.Err())
	})
}

// put makes a question of what was asked, and has it read.
func (g generation) put(ctx context.Context, question string, args []param, read func(ctx context.Context, question string) error) error {
	if err := ctx.Err(); err != nil { // there is no time to tell the engine of
		return err
	}
	ctx, cancel := unhurried(ctx)
	defer cancel()
	question, err := withValues(question, append(args, named("db", g.database)))
	if err != nil {
		return err
	}
	return read(ctx, question)
}

const (
	// engineGrace is how long the engine may take to say that time is over.
	engineGrace = 10 * time.Second
	// longestQuestion is what query's login may ask the engine for: one that
	// wants more is refused (clickhouse-query-user.xml).
	longestQuestion = time.Minute
)

// unhurried leaves it to the engine to end a question when its time is over.
// A driver that ends it closes the connection, and the embedded engine has been
// seen to abort when a connection was reset at the wrong moment.
//
// The engine's older analyzer plans a question in four fifths of the time. Those that
// it does not understand, or plans worse, ask for the newer one (parts.sql); where
// there is no older one any more, that is what all of them get. Nothing is compiled for
// a question: after a few of a kind the engine would have machine code made of its sums
// and conditions, again and again, and each time that takes 15 to 20 ms.
func unhurried(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := engineGrace
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(time.Until(deadline), longestQuestion)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit+engineGrace)
	settings := clickhouse.Settings{"max_threads": 1, "max_execution_time": max(1, int(math.Ceil(limit.Seconds()))), "enable_analyzer": 0,
		"compile_expressions": 0, "compile_aggregate_expressions": 0, "compile_sort_description": 0}
	if !isReadAhead(ctx) {
		settings["os_threads_nice_value_query"] = questionNice
	}
	return clickhouse.Context(withoutDeadline{ctx}, clickhouse.WithSettings(settings)), cancel
}

// questionNice is the priority of a question in the engine, where the engine's
// process may set one (CAP_SYS_NICE): before inserts, of which a block at the head
// brings one for each table at once. They held answers up for a tenth of a second
// on two cores, and take a fifth longer since.
const questionNice = -10

type readAheadKey struct{}

// withReadAhead marks what nobody waits for yet: its questions come before nothing.
func withReadAhead(ctx context.Context) context.Context {
	return context.WithValue(ctx, readAheadKey{}, true)
}

func isReadAhead(ctx context.Context) bool { return ctx.Value(readAheadKey{}) != nil }

// withoutDeadline hides a deadline from the driver, which would make another
// max_execution_time of it.
type withoutDeadline struct{ context.Context }

// Deadline is none.
func (withoutDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }

// askOne is ask for a question that has at most one row; no row gives the
// zero value and false.
func askOne[T any](ctx context.Context, g generation, question string, args ...param) (T, bool, error) {
	rows, err := ask[T](ctx, g, question, args...)
	if err != nil || len(rows) == 0 {
		var none T
		return none, false, err
	}
	return rows[0], true, nil
}

// together does what does not wait for each other at once, and gives the first
// error.
func together(parts ...func() error) error {
	var group errgroup.Group
	for _, p := range parts {
		group.Go(p)
	}
	return group.Wait()
}

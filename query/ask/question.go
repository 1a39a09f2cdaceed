package ask

import (
	"context"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/telemetry"
)

//go:embed sql/*.sql
var files embed.FS

// Question is one statement: a file of SQL with arguments A and rows R.
//
// A is a struct. A field tagged `ask:"name"` is the value of {name:Type} in the SQL. A slice of addresses, numbers or
// names is {name} without a type, a list of literals, because the engine can only select the rows to read by
// literals. With ,optional the SQL need not use it.
//
// A field tagged `reads:"list,list"` is the owner of rows of those lists that the question reads: an address or
// addresses. For lists of events the tag also names the kind (vault_events.deposit; * is the argument kind), and page
// stands for the list of the Page (page, page.deposit). A blank field with the tag stands for the owner of everything.
// An answer is cached for as long as nothing that it read changes, so a question must declare everything that it reads;
// one that declares nothing depends on everything, and `reads:"-"` adds no dependency.
//
// The SQL may also use {block}, {seq}, {now} (the time of the pin's block, Unix seconds), {lately} (a block that is
// never above the newest one, unless a reorganisation makes the chain much shorter) and {never}, whose values come
// from the pin.
//
// A line of the SQL that ends with "-- if a" is sent only if the argument a is not its zero value, and one that ends
// with "-- unless a, b" only if both have their zero values. after is true for a page that begins after a place. The
// engine takes a tenth of a millisecond to plan a condition that has no effect.
//
// R is a struct whose fields are columns, named by their `ch` tags. {columns} in the SQL stands for all of them: a
// column of the table, or the expression in the tag `sql` under the name in the tag `ch`. If R embeds Mark, the
// question reads the list cursor (or cursor_end) in the same statement as its rows, net of rows that cancel each
// other; the cursor row goes to the pin, which uses it to check that the rows belong to its state. If R embeds
// Signed, its rows are those of the table, and the caller adds them up.
type Question[A, R any] struct {
	lines     []line
	named     map[string]bool // names of the parameters
	arguments []argument
	reads     []read
	// readsNothing: the question adds no dependency to an answer.
	readsNothing bool
	marked       bool
	time         bool   // uses {now}
	name         string // of its rows, for traces: the SQL may hold values
}

// Mark is embedded in the rows of a question that also reads a cursor: list, seq and rewrites. (Never give a computed
// column the name of a table column: in WHERE and ORDER BY the engine would use the computed one, and not find the
// key.)
type Mark struct {
	List     string `ch:"list"`
	Seq      uint64 `ch:"seq"`
	Rewrites uint64 `ch:"rewrites"`
}

func (m *Mark) mark() *Mark { return m }

func (m *Mark) isCursor() bool { return m.List == "cursor" || m.List == "cursor_end" }

type marked interface{ mark() *Mark }

// Signed is embedded in rows that are not net: Mark, and sign.
type Signed struct {
	Mark
	Sign int8 `ch:"sign"`
}

func (s *Signed) signed() *Signed { return s }

type signed interface{ signed() *Signed }

// line is one or more lines of SQL that are sent together or not at all.
type line struct {
	text   string
	unless bool
	names  []string // of the conditions; none: the line is always sent
}

// sent reports whether the line is sent, where given reports whether an argument is set.
func (l *line) sent(given func(string) bool) bool {
	return len(l.names) == 0 || slices.ContainsFunc(l.names, given) != l.unless
}

var condition = regexp.MustCompile(` +-- (if|unless) ([a-z, ]+)$`)

// parsed returns the SQL without comments, as lines.
func parsed(sql string) (lines []line) {
	for text := range strings.Lines(sql) {
		text = strings.TrimRight(text, "\n")
		if strings.HasPrefix(strings.TrimSpace(text), "--") {
			continue
		}
		m := condition.FindStringSubmatch(text)
		switch last := len(lines) - 1; {
		case m != nil:
			lines = append(lines, line{strings.TrimSuffix(text, m[0]) + "\n", m[1] == "unless", strings.Split(m[2], ", ")})
		case last >= 0 && len(lines[last].names) == 0:
			lines[last].text += text + "\n"
		default:
			lines = append(lines, line{text: text + "\n"})
		}
	}
	return lines
}

type argument struct {
	name  string
	field []int
}

type read struct {
	list  readmodel.List
	kind  readmodel.EffectKind // of a list of events
	named bool                 // the kind is the argument kind
	field []int                // nil: the owner of everything
}

func newRead(tag, page string, field []int) read {
	name, kind, _ := strings.Cut(tag, ".")
	if name == "page" {
		name = page
	}
	r := read{list: listNamed(name), field: field}
	if !r.list.ByKind() && kind == "" {
		return r
	}
	var known bool
	r.kind, known = readmodel.KindNamed(kind)
	r.named = kind == "*"
	if !known && !r.named || !r.list.ByKind() {
		panic(fmt.Sprintf("a list of events is read with the kind of its rows, and no other list: %q", tag))
	}
	return r
}

// key returns the key of an owner's rows. kind is the argument kind, if there is one.
func (r *read) key(owner common.Address, kind readmodel.EffectKind) readmodel.TouchedKey {
	switch {
	case r.named:
		return readmodel.TouchKind(r.list, kind, owner)
	case r.list.ByKind():
		return readmodel.TouchKind(r.list, r.kind, owner)
	}
	return readmodel.Touch(r.list, owner)
}

var parameter = regexp.MustCompile(`\{(\w+)(:[^}]+)?\}`)

// pinned are the parameters that every question may use; Page sets those from rows onwards.
var pinned = map[string]bool{"block": true, "seq": true, "now": true, "never": true, "lately": true,
	"rows": true, "offset": true, "after_key": true, "after_block": true, "after_log": true, "after_sub": true,
	"after_user": true}

// behind is the condition of a Page that begins after a place.
const behind = "after"

// New returns a question. It panics if the SQL and the fields of A do not match: a programming error, which the first
// test finds.
func New[A, R any](sql string) *Question[A, R] { return newQuestion[A, R](sql, "") }

// newQuestion is New for the entries of a list; empty: for any other rows.
func newQuestion[A, R any](sql, page string) *Question[A, R] {
	row := reflect.TypeFor[R]()
	sql = strings.ReplaceAll(sql, "{columns}", columns(row))
	q := &Question[A, R]{lines: parsed(sql), named: map[string]bool{}, name: row.String()}
	named := map[string]bool{} // true: without a type
	conditions := map[string]bool{}
	for _, l := range q.lines {
		for _, m := range parameter.FindAllStringSubmatch(l.text, -1) {
			q.named[m[1]], named[m[1]] = true, m[2] == ""
		}
		for _, name := range l.names {
			conditions[name] = true
		}
	}
	_, q.time = named["now"]
	for _, field := range reflect.VisibleFields(reflect.TypeFor[A]()) {
		if tag, ok := field.Tag.Lookup("ask"); ok {
			name, optional := strings.CutSuffix(tag, ",optional")
			literal, used := named[name]
			switch needed := used || conditions[name]; {
			case !needed && optional:
				continue
			case !needed:
				panic(fmt.Sprintf("the question has no parameter %s: %s", name, sql))
			}
			if used && !suits(field.Type, literal) {
				panic(fmt.Sprintf("a %s cannot be the argument %s of a question: %s", field.Type, name, sql))
			}
			q.arguments = append(q.arguments, argument{name, field.Index})
			delete(named, name)
			delete(conditions, name)
		}
		for list := range strings.SplitSeq(field.Tag.Get("reads"), ",") {
			if list == "" {
				continue
			}
			if list == "-" {
				q.readsNothing = true
				continue
			}
			index := field.Index
			if field.Name == "_" {
				index = nil
			}
			q.reads = append(q.reads, newRead(list, page, index))
		}
	}
	for name := range named {
		if !pinned[name] {
			panic(fmt.Sprintf("the question has a parameter %s that no argument gives: %s", name, sql))
		}
	}
	for name := range conditions {
		if name != behind {
			panic(fmt.Sprintf("the question has a condition %s that no argument gives: %s", name, sql))
		}
	}
	_, q.marked = any(new(R)).(marked)
	return q
}

func columns(row reflect.Type) string {
	var out []string
	for _, field := range reflect.VisibleFields(row) {
		column, ok := field.Tag.Lookup("ch")
		expression := field.Tag.Get("sql")
		switch {
		case !ok, expression == "-":
			continue
		case expression != "":
			column = expression + " AS " + column
		}
		out = append(out, column)
	}
	return strings.Join(out, ", ")
}

// suits reports whether values of a type can be an argument, or a list of literals.
func suits(of reflect.Type, literal bool) bool {
	zero, err := reflect.Zero(of).Interface(), error(nil)
	if literal {
		_, err = literals(zero)
	} else {
		_, err = written(zero)
	}
	return !errors.Is(err, errNoArgument)
}

// errNoArgument reports that values of a type cannot be an argument.
var errNoArgument = errors.New("no value of that type can be an argument")

func listNamed(name string) readmodel.List {
	list, ok := readmodel.ListNamed(name)
	if !ok {
		panic(fmt.Sprintf("there is no list %q", name))
	}
	return list
}

// lately is the number of blocks by which the chain may become shorter while an answer is made.
const lately = 128

// Rows runs the question at the state of a pin. The error is a *state.Error.
func (q *Question[A, R]) Rows(ctx context.Context, p *Pin, args A) ([]R, error) {
	of, err := q.RowsOfEach(ctx, p, args)
	if err != nil {
		return nil, err
	}
	return of[0], nil
}

// RowsOfEach is Rows for each of some arguments, in one statement. The rows of several embed Part.
func (q *Question[A, R]) RowsOfEach(ctx context.Context, p *Pin, args ...A) ([][]R, error) {
	out, err := q.each(ctx, p, nil, args)
	if err != nil || !q.marked {
		return out, err
	}
	for i := range out {
		out[i] = withoutCursors(p, out[i])
	}
	return out, nil
}

// each returns the rows for each of some arguments, including those of the cursors.
func (q *Question[A, R]) each(ctx context.Context, p *Pin, more clickhouse.Parameters, args []A) ([][]R, error) {
	if len(args) == 0 {
		return nil, nil
	}
	rows, err := q.all(ctx, p, more, args...)
	switch {
	case err != nil:
		return nil, err
	case len(args) == 1:
		return [][]R{rows}, nil
	}
	out := make([][]R, len(args))
	for i := range rows {
		n := any(&rows[i]).(parted).part()
		out[n] = append(out[n], rows[i])
	}
	return out, nil
}

// withoutCursors returns the rows other than cursors. It compares the cursors with the pin.
func withoutCursors[R any](p *Pin, rows []R) []R {
	out, cursors := rows[:0], map[Mark]int8{}
	for i := range rows {
		m := any(&rows[i]).(marked).mark()
		if !m.isCursor() {
			out = append(out, rows[i])
			continue
		}
		sign := int8(1)
		if s, ok := any(&rows[i]).(signed); ok {
			sign = s.signed().Sign
		}
		if cursors[*m] += sign; cursors[*m] == 0 {
			delete(cursors, *m)
		}
	}
	for m := range cursors {
		p.saw(&m, false)
	}
	if len(cursors) == 0 {
		p.saw(&Mark{}, false) // the generation has lost its cursor: older than every pin
	}
	return out
}

// all returns the rows for some arguments, including those of the cursors. Each of the arguments is a part of one
// statement, which reads the cursor for itself: so the parts need not see the same state.
func (q *Question[A, R]) all(ctx context.Context, p *Pin, more clickhouse.Parameters, args ...A) (rows []R, err error) {
	ctx, span := telemetry.Child(ctx, telemetry.Client, "ask")
	defer func() { telemetry.End(span, err) }()
	telemetry.Text(span, telemetry.Question, q.name)
	telemetry.Text(span, telemetry.Database, "clickhouse")
	parameters, err := q.parameters(ctx, p, more)
	if err != nil {
		return nil, err
	}
	parts := make([]string, len(args))
	for i := range args {
		v, suffix := reflect.ValueOf(args[i]), ""
		if len(args) > 1 {
			suffix = "_" + strconv.Itoa(i)
		}
		if !q.readsNothing {
			p.dependsOn(q.keys(v))
		}
		if parts[i], err = q.part(v, suffix, parameters); err != nil {
			return nil, err
		}
	}
	if len(parts) > 1 {
		for i := range parts {
			parts[i] = fmt.Sprintf("SELECT toUInt8(%d) AS part, * FROM (%s)", i, parts[i])
		}
	}
	if err := p.snapshot.Source.Select(ctx, &rows, strings.Join(parts, "\nUNION ALL\n"), parameters); err != nil {
		return nil, err
	}
	return rows, nil
}

// part returns the SQL for some arguments, and adds those that are parameters, with the suffix in their names.
func (q *Question[A, R]) part(args reflect.Value, suffix string, parameters clickhouse.Parameters) (string, error) {
	sql := q.text(args, parameters)
	for _, a := range q.arguments {
		value := args.FieldByIndex(a.field).Interface()
		if !strings.Contains(sql, "{"+a.name+":") {
			if !strings.Contains(sql, "{"+a.name+"}") {
				continue
			}
			literals, err := literals(value)
			if err != nil {
				return "", state.Wrong("the list %s of a question: %w", a.name, err)
			}
			sql = strings.ReplaceAll(sql, "{"+a.name+"}", literals)
			continue
		}
		text, err := written(value)
		if err != nil {
			return "", state.Wrong("the parameter %s of a question: %w", a.name, err)
		}
		sql = strings.ReplaceAll(sql, "{"+a.name+":", "{"+a.name+suffix+":")
		parameters[a.name+suffix] = text
	}
	return sql, nil
}

// parameters returns the parameters of the pin, and those in more.
func (q *Question[A, R]) parameters(ctx context.Context, p *Pin,
	more clickhouse.Parameters) (clickhouse.Parameters, error) {
	out := clickhouse.Parameters{}
	numbers := map[string]uint64{"block": p.Block, "seq": p.Seq,
		"lately": p.snapshot.Block - min(p.snapshot.Block, lately)} // Source.Select adds never
	for name, value := range numbers {
		if q.named[name] {
			out[name] = strconv.FormatUint(value, 10)
		}
	}
	if q.time {
		now, err := p.Now(ctx)
		if err != nil {
			return nil, err
		}
		out["now"] = strconv.FormatUint(now, 10)
	}
	maps.Copy(out, more)
	return out, nil
}

// text returns the SQL without the lines whose conditions do not hold.
func (q *Question[A, R]) text(args reflect.Value, parameters clickhouse.Parameters) string {
	given := func(name string) bool {
		if name == behind {
			_, given := parameters["after_block"]
			return given
		}
		i := slices.IndexFunc(q.arguments, func(a argument) bool { return a.name == name })
		return !args.FieldByIndex(q.arguments[i].field).IsZero()
	}
	var b strings.Builder
	for i := range q.lines {
		if q.lines[i].sent(given) {
			b.WriteString(q.lines[i].text)
		}
	}
	return b.String()
}

// One is Rows for a question with at most one row; it returns false if there is none.
func (q *Question[A, R]) One(ctx context.Context, p *Pin, args A) (row R, ok bool, err error) {
	rows, err := q.Rows(ctx, p, args)
	if err != nil || len(rows) == 0 {
		return row, false, err
	}
	return rows[0], true, nil
}

// Part is embedded in the rows of a question about several arguments: the index of those that a row is about.
type Part struct {
	Part uint8 `ch:"part" sql:"-"`
}

func (p *Part) part() uint8 { return p.Part }

type parted interface{ part() uint8 }

// keys returns the keys that the question reads, or nil if it does not declare them.
func (q *Question[A, R]) keys(args reflect.Value) (keys []readmodel.TouchedKey) {
	kind := q.kind(args)
	for _, r := range q.reads {
		if r.field == nil {
			keys = append(keys, r.key(common.Address{}, kind))
			continue
		}
		switch owner := args.FieldByIndex(r.field).Interface().(type) {
		case common.Address:
			keys = append(keys, r.key(owner, kind))
		case []common.Address:
			for _, o := range owner {
				keys = append(keys, r.key(o, kind))
			}
			if len(owner) == 0 { // it reads nothing; nil would mean that it depends on everything
				keys = append(keys, r.key(common.Address{0xff}, kind))
			}
		case []Member:
			for _, o := range owner {
				keys = append(keys, r.key(o.User, kind))
			}
		default:
			panic(fmt.Sprintf("a %T cannot own a list", owner))
		}
	}
	return keys
}

// kind returns the argument kind, or no effect if there is none.
func (q *Question[A, R]) kind(args reflect.Value) (kind readmodel.EffectKind) {
	for _, a := range q.arguments {
		if word, ok := args.FieldByIndex(a.field).Interface().(Word); ok && a.name == "kind" {
			kind, _ = readmodel.KindNamed(string(word))
		}
	}
	return kind
}

// Word is one of the program's keywords, made of a-z and _.
type Word string

// Member is a user of a vault, or of any vault if it is zero: the owner and the key of a row of the list members, whose
// key is the user's address as a number.
type Member struct{ Vault, User common.Address }

// Name is the name of a contract event.
type Name string

// Above selects the entries of an owner's list with a key above a value; in the SQL, {name} is a condition.
type Above struct {
	Owner common.Address
	Key   Decimal
}

// IsName reports whether s is a valid name of a contract event.
func IsName(s string) bool { return name.MatchString(s) }

// written returns a value as the text of a query parameter, in which bytes may be escaped by their number.
func written(value any) (string, error) {
	switch v := value.(type) {
	case uint64, uint32, uint8, int64, bool:
		return fmt.Sprint(v), nil
	case Decimal:
		if !decimal.MatchString(string(v)) {
			return "", fmt.Errorf("%q is not a number", string(v))
		}
		return string(v), nil
	case common.Address:
		return escaped(v[:]), nil
	case common.Hash:
		return escaped(v[:]), nil
	case Word:
		if !word.MatchString(string(v)) {
			return "", fmt.Errorf("%q is none of the program's words", string(v))
		}
		return string(v), nil
	}
	return "", fmt.Errorf("%w: %T", errNoArgument, value)
}

// Decimal is an integer as decimal digits: an Int256 in an answer.
type Decimal string

var (
	decimal = regexp.MustCompile(`^-?[0-9]{1,78}$`)
	name    = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]{0,127}$`)
	word    = regexp.MustCompile(`^[a-z_]+$`)
)

func escaped(bytes []byte) string {
	var b strings.Builder
	for _, c := range bytes {
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	return b.String()
}

// literals returns a list as SQL text. An empty list becomes a value that no row has.
func literals(value any) (string, error) {
	var out []string
	separator, none := ",", "NULL" // not '', which is the zero address
	switch v := value.(type) {
	case []common.Address:
		for _, a := range v {
			out = append(out, literal(a[:]))
		}
	case []uint64:
		for _, n := range v {
			out = append(out, strconv.FormatUint(n, 10))
		}
	case []Member:
		none = "(" + literal(common.MaxAddress[:]) + ",toInt256('-1'))"
		for _, m := range v {
			out = append(out, "("+literal(m.Vault[:])+",toInt256('"+new(big.Int).SetBytes(m.User[:]).String()+"'))")
		}
	case []Name:
		for _, n := range v {
			if !name.MatchString(string(n)) {
				return "", fmt.Errorf("%q is not the name of a contract event", string(n))
			}
			out = append(out, "'"+string(n)+"'")
		}
	case []Above:
		separator, none = " OR ", "false"
		for _, a := range v {
			if !decimal.MatchString(string(a.Key)) {
				return "", fmt.Errorf("%q is not a number", string(a.Key))
			}
			out = append(out, fmt.Sprintf("owner = %s AND key > toInt256('%s')", literal(a.Owner[:]), a.Key))
		}
	default:
		return "", fmt.Errorf("%w: %T", errNoArgument, value)
	}
	if len(out) == 0 {
		return none, nil
	}
	return strings.Join(out, separator), nil
}

func literal(b []byte) string { return "x'" + hex.EncodeToString(b) + "'" }

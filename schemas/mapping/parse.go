package mapping

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"go.yaml.in/yaml/v3"
)

// Mapping is a checked mapping: what the logs of one kind of vault do.
type Mapping struct {
	// Name is the preset's name.
	Name string
	// Roles are its sources, in the order of the file; a Log's Role is an index into them.
	Roles []Role
	rules []rule
	// events are the events of the rules, each once.
	events []*Event
	// queue is what the rules have in common about all requests.
	queue queue
	// SampleEvery is the number of blocks between two samples of NAV: blocks whose number is a multiple of it are sampled.
	// It is 0 if NAV is not sampled, because events have it or nothing does.
	SampleEvery uint64
}

// ConvertToAssets is the function of the source `vault` with which NAV is sampled, at the hashes of blocks: it returns
// the value of shares in assets (ERC-4626).
const ConvertToAssets = "convertToAssets"

// Role is the role of a contract in a vault.
type Role struct {
	Name     string
	Optional bool
}

// Events returns the events of the mapping, in the order of its rules.
func (m *Mapping) Events() []*Event { return m.events }

// rule describes what the logs of one event do.
type rule struct {
	node *yaml.Node
	role uint8
	// event is one of the mapping's events; of is its declaration.
	event   *Event
	of      *signature
	when    []condition
	effects []emission
	with    *companion
}

// emissions yields the effects of all rules, in the order of the file, each with its rule.
func (m *Mapping) emissions() iter.Seq2[*rule, *emission] {
	return func(yield func(*rule, *emission) bool) {
		for i := range m.rules {
			for j := range m.rules[i].effects {
				if !yield(&m.rules[i], &m.rules[i].effects[j]) {
					return
				}
			}
		}
	}
}

func (m *Mapping) emits(kind Kind) bool {
	for _, e := range m.emissions() {
		if e.kind == kind {
			return true
		}
	}
	return false
}

// lacks reports whether a rule emits an effect of a kind without always setting all of some fields.
func (m *Mapping) lacks(kind Kind, fields Fields) bool {
	for r, e := range m.emissions() {
		if e.kind == kind && r.always(e)&fields != fields {
			return true
		}
	}
	return false
}

// always returns the fields that an effect of the rule always has: those of the log, and those of a companion that must
// exist.
func (r *rule) always(e *emission) Fields {
	if r.with != nil && r.with.needed {
		return e.has | r.with.has
	}
	return e.has
}

// possibly returns the fields that an effect of the rule can have.
func (r *rule) possibly(e *emission) Fields {
	if r.with != nil {
		return e.has | r.with.has
	}
	return e.has
}

type condition struct {
	parameter *parameter
	word      common.Hash // if other is nil
	other     *parameter
}

type emission struct {
	kind Kind
	side Side
	has  Fields
	sets []assignment
}

type assignment struct {
	field field
	value value
}

// companion is another log of the same transaction that completes the effect.
type companion struct {
	role  uint8
	of    *signature
	match []condition // parameter is the companion's, other the primary log's if it is set
	set   *yaml.Node
	has   Fields
	sets  []assignment
	// needed is set if the effect lacks a required field without the companion.
	needed bool
}

// maxText is the maximum size of a file in bytes.
const maxText = 1 << 20

// Limits of a file. The largest mapping of an actual protocol has about 20 rules.
const (
	maxRules = 1000
	maxRoles = 32
	maxMatch = 4
)

var (
	nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$`)
	roleForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
)

// Parse parses and checks a mapping; Together checks it with the other ones of its vault. The error is Mistakes: all of
// its mistakes. file is only used in messages.
func Parse(file string, text []byte) (*Mapping, error) {
	return (&checker{file: file}).parse(text)
}

func (c *checker) parse(text []byte) (*Mapping, error) {
	root := c.document(text)
	if root == nil {
		return nil, c.result()
	}
	m := c.mapping(root)
	if err := c.result(); err != nil {
		return nil, err
	}
	return m, nil
}

// yamlLine matches the line number in an error of the YAML library.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// document parses YAML and returns its only value; nil if there is none.
func (c *checker) document(text []byte) *yaml.Node {
	whole := &yaml.Node{Line: 1, Column: 1}
	if len(text) > maxText {
		c.at(whole, 0, "the file has more than %d bytes", maxText)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var root, second yaml.Node
	err := decoder.Decode(&root)
	if errors.Is(err, io.EOF) || err == nil && len(root.Content) != 1 {
		c.at(whole, 0, "the file is empty")
		return nil
	}
	if err == nil {
		if err = decoder.Decode(&second); err == nil {
			c.at(&second, 0, "a file has one document, and a second one begins here")
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		said := err.Error()
		if m := yamlLine.FindStringSubmatch(said); m != nil {
			if line, err := strconv.Atoi(m[1]); err == nil {
				whole.Line = line
			}
			said = m[2]
		}
		c.at(whole, 0, "this is not YAML: %s", said)
		return nil
	}
	if !c.checkPlain(root.Content[0], 0) {
		return nil
	}
	return root.Content[0]
}

// checkPlain reports anchors, aliases and deep nesting, which the language does not have, and characters that are not
// displayed: they would hide what a mapping says, and a canonical text with some of them is not YAML.
func (c *checker) checkPlain(n *yaml.Node, depth int) bool {
	hidden := strings.IndexFunc(n.Value, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsGraphic(r) })
	switch {
	case hidden >= 0 && !c.recorded:
		r, _ := utf8.DecodeRuneInString(n.Value[hidden:])
		c.at(n, hidden, "the character %U is not displayed: remove it", r)
		return false
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		c.at(n, 0, "anchors and aliases are not part of the language")
		return false
	case depth > 2*maxDepth:
		c.at(n, 0, "the file is nested more than %d times", 2*maxDepth)
		return false
	}
	for _, inner := range n.Content {
		if !c.checkPlain(inner, depth+1) {
			return false
		}
	}
	return true
}

func (c *checker) mapping(root *yaml.Node) *Mapping {
	m := &Mapping{}
	entries := c.entries(root, "a mapping", []string{"preset", "sources", "events", "nav"})
	if root.Kind != yaml.MappingNode {
		return m
	}
	for _, required := range []string{"preset", "sources", "events"} {
		if named(entries, required) == nil {
			c.at(root, 0, "the key `%s` is missing", required)
		}
	}
	if e := named(entries, "preset"); e != nil {
		if name, ok := c.word(e.value, "`preset`"); ok {
			if m.Name = name; !nameForm.MatchString(name) {
				c.at(e.value, 0, "%q is not a valid preset name: use lower-case letters, digits, dots and hyphens", name)
			}
		}
	}
	if e := named(entries, "sources"); e != nil {
		c.roles(m, e.value)
	}
	if e := named(entries, "events"); e != nil {
		items := c.list(e.value, "`events`")
		if e.value.Kind == yaml.SequenceNode && (len(items) == 0 || len(items) > maxRules) {
			c.at(e.value, 0, "`events` must have between 1 and %d rules", maxRules)
			items = nil
		}
		for _, item := range items {
			c.rule(m, item)
		}
	}
	c.shadowed(m)
	c.queue(m)
	c.companions(m)
	c.checkUnusedSource(m, named(entries, "sources"))
	if e := named(entries, "nav"); e != nil {
		c.nav(m, e.value)
	}
	return m
}

func (c *checker) roles(m *Mapping, n *yaml.Node) {
	for _, e := range c.entries(n, "`sources`", nil) {
		if !roleForm.MatchString(e.key.Value) {
			c.at(e.key, 0, "%q is not a valid source name: use lower-case letters, digits and underscores", e.key.Value)
			continue
		}
		if e.value.Value != "required" && e.value.Value != "optional" {
			c.at(e.value, 0, "a source is `required` or `optional`, and not %q", e.value.Value)
		}
		m.Roles = append(m.Roles, Role{e.key.Value, e.value.Value == "optional"})
	}
	if n.Kind == yaml.MappingNode && (len(m.Roles) == 0 || len(m.Roles) > maxRoles) {
		c.at(n, 0, "`sources` must name between 1 and %d sources", maxRoles)
	}
}

// checkUnusedSource reports a required source that no rule is for. The vault itself may have only its NAV and its name.
func (c *checker) checkUnusedSource(m *Mapping, sources *entry) {
	if c.found > 0 || c.recorded {
		return
	}
	for _, e := range c.entries(sources.value, "`sources`", nil) {
		role, _ := m.Role(e.key.Value)
		read := slices.ContainsFunc(m.rules, func(r rule) bool { return r.role == role })
		if !read && !m.Roles[role].Optional && e.key.Value != "vault" {
			c.at(e.key, 0, "no rule is for the source `%s`: add `source: %s` to those of its events, or make it `optional`",
				e.key.Value, e.key.Value)
		}
	}
}

// Role returns the index of a source.
func (m *Mapping) Role(name string) (uint8, bool) {
	i := slices.IndexFunc(m.Roles, func(r Role) bool { return r.Name == name })
	return uint8(max(i, 0)), i >= 0
}

// source returns the source of a rule: the one that it names, or `vault`.
func (c *checker) source(m *Mapping, entries []entry, on *yaml.Node) uint8 {
	name, node := "vault", on
	if e := named(entries, "source"); e != nil {
		name, node = e.value.Value, e.value
	}
	role, ok := m.Role(name)
	if !ok && len(m.Roles) > 0 {
		c.at(node, 0, "the rule is for the source `%s`, which is not in `sources`", name)
	}
	return role
}

func (c *checker) on(entries []entry, n *yaml.Node) (*signature, *yaml.Node) {
	on := named(entries, "on")
	if on == nil {
		c.at(n, 0, "the key `on` is missing: it is the event's declaration in Solidity")
		return nil, n
	}
	text, ok := c.word(on.value, "`on`")
	if !ok {
		return nil, on.value
	}
	of, at, err := parseSignature(text)
	if err != nil {
		c.at(on.value, at, "%v", err)
		return nil, on.value
	}
	return of, on.value
}

func (c *checker) rule(m *Mapping, n *yaml.Node) {
	entries := c.entries(n, "a rule", []string{"on", "source", "when", "emit", "set", "with"})
	if n.Kind != yaml.MappingNode {
		return
	}
	of, on := c.on(entries, n)
	if of == nil {
		return // nothing else in the rule can be checked without its parameters
	}
	r := rule{node: on, of: of, role: c.source(m, entries, on)}
	if e := named(entries, "when"); e != nil {
		r.when = c.when(e.value, of)
	}
	with := named(entries, "with")
	if with != nil {
		r.with = c.with(m, with.value, &r)
	}
	set := named(entries, "set")
	emit := named(entries, "emit")
	switch {
	case emit == nil:
		c.at(n, 0, "the key `emit` is missing: it is an effect, a list of effects, or none")
	case emit.value.Kind == yaml.SequenceNode:
		if set != nil {
			c.at(set.key, 0,
				"`set` belongs to one effect: in a list, each effect has its fields, as in `- {priced: {side: redeem}}`")
		}
		if with != nil {
			c.at(with.key, 0, "`with` completes one effect, and `emit` is a list")
		}
		if len(emit.value.Content) == 0 || len(emit.value.Content) > int(kindCount) {
			c.at(emit.value, 0, "a list of effects has between 1 and %d", kindCount)
			break
		}
		for _, item := range emit.value.Content {
			fields := c.entries(item, "an effect in a list", nil)
			if item.Kind != yaml.MappingNode {
				continue
			}
			if len(fields) != 1 {
				c.at(item, 0, "an effect in a list is one name with its fields, as in `- {priced: {side: redeem}}`")
				continue
			}
			c.emission(&r, fields[0].key, fields[0].value)
		}
	default:
		name, ok := c.word(emit.value, "`emit`")
		if !ok {
			break
		}
		if name == "none" {
			if set != nil {
				c.at(set.key, 0, "`emit` is none, so nothing can be set")
			}
			if with != nil {
				c.at(with.key, 0, "`emit` is none, so no other log can complete it")
			}
			break
		}
		var fields *yaml.Node
		if set != nil {
			fields = set.value
		}
		c.emission(&r, emit.value, fields)
	}
	if with != nil && r.with == nil {
		return // its mistakes are reported, and some fields of the effect are unknown
	}
	if len(r.effects) > 0 && slices.Contains(reserved, of.Name) && !c.recorded {
		c.at(on, 0, "an event with the name `%s` can only have `emit: none`: the API uses the names %s itself", of.Name,
			series(reserved, "and"))
	}
	r.event = addEvent(&m.events, of.Event)
	m.rules = append(m.rules, r)
}

// reserved are names that an event with an effect cannot have, because the API names it by its kind. The event
// stream has the events `retracted` and `unit`, a browser's EventSource dispatches `error` and `open` itself, and a
// log that no rule names is counted as Unknown.
var reserved = []string{"Unknown", "error", "open", "retracted", "unit"}

// with parses a companion; nil if there is a mistake. Its fields are parsed with those of the effect.
func (c *checker) with(m *Mapping, n *yaml.Node, primary *rule) *companion {
	before := c.found
	entries := c.entries(n, "`with`", []string{"on", "source", "match", "set"})
	if n.Kind != yaml.MappingNode {
		return nil
	}
	of, on := c.on(entries, n)
	for _, required := range []string{"match", "set"} {
		if named(entries, required) == nil {
			c.at(n, 0, "the key `%s` is missing in `with`", required)
		}
	}
	if of == nil || c.found > before {
		return nil
	}
	w := &companion{role: c.source(m, entries, on), of: of, set: named(entries, "set").value}
	match := named(entries, "match").value
	for _, e := range c.entries(match, "`match`", nil) {
		cond, _ := c.equality(e, of, primary.of)
		w.match = append(w.match, cond)
	}
	if match.Kind == yaml.MappingNode && (len(w.match) == 0 || len(w.match) > maxMatch) {
		c.at(match, 0, "`match` must compare between 1 and %d parameters", maxMatch)
	}
	if of.Topic == primary.of.Topic && w.role == primary.role {
		c.at(on, 0, "a companion is a log of another event or source, and this is the rule's own")
	}
	if c.found > before {
		return nil
	}
	return w
}

// companions adds the events of companions that no rule claims: they are known, but have no separate effect.
func (c *checker) companions(m *Mapping) {
	for _, r := range slices.Clone(m.rules) {
		w := r.with
		if w == nil {
			continue
		}
		claimed := slices.ContainsFunc(m.rules, func(other rule) bool {
			return other.role == w.role && other.of.Topic == w.of.Topic && other.of.topics == w.of.topics
		})
		if !claimed {
			m.rules = append(m.rules, rule{node: r.node, of: w.of, role: w.role, event: addEvent(&m.events, w.of.Event)})
		}
	}
}

// emission parses an effect with its fields, and with those of the rule's companion.
func (c *checker) emission(r *rule, name, fields *yaml.Node) {
	kind := kindOf(name.Value)
	switch {
	case kind == Sample:
		c.at(name, 0, "`sample` is measured by ingest and has no log, so no rule emits it")
		return
	case kind == 0 && name.Value == "none":
		c.at(name, 0, "`none` cannot be in a list")
		return
	case kind == 0:
		var all []string
		for k := Deposit; k < Sample; k++ {
			all = append(all, k.String())
		}
		c.at(name, 0, "unknown effect `%s`; the effects are %s, or none", name.Value, series(all, "and"))
		return
	}
	e := emission{kind: kind}
	good := true
	if fields != nil {
		before := c.found
		e.sets, e.side = c.sets(fields, r.of, kind)
		good = c.found == before
	}
	e.has = assignedFields(e.sets, e.side)
	all, sets := e.has, e.sets
	if r.with != nil {
		before := c.found
		var side Side
		r.with.sets, side = c.sets(r.with.set, r.with.of, kind)
		good = good && c.found == before
		r.with.has = assignedFields(r.with.sets, side)
		all |= r.with.has
		sets = slices.Concat(sets, r.with.sets)
		if side != 0 {
			c.at(r.with.set, 0, "`side` is set by the rule itself")
		}
		for _, s := range r.with.sets {
			if e.has&s.field.field != 0 {
				c.at(r.with.set, 0, "`%s` is set by the rule and by its companion", s.field.name)
			}
		}
		r.with.needed = !satisfied(kind, e.has)
	}
	if kind == Priced {
		c.pricedGroups(name, sets)
	}
	if good && !satisfied(kind, all) {
		var needs []string
		for _, need := range effects[kind].needs {
			needs = append(needs, effects[kind].names(need, "and"))
		}
		c.at(name, 0, "`%s` needs %s", kind, strings.Join(needs, ", or "))
	}
	for _, group := range effects[kind].atMostOne {
		if both := all & group; both&(both-1) != 0 {
			c.at(name, 0, "`%s` cannot have %s at the same time", kind, effects[kind].names(both, "and"))
		}
	}
	if !c.recorded {
		c.ineffective(r, &e, name, all)
	}
	r.effects = append(r.effects, e)
}

// ineffective reports an effect of a rule, with the fields all, of which the read models would ignore a part.
func (c *checker) ineffective(r *rule, e *emission, name *yaml.Node, all Fields) {
	ignored := all & (Owner | Assets | Shares)
	switch {
	case all&(Partner|Attribution) != 0 && len(r.effects) > 0 && r.names() != 0: // a list has no companion
		c.at(name, 0, "only one effect of a rule can name a partner: a log is one event for partners")
	case e.kind == Funded && all&(To|GroupTo) != 0 && ignored&Owner != 0:
		c.at(name, 0, "`funded` with %s applies to the requests of all owners, so it cannot have an `owner`",
			effects[Funded].names(all&(To|GroupTo), "and"))
	case e.kind == Funded && all&(To|GroupTo) != 0 && ignored != 0:
		c.at(name, 0, "`funded` with %s applies to many requests, so it cannot have %s: emit totals as `priced` before it, "+
			"or as `settled`", effects[Funded].names(all&(To|GroupTo), "and"), effects[Funded].names(ignored, "and"))
	case e.kind == Priced && e.side == RedeemSide &&
		slices.ContainsFunc(r.effects, func(e emission) bool { return e.kind == Funded }):
		c.at(name, 0, "`priced` comes before `funded`: a request is paid by the price that it has when it is funded")
	}
}

func satisfied(kind Kind, fields Fields) bool {
	return slices.ContainsFunc(effects[kind].needs, func(need Fields) bool { return fields&need == need })
}

func assignedFields(sets []assignment, side Side) (out Fields) {
	for _, s := range sets {
		out |= s.field.field
	}
	if side != 0 {
		out |= SideField
	}
	return out
}

// sets parses the fields of an effect.
func (c *checker) sets(n *yaml.Node, of *signature, kind Kind) (out []assignment, side Side) {
	var known []string
	for _, f := range effects[kind].fields {
		known = append(known, f.name)
	}
	for _, e := range c.entries(n, "the fields of `"+kind.String()+"`", nil) {
		f, ok := effects[kind].field(e.key.Value)
		if !ok {
			c.at(e.key, 0, "unknown field `%s`: `%s` has %s", e.key.Value, kind, series(known, "and"))
			continue
		}
		if f.form == formSide {
			switch e.value.Value {
			case "deposit":
				side = DepositSide
			case "redeem":
				side = RedeemSide
			default:
				c.at(e.value, 0, "`side` is deposit or redeem, and not %q", e.value.Value)
			}
			continue
		}
		v, ok := c.expression(e.value, of)
		if !ok {
			continue
		}
		if err := assignable(f, v); err != nil {
			c.at(e.value, 0, "`%s` must be %s, and %q is %v", f.name, formNames[f.form], e.value.Value, err)
			continue
		}
		out = append(out, assignment{f, v})
	}
	return out, side
}

// pricedGroups checks that an effect `priced` names its groups in one way only: `up_to_group` and `to_group` are the
// same field of the effect, which means the former if there is no `group`.
func (c *checker) pricedGroups(n *yaml.Node, sets []assignment) {
	has := map[string]bool{}
	for _, s := range sets {
		has[s.field.name] = true
	}
	if has["up_to_group"] && (has["group"] || has["to_group"]) || has["to_group"] && !has["group"] {
		c.at(n, 0, "`priced` is about a `group`, the groups from `group` to `to_group`, or everything `up_to_group`")
	}
}

// assignable returns the reason why a value cannot be assigned to a field; nil if it can.
func assignable(f field, v value) error {
	switch f.form {
	case formNumber, formAmount, formSigned:
		if !v.numeric() {
			return fmt.Errorf("of the type %s", v.typ.text)
		}
		if limit := f.bits(); v.constant != nil && v.typ.bits > limit {
			return fmt.Errorf("a number of %d bits, with room for %d", v.typ.bits, limit)
		}
	case formAddress:
		if v.typ.base != baseAddress {
			return fmt.Errorf("of the type %s", v.typ.text)
		}
	case formWord:
		if v.parameter == nil {
			return errors.New("no parameter")
		}
	}
	return nil
}

func (f *field) bits() int {
	switch {
	case f.form == formAmount || f.form == formSigned:
		return amountBits
	case f.field == Partner:
		return 32
	}
	return 64
}

func (c *checker) when(n *yaml.Node, of *signature) (out []condition) {
	for _, e := range c.entries(n, "`when`", nil) {
		if cond, ok := c.equality(e, of, of); ok {
			out = append(out, cond)
		}
	}
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		c.at(n, 0, "`when` must name a parameter and its value")
	}
	return out
}

// equality parses one `parameter: value`: a parameter of the event left, and a literal or a parameter of right.
func (c *checker) equality(e entry, left, right *signature) (condition, bool) {
	name := *e.key
	name.Value, name.Style = "$"+e.key.Value, yaml.LiteralStyle
	p, ok := c.expression(&name, left)
	if !ok {
		return condition{}, false
	}
	if p.parameter == nil {
		c.at(e.key, 0, "`%s` is not a parameter of %s", e.key.Value, left.Name)
		return condition{}, false
	}
	v, ok := c.expression(e.value, right)
	switch {
	case !ok:
	case v.parameter != nil:
		if !comparable(p.typ, v.typ) {
			c.at(e.value, 0, "`%s` is of the type %s and cannot be compared with the type %s",
				e.key.Value, p.typ.text, v.typ.text)
			return condition{}, false
		}
		return condition{parameter: p.parameter, other: v.parameter}, true
	case v.constant != nil:
		word, err := wordFor(v, e.value.Value, p.typ)
		if err != nil {
			c.at(e.value, 0, "`%s` is compared with a value of its own type: %v", e.key.Value, err)
			return condition{}, false
		}
		return condition{parameter: p.parameter, word: word}, true
	default:
		c.at(e.value, 0, "`%s` can only be compared with a parameter or a literal", e.key.Value)
	}
	return condition{}, false
}

// shadowed reports rules that match no log, because an earlier rule claims every log that they could match.
func (c *checker) shadowed(m *Mapping) {
	for i := range m.rules {
		for j := range i {
			a, b := &m.rules[j], &m.rules[i]
			if a.role != b.role || a.of.Topic != b.of.Topic || a.of.topics != b.of.topics {
				continue
			}
			if !slices.ContainsFunc(a.when, func(x condition) bool { return !slices.ContainsFunc(b.when, x.same) }) {
				c.at(b.node, 0, "the rule of line %d claims every log that this rule could", a.node.Line)
				break
			}
		}
	}
}

func (a condition) same(b condition) bool {
	if a.parameter.place != b.parameter.place || a.word != b.word || (a.other == nil) != (b.other == nil) {
		return false
	}
	return a.other == nil || a.other.place == b.other.place
}

func (c *checker) nav(m *Mapping, n *yaml.Node) {
	entries := c.entries(n, "`nav`", []string{"from", "sample", "every"})
	from, sample, every := named(entries, "from"), named(entries, "sample"), named(entries, "every")
	switch {
	case n.Kind != yaml.MappingNode:
	case from != nil && sample != nil:
		c.at(sample.key, 0, "`nav` comes `from: valuation` or is sampled, and not both")
	case from != nil:
		c.navFrom(m, from.value)
	case len(n.Content) == 0:
		c.at(n, 0, "`nav` is `{from: valuation}` or `{sample: %s, every: 300}`", ConvertToAssets)
	}
	if sample != nil {
		c.sampled(m, sample, every)
	} else if every != nil {
		c.at(every.key, 0, "`every` says how often NAV is sampled, and `sample` is missing")
	}
}

func (c *checker) navFrom(m *Mapping, n *yaml.Node) {
	if n.Value != "valuation" {
		c.at(n, 0, "`nav` can only come `from: valuation`, and not from %q", n.Value)
		return
	}
	if !m.emits(Valuation) && c.found == 0 {
		c.at(n, 0, "`nav` comes from valuations, and no rule emits one")
	}
}

func (c *checker) sampled(m *Mapping, sample, every *entry) {
	before := c.found
	if sample.value.Value != ConvertToAssets {
		c.at(sample.value, 0, "`sample` is the function %s of the source `vault`, and not %q", ConvertToAssets,
			sample.value.Value)
	}
	if _, ok := m.Role("vault"); !ok && len(m.Roles) > 0 {
		c.at(sample.key, 0, "`sample` calls the source `vault`, which is not in `sources`")
	}
	if every == nil {
		c.at(sample.key, 0, "the key `every` is missing in `nav`: it is the number of blocks between two samples")
		return
	}
	blocks, err := strconv.ParseUint(every.value.Value, 10, 32)
	if err != nil || blocks == 0 || every.value.Kind != yaml.ScalarNode {
		c.at(every.value, 0, "`every` is a number of blocks from 1 to 4294967295, and not %q", every.value.Value)
	}
	if c.found == before {
		m.SampleEvery = blocks
	}
}

package mapping

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// Log is a log of a vault's source, as on the chain.
type Log struct {
	// Role is the index of the source that emitted it, in a Mapping's Roles.
	Role uint8
	// Place is block<<24 | log index: an id that is unique on a chain, in the order of the chain.
	Place uint64
	// Time is the block's time in Unix seconds.
	Time   uint64
	Topics []common.Hash
	Data   []byte
}

// placeBits is the number of bits of a place that count the logs of a block. No block has 2^24 logs, because each costs
// gas.
const placeBits = 24

// Place returns the place of a log.
func Place(block uint64, index uint32) uint64 {
	return block<<placeBits | uint64(index)&(1<<placeBits-1)
}

// Block returns the block of the log's place.
func (l *Log) Block() uint64 { return l.Place >> placeBits }

// Fault is the reason why a log is quarantined.
type Fault struct {
	// Log is the index of the log in the input of Map.
	Log   int
	Event *Event
	Why   string
	// Missing is the companion that the effect needs and the transaction lacks; nil if it lacks none.
	Missing *Event
	// Large is set if the layout of the log is right, and only a number is too large.
	Large *Large
}

// Large is the effect of a log with a number that is too large to be counted: amounts have all their digits, and
// numbers of more than 64 bits are in Numbers.
type Large struct {
	Effect  Effect
	Numbers map[Fields]Amount
}

// Error returns "Event: reason".
func (f *Fault) Error() string { return f.Event.Name + ": " + f.Why }

// Quarantine is the error of Map: the logs that cannot be counted, in order.
type Quarantine []*Fault

// Error returns one line for each log.
func (q Quarantine) Error() string {
	lines := make([]string, len(q))
	for i, f := range q {
		lines[i] = fmt.Sprintf("log %d: %v", f.Log, f)
	}
	return strings.Join(lines, "\n")
}

// Vault has the compiled mappings of a vault, each for a range of blocks. It never changes, so it is safe for
// concurrent use.
type Vault struct {
	events []*Event
	spans  []span
	// companions are the companions of all rules.
	companions []*compiledWith
	// aliases are the attribution values that name a partner.
	aliases map[common.Hash]uint32
	// navDigits are the NavDigits of valuations, 0 if the decimals of the shares and of the asset allow none.
	navDigits uint8
}

// span is a mapping with its range of blocks, both ends included.
type span struct {
	from, to uint64
	// roles has the events of each source.
	roles []table
}

// known is an event of the mapping, with its rules by the number of topics.
type known struct {
	event *Event
	rules [maxTopics + 1][]compiled
	// counts is set if one of its rules has an effect: then a log with another number of topics is quarantined.
	counts bool
	// names is set if one of its rules can name a partner, by id or by attribution.
	names bool
}

type compiled struct {
	event   *Event
	of      *signature
	when    []condition
	checks  []check
	effects []program
	with    *compiledWith
}

type program struct {
	kind  Kind
	side  Side
	has   Fields
	steps []step
	// groupIsKey makes the key of a request its group, because the mapping funds requests up to a key.
	groupIsKey bool
	// navDigits are the NavDigits of a valuation, 0 if the vault has none.
	navDigits uint8
}

type compiledWith struct {
	index  int // in Vault.companions, -1 if the vault does not have its source
	source int // index of the source that emits it, -1 if the vault does not have it
	of     *signature
	match  []condition
	checks []check
	steps  []step
	needed bool
}

// check is a parameter shorter than a word that no step reads: its word must be a valid value of its type.
type check struct {
	place
	base base
	bits int
	why  string
}

// place is the position of a word in a log.
type place struct {
	topic bool
	at    int
}

// word returns the word; the caller has checked that the log has it.
func (p *place) word(l *Log) *[32]byte {
	if p.topic {
		return (*[32]byte)(&l.Topics[p.at])
	}
	return (*[32]byte)(l.Data[32*p.at:])
}

// op is the operation with which a step computes a field.
type op uint8

const (
	opAmount  op = iota // an unsigned parameter that is an amount
	opNumber            // an unsigned parameter of at most 64 bits
	opAddress           // a parameter that is an address
	opWord              // a parameter as emitted
	opCompute           // an expression
	opFixed             // a literal address
)

type step struct {
	op op
	place
	field  Fields
	bits   int // of the field, or of the parameter's type if that is shorter
	signed bool
	number number
	fixed  common.Address
	why    string
	// wide is set if the parameter's type has values that are too large for the field; name is the parameter's name.
	wide bool
	name string
}

// Compile compiles a mapping for all blocks. A Log's Role is an index into the mapping's Roles.
func (m *Mapping) Compile() *Vault {
	d := Description{Ranges: []Range{{To: math.MaxUint64, Mapping: m}}}
	for _, r := range m.Roles {
		d.Sources = append(d.Sources, Source{Role: r.Name})
	}
	return d.Compile()
}

// add compiles a mapping for a range of blocks. sources are the names of the vault's sources: rules for other sources
// match no log.
func (v *Vault) add(m *Mapping, from, to uint64, sources []string) {
	of := make([]map[common.Hash]*known, len(sources))
	for i := range of {
		of[i] = map[common.Hash]*known{}
	}
	source := func(role uint8) int { return slices.Index(sources, m.Roles[role].Name) }
	for i := range m.rules {
		r := &m.rules[i]
		event := addEvent(&v.events, *r.event)
		at := source(r.role)
		if at < 0 {
			continue
		}
		k := of[at][r.of.Topic]
		if k == nil {
			k = &known{event: event}
			of[at][r.of.Topic] = k
		}
		k.counts = k.counts || len(r.effects) > 0
		k.names = k.names || r.names() != 0
		c := compileRule(r, event)
		for i := range c.effects {
			switch p := &c.effects[i]; p.kind {
			case Requested:
				p.has |= m.queue.has
				p.groupIsKey = m.queue.groupIsKey
			case Valuation:
				p.navDigits = v.navDigits
			}
		}
		if w := c.with; w != nil {
			w.index, w.source = -1, source(r.with.role)
			switch {
			case w.source >= 0:
				w.index = len(v.companions)
				v.companions = append(v.companions, w)
			case !w.needed:
				c.with = nil
			}
		}
		k.rules[r.of.topics] = append(k.rules[r.of.topics], c)
	}
	s := span{from: from, to: to, roles: make([]table, len(of))}
	for i := range of {
		s.roles[i] = newTable(of[i])
	}
	v.spans = append(v.spans, s)
}

// table finds events by their first topic. A topic is a hash already, so its own bits select the slot: a map, which
// hashes it again, takes half of the time of mapping a log. A table is at most half full, so every search ends at an
// empty slot.
type table []slot

type slot struct {
	topic common.Hash
	known *known
}

func newTable(of map[common.Hash]*known) table {
	size := 2
	for size < 2*len(of) {
		size *= 2
	}
	t := make(table, size)
	for topic, k := range of {
		i := t.first(&topic)
		for t[i].known != nil {
			i = (i + 1) & (len(t) - 1)
		}
		t[i] = slot{topic, k}
	}
	return t
}

// first returns the slot at which the search for a topic begins.
func (t table) first(topic *common.Hash) int {
	return int(binary.LittleEndian.Uint64(topic[:])) & (len(t) - 1)
}

func (t table) find(topic *common.Hash) *known {
	for i := t.first(topic); ; i = (i + 1) & (len(t) - 1) {
		if s := &t[i]; s.known == nil || s.topic == *topic {
			return s.known
		}
	}
}

func compileRule(r *rule, event *Event) compiled {
	out := compiled{event: event, of: r.of, when: r.when}
	var read []assignment
	for _, e := range r.effects {
		p := program{kind: e.kind, side: e.side, has: e.has, steps: steps(e.sets)}
		out.effects = append(out.effects, p)
		read = append(read, e.sets...)
	}
	if len(r.effects) > 0 {
		out.checks = checks(r.of, read)
	}
	if w := r.with; w != nil {
		out.with = &compiledWith{of: w.of, match: w.match, checks: checks(w.of, w.sets), steps: steps(w.sets),
			needed: w.needed}
	}
	return out
}

// checks returns the parameters shorter than a word that no assignment checks. Of the members of structs, those that no
// expression reads are not checked either.
func checks(of *signature, read []assignment) (out []check) {
	for i := range of.parameters {
		p := &of.parameters[i]
		checked := slices.ContainsFunc(read, func(a assignment) bool { return a.value.parameter == p && a.step().checks() })
		if p.typ.base != baseOther && p.typ.bits < 256 && !p.unread && !checked {
			out = append(out, check{place: p.place, base: p.typ.base, bits: p.typ.bits,
				why: fmt.Sprintf("the word of `%s` is not a valid %s", p.name, p.typ.text)})
		}
	}
	return out
}

// checks reports whether the step itself rejects a word that is not a valid value of its type.
func (s step) checks() bool { return s.op == opAmount || s.op == opNumber || s.op == opAddress }

func steps(sets []assignment) []step {
	out := make([]step, len(sets))
	for i := range sets {
		out[i] = sets[i].step()
	}
	return out
}

func (a *assignment) step() step {
	s := step{field: a.field.field, number: a.value.number, op: opCompute}
	p := a.value.parameter
	if p != nil {
		s.place = p.place
	}
	switch a.field.form {
	case formAddress:
		if s.op = opAddress; p == nil {
			s.op, s.fixed = opFixed, common.BytesToAddress(a.value.constant[:])
		}
		s.why = fmt.Sprintf("`%s` is not an address", a.field.name)
		return s
	case formWord:
		s.op = opWord
		return s
	}
	s.bits, s.signed = a.field.bits(), a.field.form == formSigned
	s.why = fmt.Sprintf("`%s` has more than %d bits", a.field.name, s.bits)
	if p == nil || p.typ.base != baseUint {
		s.why = fmt.Sprintf("`%s` has more than %d bits, is negative, or cannot be computed", a.field.name, s.bits)
		return s
	}
	if s.wide, s.name = p.typ.bits > s.bits, p.name; !s.wide {
		s.bits, s.why = p.typ.bits, fmt.Sprintf("the word of `%s` is not a valid %s", p.name, p.typ.text)
	}
	if s.op = opNumber; a.field.form != formNumber {
		s.op = opAmount
	}
	return s
}

// Event returns the event that a log announces; nil if the mapping does not know it.
func (v *Vault) Event(l *Log) *Event {
	if k := v.known(l); k != nil {
		return k.event
	}
	return nil
}

// Declares reports whether a rule declares the event of a log with its number of topics and its length of data. Without
// that, a log whose rules have no effect is not quarantined, and it completes no other log.
func (v *Vault) Declares(l *Log) bool {
	k := v.known(l)
	return k != nil && len(l.Topics) <= maxTopics &&
		slices.ContainsFunc(k.rules[len(l.Topics)], func(r compiled) bool { return r.of.laidOut(len(l.Data)) })
}

// Events returns the vault's events, by their numbers.
func (v *Vault) Events() []*Event { return v.events }

func (v *Vault) known(l *Log) *known {
	if len(l.Topics) == 0 {
		return nil
	}
	for i := range v.spans {
		s := &v.spans[i]
		if block := l.Block(); block >= s.from && block <= s.to && int(l.Role) < len(s.roles) {
			return s.roles[l.Role].find(&l.Topics[0])
		}
	}
	return nil
}

// Map appends the effects of the logs of one transaction to out, in order. It is pure, and keeps no reference to its
// arguments. The error is a Quarantine: those logs have no effect, and the effects of the others are returned.
func (v *Vault) Map(tx []Log, out []Effect) ([]Effect, error) {
	var quarantine Quarantine
	t := transaction{v: v, logs: tx}
	for i := range tx {
		var fault *Fault
		if _, out, fault = v.one(&tx[i], i, &t, out); fault != nil {
			quarantine = append(quarantine, fault)
		}
	}
	if quarantine != nil {
		return out, quarantine
	}
	return out, nil
}

// One maps a transaction with a single log. It returns the event that the log announces, nil if the mapping does not
// know it. If the log is quarantined, it returns the fault, and out is unchanged.
func (v *Vault) One(l *Log, out []Effect) (*Event, []Effect, *Fault) {
	return v.one(l, 0, nil, out)
}

// one is One for the log with an index of a transaction; tx is nil if the other logs are not known.
func (v *Vault) one(l *Log, index int, tx *transaction, out []Effect) (*Event, []Effect, *Fault) {
	k := v.known(l)
	if k == nil {
		return nil, out, nil
	}
	r, fault := k.rule(l, index)
	if r == nil || fault != nil {
		return k.event, out, fault
	}
	var companion *Log
	if r.with != nil && tx != nil {
		companion = tx.companion(r.with, l)
	}
	before := len(out)
	if out, fault = r.run(l, companion, index, out); v.aliases != nil {
		v.resolve(out[before:], fault)
	}
	return k.event, out, fault
}

// transaction is the logs of one transaction, and their companions once they are needed.
type transaction struct {
	v     *Vault
	logs  []Log
	found map[companionKey][]int
	taken map[int]bool // logs that complete another one
}

// companionKey is the data that a log and its companion share.
type companionKey struct {
	with  int
	words [maxMatch]common.Hash
}

// companion returns the log that completes another one: the first match that has not completed a log yet. A transaction
// with thousands of logs is indexed once, so it costs no more per log than a small one.
func (t *transaction) companion(w *compiledWith, l *Log) *Log {
	if t.found == nil {
		t.found, t.taken = map[companionKey][]int{}, map[int]bool{}
		for i := range t.logs {
			c := &t.logs[i]
			for _, w := range t.v.companions {
				if int(c.Role) != w.source || len(c.Topics) != w.of.topics || c.Topics[0] != w.of.Topic ||
					!w.of.laidOut(len(c.Data)) || broken(w.checks, c) != nil {
					continue
				}
				key := companionKey{with: w.index}
				for n, m := range w.match {
					key.words[n] = *m.parameter.word(c)
				}
				t.found[key] = append(t.found[key], i)
			}
		}
	}
	key := companionKey{with: w.index}
	for n, m := range w.match {
		key.words[n] = *m.want(l)
	}
	for left := t.found[key]; len(left) > 0; left = left[1:] {
		t.found[key] = left[1:]
		if at := left[0]; !t.taken[at] { // by another rule with the same companion
			t.taken[at] = true
			return &t.logs[at]
		}
	}
	return nil
}

// laidOut reports whether the length of a log's data fits the event.
func (s *signature) laidOut(length int) bool {
	return length == 32*s.words || s.dynamic && length > 32*s.words
}

// rule returns the rule that claims a log; nil if there is none.
func (k *known) rule(l *Log, index int) (*compiled, *Fault) {
	var rules []compiled
	if len(l.Topics) <= maxTopics {
		rules = k.rules[len(l.Topics)]
	}
	if rules == nil {
		if k.counts {
			return nil, &Fault{Log: index, Event: k.event, Why: fmt.Sprintf(
				"the log has %d topics, and no rule declares the event with %d indexed parameters", len(l.Topics), len(l.Topics)-1)}
		}
		return nil, nil
	}
	var fault *Fault
	for i := range rules {
		r := &rules[i]
		if !r.of.laidOut(len(l.Data)) {
			if r.effects != nil && fault == nil {
				fault = &Fault{Log: index, Event: k.event,
					Why: fmt.Sprintf("%d bytes of data instead of %d", len(l.Data), 32*r.of.words)}
			}
			continue
		}
		if r.claims(l) {
			return r, nil
		}
	}
	return nil, fault
}

func (r *compiled) claims(l *Log) bool {
	for i := range r.when {
		if c := &r.when[i]; *c.parameter.word(l) != *c.want(l) {
			return false
		}
	}
	return true
}

// want returns the word that the condition's parameter must have. l is the log that has other.
func (c *condition) want(l *Log) *[32]byte {
	if c.other != nil {
		return c.other.word(l)
	}
	return (*[32]byte)(&c.word)
}

// run appends the effects of a log whose lengths were checked.
func (r *compiled) run(l, companion *Log, index int, out []Effect) ([]Effect, *Fault) {
	before := len(out)
	if c := broken(r.checks, l); c != nil {
		return out, &Fault{Log: index, Event: r.event, Why: c.why}
	}
	for i := range r.effects {
		p := &r.effects[i]
		out = append(out, Effect{})
		e := &out[len(out)-1]
		e.Kind, e.Side, e.Log, e.Sub, e.Has = p.kind, p.side, uint32(index), uint32(len(out)-1-before), p.has
		e.NavDigits = p.navDigits
		if s := e.run(p.steps, l); s != nil {
			return out[:before], r.uncounted(l, companion, index, s.reason(l))
		}
		if p.groupIsKey {
			e.Group, e.Has = e.ID, e.Has|Group
		}
		if companion == nil && r.with != nil && r.with.needed {
			return out[:before], &Fault{Log: index, Event: r.event, Missing: &r.with.of.Event,
				Why: "the transaction has no companion for it: " + r.with.of.Name}
		}
		if why := r.with.complete(e, companion); why != "" {
			return out[:before], r.uncounted(l, companion, index, why)
		}
		if why := e.wrongGroups(); why != "" {
			return out[:before], &Fault{Log: index, Event: r.event, Why: why}
		}
		if e.changesNothing() {
			out = out[:len(out)-1]
		}
	}
	return out, nil
}

// complete sets the fields of an effect by its companion, nil if the transaction has none. It returns the reason why
// the effect cannot be counted, empty if it can.
func (w *compiledWith) complete(e *Effect, companion *Log) (why string) {
	if companion == nil {
		return ""
	}
	for i := range w.steps {
		e.Has |= w.steps[i].field
	}
	if s := e.run(w.steps, companion); s != nil {
		return w.of.Name + ": " + s.reason(companion)
	}
	return ""
}

// wrongGroups returns the reason why the effect prices no groups, or more than one log can price; empty otherwise.
func (e *Effect) wrongGroups() string {
	if e.Kind == Priced && e.Present(Group|GroupTo) && (e.GroupTo < e.Group || e.GroupTo-e.Group >= maxGroups) {
		return fmt.Sprintf("it prices the groups %d to %d: one log can price 1 to %d groups", e.Group, e.GroupTo, maxGroups)
	}
	return ""
}

// changesNothing reports whether the effect changes no book: it requests no shares from a queue that is claimed first
// in, first out, where such a request has no place. Or it is a valuation that lacks an amount, and the decimals of the
// vault do not allow to derive it.
func (e *Effect) changesNothing() bool {
	switch e.Kind {
	case Requested:
		return e.Present(Fifo) && e.Shares.IsZero()
	case Valuation:
		return e.NavDigits == 0 && !e.Present(Nav|Assets|Shares)
	}
	return false
}

// run sets the fields of an effect by steps. It returns the step whose value cannot be counted, nil if there is none.
func (e *Effect) run(steps []step, l *Log) *step {
	for i := range steps {
		s := &steps[i]
		switch s.op {
		case opAmount:
			z := e.amount(s.field)
			if z.SetBytes32(s.word(l)[:]); z.BitLen() > s.bits {
				return s
			}
		case opNumber:
			w := s.word(l)
			v := binary.BigEndian.Uint64(w[24:])
			if binary.BigEndian.Uint64(w[:])|binary.BigEndian.Uint64(w[8:])|binary.BigEndian.Uint64(w[16:]) != 0 ||
				s.bits < 64 && v>>s.bits != 0 {
				return s
			}
			e.setNumber(s.field, v)
		case opAddress:
			w := s.word(l)
			if binary.BigEndian.Uint64(w[:])|uint64(binary.BigEndian.Uint32(w[8:])) != 0 {
				return s
			}
			*e.address(s.field) = common.Address(w[12:])
		case opWord:
			w := common.Hash(*s.word(l))
			if s.field == SourceID {
				e.SourceID = w
			} else if e.Attribution = w; w == (common.Hash{}) {
				e.Has &^= Attribution // no partner is named
			}
		case opFixed:
			*e.address(s.field) = s.fixed
		case opCompute:
			v, ok := s.number(l)
			if !ok || v.Sign() < 0 && !s.signed || !fits(&v, s.bits, s.signed) {
				return s
			}
			if s.field&(Assets|Shares|Nav) != 0 {
				*e.amount(s.field) = v
			} else {
				e.setNumber(s.field, v.Uint64())
			}
		}
	}
	return nil
}

func (s *step) reason(l *Log) string {
	if !s.wide {
		return s.why
	}
	var v Amount
	v.SetBytes32(s.word(l)[:])
	if s.op == opAmount {
		return fmt.Sprintf("%s is %s, and an amount of 2^191 or more cannot be summed", s.name, v.Dec())
	}
	return fmt.Sprintf("%s is %s, and the read models hold %d bits of it", s.name, v.Dec(), s.bits)
}

// uncounted returns the fault of a log with a value that cannot be counted. Large is not set for a log with several
// effects.
func (r *compiled) uncounted(l, companion *Log, index int, why string) *Fault {
	fault := &Fault{Log: index, Event: r.event, Why: why}
	if len(r.effects) > 1 {
		return fault
	}
	p := &r.effects[0]
	large := &Large{Effect{Kind: p.kind, Side: p.side, Log: uint32(index), Has: p.has}, map[Fields]Amount{}}
	if !large.run(p.steps, l) {
		return fault
	}
	switch {
	case r.with == nil:
	case companion != nil && !large.run(r.with.steps, companion), companion == nil && r.with.needed:
		return fault
	}
	fault.Large = large
	return fault
}

// run sets the fields of the effect by steps, whatever their size. It returns false if anything else is wrong with the
// log.
func (g *Large) run(steps []step, l *Log) bool {
	for i := range steps {
		s := &steps[i]
		g.Effect.Has |= s.field
		switch wrong := g.Effect.run(steps[i:i+1], l); {
		case wrong == nil:
		case !s.wide:
			return false
		case s.op == opNumber:
			var v Amount
			v.SetBytes32(s.word(l)[:])
			g.Numbers[s.field] = v
		}
	}
	return true
}

func (e *Effect) amount(f Fields) *Amount {
	switch f {
	case Assets:
		return &e.Assets
	case Shares:
		return &e.Shares
	}
	return &e.Nav
}

func (e *Effect) address(f Fields) *common.Address {
	switch f {
	case Owner:
		return &e.Owner
	case Other:
		return &e.Other
	}
	return &e.Asset
}

// number is for the numbers of 64 bits: all but Partner.
func (e *Effect) number(f Fields) *uint64 {
	switch f {
	case ID:
		return &e.ID
	case To:
		return &e.To
	case Group:
		return &e.Group
	case GroupTo:
		return &e.GroupTo
	case Matures:
		return &e.Matures
	case Expires:
		return &e.Expires
	}
	return &e.Count
}

func (e *Effect) setNumber(f Fields, v uint64) {
	if f != Partner {
		*e.number(f) = v
	} else if e.Partner = uint32(v); v == 0 {
		e.Has &^= Partner // no partner is named
	}
}

// broken returns the first check that a log does not pass.
func broken(checks []check, l *Log) *check {
	for i := range checks {
		if c := &checks[i]; !c.valid(c.word(l)) {
			return c
		}
	}
	return nil
}

// valid reports whether a word is valid for its type, as Solidity encodes it.
func (c *check) valid(w *[32]byte) bool {
	switch c.base {
	case baseBytes:
		return empty(w[c.bits/8:])
	case baseInt:
		// The bytes above a signed number repeat its sign.
		var fill byte
		if w[32-c.bits/8]&0x80 != 0 {
			fill = 0xff
		}
		for _, b := range w[:32-c.bits/8] {
			if b != fill {
				return false
			}
		}
		return true
	case baseBool:
		return empty(w[:31]) && w[31] < 2
	}
	return empty(w[:32-c.bits/8])
}

func empty(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

package mapping

import (
	"iter"
	"slices"
)

// Capabilities are what the logs and NAV samples of a vault can report, by its mapping: a protocol without sweeps never
// has one, which is not the same as having none so far.
type Capabilities struct {
	Deposits   bool // users deposit assets
	Sweeps     bool // deposits are moved to a custodian
	Queue      bool // users request withdrawals and wait for them
	Expiry     bool // requests end by themselves
	Partners   bool // deposits or requests name a partner
	NAV        bool // shares have a value
	Settlement bool // requests are funded
}

// Capabilities returns the capabilities of all mappings of the vault, including those for blocks before an upgrade.
func (d *Description) Capabilities() Capabilities {
	return Capabilities{
		Deposits: d.Emits(Deposit), Sweeps: d.Emits(Sweep), Queue: d.Emits(Requested), Settlement: d.Emits(Funded),
		Expiry:   d.Emits(Expired) || d.emitsWith(Requested, Expires),
		Partners: d.emitsWith(Deposit, Partner|Attribution) || d.emitsWith(Requested, Partner|Attribution),
		NAV:      d.Samples() || d.Emits(Valuation),
	}
}

// Kinds returns the names of the events that have an effect, of all mappings of the vault and in their order.
func (d *Description) Kinds() []string {
	out := []string{}
	for _, rule := range d.rules() {
		if len(rule.effects) > 0 && !slices.Contains(out, rule.event.Name) {
			out = append(out, rule.event.Name)
		}
	}
	return out
}

// rules yields the rules of all mappings of the vault for the sources that it has.
func (d *Description) rules() iter.Seq2[*Mapping, *rule] {
	return func(yield func(*Mapping, *rule) bool) {
		for _, r := range d.Ranges {
			for i := range r.Mapping.rules {
				if rule := &r.Mapping.rules[i]; d.has(r.Mapping, rule.role) && !yield(r.Mapping, rule) {
					return
				}
			}
		}
	}
}

// has reports whether the vault has the source of a mapping's role.
func (d *Description) has(m *Mapping, role uint8) bool {
	return slices.ContainsFunc(d.Sources, func(s Source) bool { return s.Role == m.Roles[role].Name })
}

// Single is which numbers of a vault follow from single logs.
type Single struct {
	Deposits bool // deposited amounts: no deposit becomes void
	Claims   bool // paid amounts: each claim has its owner and amount
	Queue    bool // which requests are open and funded: each log about one names it by its number
}

// Single returns which numbers of the vault are sums over logs that do not change each other's values.
func (d *Description) Single() Single {
	out := Single{true, true, true}
	for _, r := range d.Ranges {
		m := r.Mapping
		out.Deposits = out.Deposits && !m.emits(Void)
		out.Claims = out.Claims && !m.lacks(Claimed, Owner) && !m.lacks(Claimed, Assets)
		out.Queue = out.Queue && !m.lacks(Claimed, ID) && !m.lacks(Funded, ID) && !m.lacks(Cancelled, ID) &&
			!m.lacks(Expired, ID)
	}
	return out
}

// FundsEach reports whether a log that names a request by its number shows that it was funded, for every request.
func (d *Description) FundsEach() bool {
	return !slices.ContainsFunc(d.Ranges,
		func(r Range) bool { return !r.Mapping.emits(Funded) || r.Mapping.lacks(Funded, ID) })
}

// MayLack reports whether a log of a block can have an effect of a kind without a field that a rule does not always
// set. The field is zero then, which is not a value.
func (d *Description) MayLack(kind Kind, field Fields, block uint64) bool {
	return slices.ContainsFunc(d.Ranges, func(r Range) bool {
		return r.From <= block && block <= r.To && r.Mapping.lacks(kind, field)
	})
}

// Lacks reports whether, in some block, a log can have an effect of a kind without a field (MayLack): sums over the
// logs of all blocks are then unknown.
func (d *Description) Lacks(kind Kind, field Fields) bool {
	return slices.ContainsFunc(d.Ranges, func(r Range) bool { return r.Mapping.lacks(kind, field) })
}

// Emits reports whether a rule for a source that the vault has emits an effect of a kind.
func (d *Description) Emits(kind Kind) bool { return d.emitsWith(kind, 0) }

// emitsWith is Emits for effects that can have one of some fields; 0: whatever fields they have.
func (d *Description) emitsWith(kind Kind, fields Fields) bool {
	for m, rule := range d.rules() {
		for _, e := range rule.effects {
			has := e.has
			if rule.with != nil && d.has(m, rule.with.role) {
				has |= rule.with.has
			}
			if e.kind == kind && (fields == 0 || has&fields != 0) {
				return true
			}
		}
	}
	return false
}

// Derives reports whether a valuation or a sample of the vault lacks one of some fields (Nav, Assets and Shares), which
// then follows from the others, from earlier logs and from NavDigits.
func (d *Description) Derives(fields Fields) bool {
	return slices.ContainsFunc(d.Ranges, func(r Range) bool {
		return r.Mapping.SampleEvery > 0 && fields != Nav || r.Mapping.lacks(Valuation, fields) // a sample has only Nav
	})
}

package mapping

import "slices"

// Capabilities are what the logs of a vault and the samples of its NAV can say, as its mapping has it: a protocol without
// sweeps never has any, which is not the same as none so far.
type Capabilities struct {
	Deposits   bool // that somebody put assets in
	Sweeps     bool // that deposits left for a custodian
	Queue      bool // that somebody asks for a withdrawal and waits
	Expiry     bool // that a request ends by itself
	Partners   bool // who brought a deposit or request
	NAV        bool // what a share is worth
	Settlement bool // that requests are funded
}

// Capabilities are those of all mappings of the vault: blocks of before an upgrade count too.
func (d *Description) Capabilities() (c Capabilities) {
	c.NAV = d.Samples()
	for _, r := range d.Ranges {
		for i := range r.Mapping.rules {
			rule := &r.Mapping.rules[i]
			if !slices.ContainsFunc(d.Sources, func(s Source) bool { return s.Role == r.Mapping.Roles[rule.role].Name }) {
				continue // of a source that the vault does not have
			}
			for _, e := range rule.effects {
				fields := given(e.sets, e.side)
				if rule.with != nil {
					fields |= given(rule.with.sets, 0)
				}
				c.add(e.kind, fields)
			}
		}
	}
	return c
}

func (c *Capabilities) add(kind Kind, fields Fields) {
	switch kind {
	case Deposit:
		c.Deposits = true
	case Sweep:
		c.Sweeps = true
	case Requested:
		c.Queue = true
	case Funded:
		c.Settlement = true
	case Expired:
		c.Expiry = true
	case Valuation:
		c.NAV = true
	}
	if kind == Requested && fields&Expires != 0 {
		c.Expiry = true
	}
	if (kind == Deposit || kind == Requested) && fields&(Partner|Attribution) != 0 {
		c.Partners = true
	}
}

// Single is which numbers of a vault are what single logs say.
type Single struct {
	Deposits bool // what somebody deposited: no deposit becomes void
	Claims   bool // what somebody was paid: each claim says to whom and how much
	Queue    bool // which requests are open and funded: each log about one names it by its number
}

// Single returns which numbers of the vault are sums over logs of which none changes what another says.
func (d *Description) Single() Single {
	out := Single{true, true, true}
	for _, r := range d.Ranges {
		for i := range r.Mapping.rules {
			for _, e := range r.Mapping.rules[i].effects {
				fields := given(e.sets, e.side)
				switch e.kind {
				case Void:
					out.Deposits = false
				case Claimed:
					out.Claims = out.Claims && fields&Owner != 0 && fields&Assets != 0
					out.Queue = out.Queue && fields&ID != 0
				case Funded, Cancelled, Expired:
					out.Queue = out.Queue && fields&ID != 0
				}
			}
		}
	}
	return out
}

// MayLack reports whether a log of a block can have an effect of a kind without a field: a rule gives the field neither in the
// log nor in a companion that must be there. The field is zero then, and that is no value.
func (d *Description) MayLack(kind Kind, field Fields, block uint64) bool {
	for _, r := range d.Ranges {
		if block < r.From || block > r.To {
			continue
		}
		for i := range r.Mapping.rules {
			rule := &r.Mapping.rules[i]
			for _, e := range rule.effects {
				fields := given(e.sets, e.side)
				if rule.with != nil && rule.with.needed {
					fields |= given(rule.with.sets, 0)
				}
				if e.kind == kind && fields&field == 0 {
					return true
				}
			}
		}
	}
	return false
}

// Emits reports whether a rule of the vault emits an effect of a kind.
func (d *Description) Emits(kind Kind) bool {
	for _, r := range d.Ranges {
		for i := range r.Mapping.rules {
			if slices.ContainsFunc(r.Mapping.rules[i].effects, func(e emission) bool { return e.kind == kind }) {
				return true
			}
		}
	}
	return false
}

// ValuationsSay reports whether every valuation of the vault says a field: Nav, Assets or Shares. A sample says Nav. What
// a valuation does not say follows from other logs.
func (d *Description) ValuationsSay(field Fields) bool {
	for _, r := range d.Ranges {
		if r.Mapping.Sampling != nil && field != Nav {
			return false
		}
		for i := range r.Mapping.rules {
			for _, e := range r.Mapping.rules[i].effects {
				if e.kind == Valuation && given(e.sets, e.side)&field == 0 {
					return false
				}
			}
		}
	}
	return true
}

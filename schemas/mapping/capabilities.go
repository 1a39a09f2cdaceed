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

// FromSingleLogs reports whether what a user, a partner or a queue has is a sum over single logs: each deposit and each
// claim says its assets, and each log about a request names it. It is not so where groups are priced, deposits become
// void, claims take the oldest requests, or withdrawals need no request: there one log changes what others say.
func (d *Description) FromSingleLogs() bool {
	for _, r := range d.Ranges {
		for i := range r.Mapping.rules {
			for _, e := range r.Mapping.rules[i].effects {
				fields := given(e.sets, e.side)
				switch e.kind {
				case Priced, Void, Instant:
					return false
				case Deposit, Requested:
					if fields&Group != 0 {
						return false
					}
				case Claimed:
					if fields&ID == 0 || fields&Owner == 0 || fields&Assets == 0 {
						return false
					}
				case Funded, Cancelled, Expired:
					if fields&ID == 0 {
						return false
					}
				}
			}
		}
	}
	return true
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

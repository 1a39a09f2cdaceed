package mapping

import "go.yaml.in/yaml/v3"

// queue is how the requests of a mapping are named and claimed.
type queue struct {
	// has are the fields Fifo and Unfunded of each Requested.
	has Fields
	// groupIsKey is set if requests are funded up to a key.
	groupIsKey bool
}

// ruleEffect is an effect of a rule, with its fields, the expression of its key (nil for none), and the rule's node.
type ruleEffect struct {
	node *yaml.Node
	kind Kind
	side Side
	has  Fields
	key  *value
}

// key returns the expression of the key that the rule itself sets; nil if it sets none.
func (e *emission) key() *value {
	for i := range e.sets {
		if e.sets[i].field.field == ID {
			return &e.sets[i].value
		}
	}
	return nil
}

// queue checks that the rules fit each other: that they name deposits and requests in the same way, because otherwise
// they could not be followed, and that a valuation has what its NAV follows from. It derives the properties of all
// requests.
func (c *checker) queue(m *Mapping) {
	if c.found > 0 {
		return // the rules are only compared if each one is valid
	}
	var of [kindCount]Fields
	var first [kindCount]*ruleEffect
	priced := map[Side]bool{}
	var keys [kindCount]bool // a key is not `place`, so that a later log can contain it
	var all []ruleEffect
	for r, e := range m.emissions() {
		all = append(all, ruleEffect{r.node, e.kind, e.side, r.possibly(e), e.key()})
	}
	for i := range all {
		t := &all[i]
		of[t.kind] |= t.has
		if first[t.kind] == nil {
			first[t.kind] = t
		}
		keys[t.kind] = keys[t.kind] || t.key == nil || t.key.typ.text != placeName
		if t.kind == Priced {
			priced[t.side] = true
		}
	}
	owned := func(t *ruleEffect) bool { return t.kind == Claimed && t.has&(ID|SourceID) == 0 }
	fifo, keyed, bare := (*ruleEffect)(nil), (*ruleEffect)(nil), (*ruleEffect)(nil)
	for i := range all {
		switch t := &all[i]; {
		case owned(t):
			fifo = t
		case t.kind == Claimed:
			keyed = t
		case t.kind == Requested && t.has&Assets == 0:
			bare = t
		}
	}
	if fifo != nil && keyed != nil {
		c.at(fifo.node, 0, "claims name a request in line %d and only an owner here: a mapping has one of the two",
			keyed.node.Line)
	}
	// funded reports whether a funding can determine what requests are paid.
	funded := of[Funded]&Assets != 0 || first[Funded] != nil && priced[RedeemSide]
	if m.queue.groupIsKey = of[Funded]&To != 0; m.queue.groupIsKey {
		of[Requested] |= Group
	}
	if fifo != nil {
		m.queue.has |= Fifo
		if first[Funded] == nil {
			m.queue.has |= Unfunded
		}
	}
	for i := range all {
		t := &all[i]
		named := Requested
		if t.kind == Void {
			named = Deposit
		}
		switch {
		case t.kind == Requested && m.queue.groupIsKey && t.has&Group != 0:
			c.at(t.node, 0, "requests are funded up to a key, so none can have a `group`")
		case t.kind == Funded && t.has&GroupTo != 0 && of[Requested]&Group == 0,
			t.kind == Cancelled && t.has&Group != 0 && of[Requested]&Group == 0,
			t.kind == Priced && t.side == RedeemSide && of[Requested]&Group == 0:
			c.at(t.node, 0, "`%s` names a group, and no rule emits a `requested` with a `group`", t.kind)
		case t.kind == Priced && t.side == DepositSide && of[Deposit]&Group == 0,
			t.kind == Void && t.has&Group != 0 && of[Deposit]&Group == 0:
			c.at(t.node, 0, "`%s` names a group, and no rule emits a `deposit` with a `group`", t.kind)
		case t.kind == Void && first[Deposit] != nil && !m.lacks(Deposit, Shares) && !c.recorded:
			c.at(t.node, 0, "`void` is about a deposit that waits for its price, and each `deposit` of the rules has `shares`")
		case t.kind == Claimed && t.has&Assets == 0 && bare != nil && !funded:
			c.at(t.node, 0, "a claim without `assets` pays what its request was funded for, or the `estimate`, and the rules "+
				"give the request of line %d neither", bare.node.Line)
		case t.kind == Deposit && t.has&Shares == 0 && !priced[DepositSide]:
			c.at(t.node, 0, "the deposit has no shares, and no rule emits `priced` with `side: deposit`")
		case t.kind == Deposit && t.has&Shares == 0 && first[Sweep] != nil:
			c.at(t.node, 0, "deposits without shares cannot be swept, and line %d emits `sweep`", first[Sweep].node.Line)
		case t.kind > Requested && t.kind <= Expired && t.has&SourceID != 0 && of[Requested]&SourceID == 0:
			c.at(t.node, 0, "`%s` names a `source_id`, and no rule emits a `requested` with one", t.kind)
		case t.kind == Cancelled && t.has&(ID|SourceID|Group) == 0 && fifo == nil:
			c.at(t.node, 0, "`cancelled` names an owner and shares, and no rule emits a `claimed` that names only an owner")
		case t.kind == Cancelled && t.has&(ID|SourceID|Group) == 0 && first[Funded] != nil && !c.recorded:
			c.at(t.node, 0, "`cancelled` names an owner and shares, which would be taken from funded requests only (line %d "+
				"emits `funded`): name the request or its group", first[Funded].node.Line)
		case t.kind > named && t.kind <= Expired && t.key != nil && t.key.parameter != nil &&
			first[named] != nil && !keys[named] && !c.recorded:
			c.at(t.node, 0, "`%s` names a `key` of its event, and each `%s` has the key `place`, which no other log contains",
				t.kind, named)
		case t.kind == Valuation && t.has&(Nav|Shares) == 0 && first[Supply] == nil && !c.recorded:
			c.at(t.node, 0, "NAV would be 0: the `valuation` has neither `nav` nor `total_supply`, and no rule emits `supply`")
		case t.kind == Requested && t.has&Expires != 0 && m.queue.has&Unfunded != 0 && !c.recorded:
			c.at(t.node, 0, "requests that are claimed by their owner and never funded cannot have `expires`: whose turn it is "+
				"would be unknown")
		case (t.kind == Cancelled && t.has&(ID|SourceID|Group) != 0 || t.kind == Expired) && m.queue.has&Unfunded != 0:
			c.at(t.node, 0, "requests that are claimed by their owner and never funded cannot be %s: whose turn it is would "+
				"be unknown", t.kind)
		}
	}
}

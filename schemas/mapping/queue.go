package mapping

import (
	"cmp"
	"errors"
	"slices"

	"go.yaml.in/yaml/v3"
)

// queue is how the requests of a mapping are named and claimed.
type queue struct {
	// has are the fields Fifo and Unfunded of each Requested.
	has Fields
	// groupIsKey is set if requests are funded up to a key.
	groupIsKey bool
	// unmatched is a mistake unless another mapping of the vault emits Claimed or, if this one has no Requested, that.
	unmatched error
}

// Together returns the mistakes of all mappings of a vault together: requests that none of them makes, or pays. An
// upgrade leaves requests open, so one mapping can pay those of another.
func Together(all []*Mapping) error {
	emitted := func(kind Kind) bool {
		return slices.ContainsFunc(all, func(m *Mapping) bool { return m.emits(kind) })
	}
	var faults []error
	for _, m := range all {
		if m.emits(Requested) && !emitted(Claimed) || !emitted(Requested) {
			faults = append(faults, m.queue.unmatched)
		}
	}
	return errors.Join(faults...)
}

// keyIsPlace reports whether the rule itself sets the key of a deposit or request to its place.
func (e *emission) keyIsPlace() bool {
	return slices.ContainsFunc(e.sets,
		func(s assignment) bool { return s.field.field == ID && s.value.typ.text == placeName })
}

// namesKey reports whether an effect of the rule names deposits or requests by a parameter of its event, or of its
// companion's.
func (r *rule) namesKey(e *emission) bool {
	named := func(s assignment) bool { return s.field.field&(ID|To) != 0 && s.value.reads }
	return slices.ContainsFunc(e.sets, named) || r.with != nil && slices.ContainsFunc(r.with.sets, named)
}

// queue checks that the rules fit each other: that they name deposits and requests in the same way, because otherwise
// they could not be followed, and that a valuation has what its NAV follows from. It derives the properties of all
// requests.
func (c *checker) queue(m *Mapping) {
	if c.found > 0 {
		return // the rules are only compared if each one is valid
	}
	var of [kindCount]Fields
	var first [kindCount]*yaml.Node
	priced := map[Side]bool{}
	var keys [kindCount]bool // a key is not `place`, so that a later log can contain it
	var fifo, keyed, bare *yaml.Node
	for r, e := range m.emissions() {
		has := r.possibly(e)
		of[e.kind] |= has
		first[e.kind] = cmp.Or(first[e.kind], r.node)
		keys[e.kind] = keys[e.kind] || !e.keyIsPlace()
		switch {
		case e.kind == Priced:
			priced[e.side] = true
		case e.kind == Claimed && has&(ID|SourceID) == 0:
			fifo = r.node
		case e.kind == Claimed:
			keyed = r.node
		case e.kind == Requested && has&Assets == 0:
			bare = r.node
		}
	}
	if fifo != nil && keyed != nil {
		c.at(fifo, 0, "claims name a request in line %d and only an owner here: a mapping has one of the two", keyed.Line)
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
	unmatched := &checker{file: c.file}
	for r, e := range m.emissions() {
		has, named := r.possibly(e), Requested
		if e.kind == Void || e.kind == Sweep {
			named = Deposit
		}
		switch {
		case e.kind == Requested && m.queue.groupIsKey && has&Group != 0:
			c.at(r.node, 0, "requests are funded up to a key, so none can have a `group`")
		case e.kind == Funded && has&GroupTo != 0 && of[Requested]&Group == 0,
			e.kind == Cancelled && has&Group != 0 && of[Requested]&Group == 0,
			e.kind == Priced && e.side == RedeemSide && of[Requested]&Group == 0:
			c.at(r.node, 0, "`%s` names a group, and no rule emits a `requested` with a `group`", e.kind)
		case e.kind == Priced && e.side == DepositSide && of[Deposit]&Group == 0,
			e.kind == Void && has&Group != 0 && of[Deposit]&Group == 0:
			c.at(r.node, 0, "`%s` names a group, and no rule emits a `deposit` with a `group`", e.kind)
		case e.kind == Void && first[Deposit] != nil && !m.lacks(Deposit, Shares) && !c.recorded:
			c.at(r.node, 0, "`void` is about a deposit that waits for its price, and each `deposit` of the rules has `shares`")
		case e.kind == Claimed && has&Assets == 0 && bare != nil && !funded:
			c.at(r.node, 0, "a claim without `assets` pays what its request was funded for, or the `estimate`, and the rules "+
				"give the request of line %d neither", bare.Line)
		case e.kind == Deposit && has&Shares == 0 && !priced[DepositSide]:
			c.at(r.node, 0, "the deposit has no shares, and no rule emits `priced` with `side: deposit`")
		case e.kind == Deposit && has&Shares == 0 && first[Sweep] != nil:
			c.at(r.node, 0, "deposits without shares cannot be swept, and line %d emits `sweep`", first[Sweep].Line)
		case e.kind > Requested && e.kind <= Expired && has&SourceID != 0 && of[Requested]&SourceID == 0:
			c.at(r.node, 0, "`%s` names a `source_id`, and no rule emits a `requested` with one", e.kind)
		case e.kind == Cancelled && has&(ID|SourceID|Group) == 0 && fifo == nil:
			c.at(r.node, 0, "`cancelled` names an owner and shares, and no rule emits a `claimed` that names only an owner")
		case e.kind == Cancelled && has&(ID|SourceID|Group) == 0 && first[Funded] != nil && !c.recorded:
			c.at(r.node, 0, "`cancelled` names an owner and shares, which would be taken from funded requests only (line %d "+
				"emits `funded`): name the request or its group", first[Funded].Line)
		case e.kind > named && e.kind <= Expired && r.namesKey(e) && first[named] != nil && !keys[named] && !c.recorded:
			c.at(r.node, 0, "`%s` names a `key` of its event, and each `%s` has the key `place`, which no other log contains",
				e.kind, named)
		case e.kind == Valuation && has&(Nav|Shares) == 0 && first[Supply] == nil && !c.recorded:
			c.at(r.node, 0, "NAV would be 0: the `valuation` has neither `nav` nor `total_supply`, and no rule emits `supply`")
		case e.kind == Requested && has&Expires != 0 && m.queue.has&Unfunded != 0 && !c.recorded:
			c.at(r.node, 0, "requests that are claimed by their owner and never funded cannot have `expires`: whose turn it is "+
				"would be unknown")
		case (e.kind == Cancelled && has&(ID|SourceID|Group) != 0 || e.kind == Expired) && m.queue.has&Unfunded != 0:
			c.at(r.node, 0, "requests that are claimed by their owner and never funded cannot be %s: whose turn it is would "+
				"be unknown", e.kind)
		case e.kind > Requested && e.kind <= Expired && first[Requested] == nil:
			unmatched.at(r.node, 0, "`%s` is about a request, and no rule emits `requested`: a payment without a request is "+
				"`instant`", e.kind)
		}
	}
	if c.found == 0 && first[Requested] != nil && first[Claimed] == nil && of[Requested]&Expires == 0 {
		unmatched.at(first[Requested], 0, "no rule emits `claimed`, so a request would stay in the queue forever: emit `instant` "+
			"if no later log names it, or its owner and shares")
	}
	m.queue.unmatched = unmatched.result()
}

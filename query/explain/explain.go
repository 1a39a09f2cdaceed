// Package explain returns why a number of the API has its value: the logs that make it, oldest first, each with its
// change of the number and the number after it. The last of these sums is the number.
//
//	of, field ──▶ target ──▶ numbers: which logs, and how they make it
//	                            │
//	              page: some of them, oldest first ──▶ before: the sum up to there
//	              total: how many, and the number
//
// The table of numbers (numbers.go) names a .sql file for each number, which selects its logs. Three queries are made
// from it: page or page_retracted, total, and before. They only read the table events, but the number itself is in a
// list. Tests of query and deploy/check/histories compare both for every number.
//
// With proof=true each log has a proof that it is in its block (proof.go), made from data of the single node that serve
// uses. The node is not trusted: a block is used only if its header and receipts match the hash that the log has of
// the block (node.go). Calls of the node are rate-limited, because a provider bills each call, and responses are
// limited in size and time. Proven blocks are cached by hash, so that the same proofs need no second call.
//
// The numbers of a partner are available only to the partner of the key: no parameter of a request names a partner.
package explain

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

type explanationJSON struct {
	Of        string      `json:"of"`
	Field     string      `json:"field"`
	Value     *string     `json:"value"`
	Operation operation   `json:"operation"`
	Events    []eventJSON `json:"events"`
}

type eventJSON struct {
	ID             string  `json:"id"`
	Seq            string  `json:"seq"`
	Kind           string  `json:"kind"`
	VaultAddress   string  `json:"vaultAddress"`
	BlockNumber    string  `json:"blockNumber"`
	Timestamp      string  `json:"timestamp"`
	TxHash         *string `json:"txHash"`   // null for a sample
	LogIndex       *uint32 `json:"logIndex"` // null for a sample
	UserAddress    *string `json:"userAddress"`
	Change         string  `json:"change"`
	Sum            string  `json:"sum"`
	State          string  `json:"state"`
	RetractedBySeq *string `json:"retractedBySeq"`
	// With proof=true, each event has one of these.
	Proof    *proofJSON `json:"proof,omitempty"`
	Unproven string     `json:"unproven,omitempty"`
}

// errNoKey means that a route let a request for a partner's numbers through without a key: an error of navlog.
var errNoKey = errors.New("the numbers of a partner were requested without a key")

// Explainer explains the numbers of the API.
type Explainer struct {
	// Node provides the data for proofs; nil: there are no proofs.
	Node *Node
	// Spend is called before each call of the node for a request. If it returns an error, a *serve.Failure, the call is
	// not made.
	Spend func(*serve.Request) error
	// ProofsForPartners restricts proofs to requests with a partner's key.
	ProofsForPartners bool
}

// New returns an explainer that makes proofs with a node; nil: it makes none.
func New(n *Node) *Explainer {
	return &Explainer{Node: n, Spend: func(*serve.Request) error { return nil }}
}

// NeedsKey reports whether a request needs a partner's key: for a partner's numbers, and for
// proofs if the operator pays for those of partners only.
func (e *Explainer) NeedsKey(params url.Values) bool {
	return NeedsKey(params) || e.ProofsForPartners && Proves(params)
}

// Proves reports whether a request asks for proofs, and so for calls of the node.
func Proves(values url.Values) bool { return values.Get("proof") == "true" }

// Explain returns a page of the logs that make a number.
func (e *Explainer) Explain(r *serve.Request) (*serve.Answer, error) {
	t, page := read(r.Params), r.Params.Page()
	retracted := r.Params.OneOf("retracted", "false", "true", "false") == "true"
	proof := r.Params.OneOf("proof", "false", "true", "false") == "true"
	switch {
	case proof && e.Node == nil:
		r.Params.Fault("proof", "must not be true here: the operator has configured no node to make proofs from "+
			"(http.proofRpc)")
	case proof && page.Size > mostProven:
		r.Params.Fault("pageSize", fmt.Sprintf("must be an integer from 1 to %d with proof=true", mostProven))
	}
	var events []eventJSON
	var hashes []common.Hash
	var vaults []state.Vault
	answer, err := r.Pinned(func(ctx context.Context, p *ask.Pin) (answer *serve.Answer, err error) {
		err = r.BeforeProofs(ctx, func(ctx context.Context) error {
			var shown []eventJSON
			if answer, shown, err = explained(ctx, p, r, &t, page, retracted); err == nil && proof {
				events, vaults = shown, p.Vaults
				hashes, err = liveHashes(ctx, p, shown)
			}
			return err
		})
		return answer, err
	})
	// The node is asked when the engine has answered, and shares memory with the answer.
	if err == nil && proof {
		err = e.prove(r, vaults, events, hashes)
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// explained returns a page of an explanation, and the events on it.
func explained(ctx context.Context, p *ask.Pin, r *serve.Request, t *target, page serve.Page,
	retracted bool) (*serve.Answer, []eventJSON, error) {
	if t.number.of == ofPartner && r.Partner == nil {
		return nil, nil, serve.Internal(errNoKey)
	}
	l, err := t.find(ctx, p, r.Partner, retracted)
	if err != nil {
		return nil, nil, err
	}
	out := explanationJSON{Of: t.of, Field: t.field, Operation: t.number.operation, Events: []eventJSON{}}
	if l == nil { // the queue of a vault that does not exist is empty
		out.Value = t.number.written(new(big.Int))
		return r.List(out, page, 0), nil, nil
	}
	var made total
	err = ask.Together(
		func() (err error) { made, _, err = l.number.logs.total.One(ctx, p, l.args); return },
		func() (err error) { out.Events, err = l.page(ctx, page); return },
		func() error { return t.exists(ctx, p) },
	)
	switch {
	case err != nil:
		return nil, nil, err
	case t.number.operation != last || made.Live > 0:
		out.Value = t.number.written(ask.Number(made.Sum))
	}
	if !retracted {
		made.Retracted = 0
	}
	return r.List(out, page, made.Live+made.Retracted), out.Events, nil
}

// find returns the logs of the number; nil for the queue of a vault that does not exist.
func (t *target) find(ctx context.Context, p *ask.Pin, partner *serve.Partner, retracted bool) (*logs, error) {
	l := &logs{pin: p, number: &t.number, args: ofLogs{
		User: t.user(), Measure: ask.Word(t.number.measure), Unfunded: t.number.unfunded, Retracted: retracted}}
	if partner != nil {
		l.args.Partner = partner.ID
	}
	switch {
	case t.place != "":
		vault, err := t.vaultAt(ctx, p, partner)
		if err != nil {
			return nil, err
		}
		l.args.Vault = vault
	case t.filter != nil:
		if _, known := p.Vault(*t.filter); !known {
			return nil, nil
		}
		l.args.Vault = *t.filter
	case t.number.of == ofVault || t.number.of == ofMember:
		if _, known := p.Vault(t.address); !known {
			return nil, serve.NoSuchVault()
		}
		l.args.Vault = t.address
	}
	l.args.Voids = slices.ContainsFunc(p.Vaults, func(v state.Vault) bool {
		return l.about(v.Address) && !v.Mapped.Description.Single().Deposits
	})
	return l, t.explainable(ctx, l)
}

// valued has the field of a valuation for each measure.
var valued = map[measure]mapping.Fields{price: mapping.Nav, assets: mapping.Assets, supply: mapping.Shares}

// about reports whether the logs may be those of a vault.
func (l *logs) about(vault common.Address) bool {
	return l.args.Vault == (common.Address{}) || l.args.Vault == vault
}

// explainable returns a failure if the number does not follow from single logs, for one of the vaults that it is about:
// a number of a user in all vaults is about those in which the user has totals.
func (t *target) explainable(ctx context.Context, l *logs) error {
	var totals map[common.Address]*ask.Totals
	for _, v := range l.pin.Vaults {
		if !l.about(v.Address) || l.number.from(v.Mapped.Description) {
			continue
		}
		if l.args.Vault == (common.Address{}) && t.number.of == ofUser {
			if totals == nil {
				var err error
				if totals, err = t.totals(ctx, l.pin, nil); err != nil {
					return err
				}
			}
			if totals[v.Address] == nil {
				continue
			}
		}
		return serve.NotFound(fmt.Sprintf("The number is not explained: by the protocol of the vault %s it does not "+
			"follow from single logs. /api/v1/events has its events.", v.Name))
	}
	return nil
}

// from reports whether the number follows from single logs of a vault. One that is null for want of sweeps or of a
// queue does not.
func (n *number) from(d *mapping.Description) bool {
	switch n.logs {
	case newestNav:
		return !d.Derives(valued[n.measure])
	case depositsUnswept:
		return d.Single().Deposits && d.Capabilities().Sweeps
	case claimsOfUser:
		return d.Single().Claims
	case requestsWaiting:
		hasQueue := n.of == ofRequests || d.Capabilities().Queue
		return d.Single().Queue && hasQueue && (n.measure != assets || !d.Lacks(mapping.Requested, mapping.Assets))
	}
	return true
}

// user returns the user whose number it is; the zero address or another address if it is no user's.
func (t *target) user() common.Address {
	if t.number.of == ofMember {
		return t.member
	}
	return t.address
}

// exists returns an error if the response that contains the number is 404.
func (t *target) exists(ctx context.Context, p *ask.Pin) error {
	var vault common.Address
	switch t.number.of {
	case ofUser:
	case ofMember:
		vault = t.address
	default:
		return nil
	}
	member, err := ask.IsMember(ctx, p, t.user(), vault)
	if err == nil && !member {
		return serve.NotFound("There is no such user.")
	}
	return err
}

// vaultAt returns the vault at a place in a list: by its address or by its index.
func (t *target) vaultAt(ctx context.Context, p *ask.Pin, partner *serve.Partner) (common.Address, error) {
	vaults, err := t.listed(ctx, p, partner)
	if err != nil {
		return common.Address{}, err
	}
	for i, v := range vaults {
		if t.place == strconv.Itoa(i) || serve.IsAddress(t.place) && v.Address == common.HexToAddress(t.place) {
			return v.Address, nil
		}
	}
	return common.Address{}, serve.NotFound("The list in that response does not contain this vault.")
}

// listed returns the vaults in the list that has the number, by the totals that the response itself is made of.
func (t *target) listed(ctx context.Context, p *ask.Pin, partner *serve.Partner) ([]state.Vault, error) {
	all := p.VaultsMatching(t.filter)
	if t.number.in == nil || len(all) == 0 {
		return all, nil
	}
	totals, err := t.totals(ctx, p, partner)
	return slices.DeleteFunc(slices.Clone(all), func(v state.Vault) bool {
		return totals[v.Address] == nil || !t.number.in(&v, totals[v.Address])
	}), err
}

// totals returns the totals in each vault of the user or partner whose number it is, or else those of each vault
// itself. A vault without any is not included.
func (t *target) totals(
	ctx context.Context, p *ask.Pin, partner *serve.Partner,
) (map[common.Address]*ask.Totals, error) {
	var of ask.Whose
	switch t.number.of {
	case ofUser:
		of.Users = []common.Address{t.address}
	case ofPartner:
		of.Owners = []common.Address{readmodel.PartnerOwner(partner.ID)}
	default:
		of.Owners = state.Addresses(p.Vaults)
	}
	sums, err := ask.SumsOf(ctx, p, of)
	if err != nil {
		return nil, err
	}
	out := map[common.Address]*ask.Totals{}
	for _, totals := range []ask.AllTotals{sums.Users, sums.Owners} {
		for h, in := range totals { // of one owner in each vault
			out[h.Scope] = in
		}
	}
	return out, nil
}

// written formats a number as the API does.
func (n *number) written(value *big.Int) *string {
	if n.measure == moment && value.Sign() > 0 {
		return new(serve.Time(value.Uint64()))
	}
	return new(value.String())
}

package oracle

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// Answer returns what the API must say about a state to a request: the field data, which for a list is the whole list,
// whatever page is requested; nil stands for 404. from and to must be Unix seconds. The partner is the one that asks.
func (s *State) Answer(target string, p Partner) (any, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("parse %q: %w", target, err)
	}
	query, in := u.Query(), span{}
	for name, end := range map[string]struct {
		text *string
		ms   *int64
	}{"from": {&in.from, &in.fromMs}, "to": {&in.to, &in.toMs}} {
		if *end.text = query.Get(name); *end.text == "" {
			continue
		}
		if *end.ms, err = strconv.ParseInt(*end.text, 10, 64); err != nil {
			return nil, fmt.Errorf("%s: the parameter %s is not in Unix seconds: %w", target, name, err)
		}
		*end.ms *= 1000
	}
	return s.answer(u.Path, query, in, p), nil
}

// answer is Answer, with the time range that from and to stand for. It is the one place that says which endpoint
// returns what, in which order.
func (s *State) answer(path string, query url.Values, in span, p Partner) any {
	parts := strings.Split(strings.TrimPrefix(path, api+"/"), "/")
	if parts[0] == "partner" && parts[1] == "vaults" { // the same as without a key
		parts = parts[1:]
	}
	var of common.Address
	if len(parts) > 1 && common.IsHexAddress(parts[1]) {
		of, parts[1] = common.HexToAddress(parts[1]), "{address}"
	}
	vault := s.vaults[of]
	if vault == nil && parts[0] == "vaults" && len(parts) > 1 {
		return nil
	}
	sortBy, sortOrder, status := query.Get("sortBy"), query.Get("sortOrder"), query.Get("status")
	inVault := func(f Fact) bool {
		filter := query.Get("vault")
		return (filter == "" || common.HexToAddress(filter) == f.Vault) && in.holds(f.Time)
	}
	here := func(f Fact) bool { return f.Vault == of && in.holds(f.Time) }
	switch endpoint := strings.Join(parts, "/"); endpoint {
	case "vaults":
		return items(s.ordered(), s.vaultJSON)
	case "vaults/{address}":
		return s.vaultDetailJSON(vault)
	case "vaults/{address}/nav":
		return items(newestFirst(filter(s.navs, func(n navState) bool { return here(n.Fact) })), s.navJSON)
	case "vaults/{address}/deposits": // by number, not by time
		list := newestFirst(filter(s.deposits, func(d *depositState) bool { return here(d.Fact) }))
		slices.SortStableFunc(list, func(a, b *depositState) int { return b.DepositID.Cmp(a.DepositID) })
		return items(list, s.depositJSON)
	case "vaults/{address}/withdrawals":
		list := filter(s.requests, func(r *requestState) bool { return here(r.Fact) })
		slices.SortFunc(list, func(a, b *requestState) int { return b.RequestIndex.Cmp(a.RequestIndex) })
		return items(list, s.requestJSON)
	case "vaults/{address}/users":
		return items(sorted(vault.users, sortBy, sortOrder), s.userJSON)
	case "vaults/{address}/series":
		return s.seriesJSON(vault, cmp.Or(query.Get("interval"), "day"), in)
	case "users":
		return items(sorted(s.users, sortBy, sortOrder), s.userJSON)
	case "users/{address}":
		if s.users[of] == nil {
			return nil
		}
		return s.userWithHoldingsJSON(s.users[of])
	case "users/{address}/deposits":
		return items(newestFirst(filter(s.deposits, func(d *depositState) bool { return d.Owner == of && inVault(d.Fact) })),
			s.depositJSON)
	case "users/{address}/withdrawals":
		return items(newestFirst(filter(s.requests, func(r *requestState) bool {
			return r.Owner == of && inVault(r.Fact) && (status == "" || status == s.status(r))
		})), s.requestJSON)
	case "queues/withdrawals":
		return items(filter(s.requests, func(r *requestState) bool { return s.status(r) == "queued" && inVault(r.Fact) }),
			s.requestJSON)
	case "queues/deposits":
		return items(filter(s.ordered(), func(v *vaultState) bool {
			return inVault(Fact{Vault: v.address}) && len(v.unswept()) > 0
		}), s.queueGroupJSON)
	case "settlement/summary":
		return items(s.ordered(), s.settlementJSON)
	case "partner/stats":
		return s.partnerStatsJSON(p)
	case "partner/deposits":
		deposits := filter(s.deposits, func(d *depositState) bool { return d.PartnerID == p.ID })
		return items(newestFirst(deposits), s.depositJSON)
	case "partner/router":
		return Object{"routerAddress": s.history.router.Hex(), "chainId": integer(s.history.chainID)}
	default:
		panic("the oracle does not know the endpoint " + endpoint)
	}
}

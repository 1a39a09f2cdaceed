package query

import (
	"github.com/navlog/navlog/query/deposits"
	"github.com/navlog/navlog/query/events"
	"github.com/navlog/navlog/query/explain"
	"github.com/navlog/navlog/query/partner"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/users"
	"github.com/navlog/navlog/query/vaults"
	"github.com/navlog/navlog/query/withdrawals"
)

func (q *Query) routes() []serve.Route {
	hooks := q.webhooks
	return []serve.Route{
		{Path: "/api/v1/vaults", Get: vaults.List, AsFile: true},
		{Path: "/api/v1/vaults/{address}", Get: vaults.Detail(vaults.ByVault(q.cfg.Vaults))},
		{Path: "/api/v1/vaults/{address}/nav", Get: vaults.Navs, AsFile: true},
		{Path: "/api/v1/vaults/{address}/deposits", Get: deposits.OfVault, AsFile: true},
		{Path: "/api/v1/vaults/{address}/withdrawals", Get: withdrawals.OfVault, AsFile: true},
		{Path: "/api/v1/vaults/{address}/users", Get: users.OfVault, AsFile: true, Expensive: serve.PastByAmount},
		{Path: "/api/v1/vaults/{address}/events", Get: events.OfVault, AsFile: true, FirstSync: true,
			Expensive: serve.Always},
		{Path: "/api/v1/events", Get: events.List, AsFile: true, FirstSync: true, Expensive: events.Filtered},
		// it reads all requests of 90 days
		{Path: "/api/v1/vaults/{address}/funding", Get: vaults.Funding, Expensive: serve.Always},
		{Path: "/api/v1/vaults/{address}/series", Get: vaults.Series, AsFile: true},
		{Path: "/api/v1/users", Get: users.List, AsFile: true, Expensive: serve.PastByAmount},
		{Path: "/api/v1/reorganisations", Get: events.Reorganisations, AsFile: true, FirstSync: true},
		{Path: "/api/v1/block", Get: events.BlockOf, Uncached: true},
		{Path: "/api/v1/stream", Get: q.feed.Stream, Live: true, FirstSync: true},
		{Path: "/api/v1/users/{address}", Get: users.Detail},
		{Path: "/api/v1/users/{address}/deposits", Get: deposits.OfUser, AsFile: true},
		{Path: "/api/v1/users/{address}/withdrawals", Get: withdrawals.OfUser, AsFile: true},
		{Path: "/api/v1/queues/withdrawals", Get: withdrawals.Queue, AsFile: true},
		{Path: "/api/v1/queues/deposits", Get: deposits.Queue, AsFile: true, Expensive: serve.Always},
		{Path: "/api/v1/settlement/summary", Get: vaults.Settlement, AsFile: true},
		{Path: "/api/v1/explain", Get: q.explainer.Explain, PartnerIf: q.explainer.NeedsKey, Expensive: serve.Always,
			Proves: explain.Proves},

		{Path: "/api/v1/partner/vaults", Partner: true, Get: vaults.List, AsFile: true},
		{Path: "/api/v1/partner/vaults/{address}/nav", Partner: true, Get: vaults.Navs, AsFile: true},
		{Path: "/api/v1/partner/webhooks", Partner: true, Get: hooks.Registered, Post: hooks.Register,
			PostLimit: serve.Registrations, Uncached: true},
		{Path: "/api/v1/partner/webhooks/test", Partner: true, Post: hooks.Test, PostLimit: serve.Sends},
		{Path: "/api/v1/partner/webhooks/health", Partner: true, Get: hooks.Health, Uncached: true, Expensive: serve.Always},
		{Path: "/api/v1/partner/webhooks/deliveries", Partner: true, Get: hooks.Deliveries, Uncached: true, AsFile: true,
			Expensive: partner.Filtered},
		{Path: "/api/v1/partner/webhooks/deliveries/{eventId}", Partner: true, Get: hooks.Delivery, Uncached: true},
		{Path: "/api/v1/partner/webhooks/deliveries/{eventId}/replay", Partner: true, Post: hooks.Replay,
			PostLimit: serve.Sends},
		{Path: "/api/v1/partner/webhooks/secret/rotate", Partner: true, Post: hooks.IfAllowed(hooks.RotateSecret),
			PostLimit: serve.Registrations},
		{Path: "/api/v1/partner/webhooks/certificates", Partner: true, Get: hooks.Certificates,
			Post: hooks.IfAllowed(hooks.SetCertificates), PostLimit: serve.Registrations,
			MaxBody: partner.MaxCertificates, Uncached: true},
		{Path: "/api/v1/partner/webhooks/certificates/remove", Partner: true,
			Post: hooks.IfAllowed(hooks.RemoveCertificates), PostLimit: serve.Registrations},
		{Path: "/api/v1/partner/keys/rotate", Partner: true, Post: hooks.IfAllowed(hooks.RotateKey),
			PostLimit: serve.Registrations},
		{Path: "/api/v1/partner/events", Partner: true, Get: hooks.Events, Uncached: true},
		{Path: "/api/v1/partner/stats", Partner: true, Get: partner.Stats},
		{Path: "/api/v1/partner/deposits", Partner: true, Get: deposits.OfPartner, AsFile: true},
		{Path: "/api/v1/partner/statement", Partner: true, Get: q.statements.Get, IsFile: true},
		{Path: "/api/v1/partner/router", Partner: true, Get: partner.Router(q.cfg.Router, q.chainID), Uncached: true},
	}
}

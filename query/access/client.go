package access

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/navlog/navlog/query/serve"
)

// Headers in which proxies name the client.
const (
	XForwardedFor = "X-Forwarded-For"
	Forwarded     = "Forwarded" // RFC 7239
)

// clientIP returns the address that a request came from: the peer of the connection or, behind trusted proxies, the
// last listed address that is not a trusted proxy. The list is read from its end, because the client itself may have
// written anything before the first untrusted address. IPv6 addresses count by their /64, which belongs to one
// customer.
func (a *Access) clientIP(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return serve.Prefixes(a.behind(at.Addr().Unmap(), r.Header))[0].Addr()
}

// behind returns the client for which a peer forwards a request, or the peer itself if it is not a trusted proxy.
func (a *Access) behind(peer netip.Addr, h http.Header) netip.Addr {
	header, hops := a.hops(h)
	if len(hops) > 0 && !a.Trusted(peer) {
		a.warnOfProxy(peer, header)
		return peer
	}
	ip := peer
	for i := len(hops) - 1; i >= 0 && a.Trusted(ip); i-- {
		hop, ok := parseHop(hops[i])
		if !ok {
			a.warnOfHop(peer, hops[i])
			break
		}
		ip = hop
	}
	return ip
}

// hops returns the addresses that proxies added, in order, and the header that contains them. A proxy that appends to
// one of the two headers passes the other through as the client wrote it. So only one is read: Forwarded if the
// operator configured it or there is no other.
func (a *Access) hops(h http.Header) (header string, hops []string) {
	x, f := h[XForwardedFor], h[Forwarded]
	if a.ForwardedHeader != Forwarded && (len(x) > 0 || len(f) == 0) {
		for _, line := range x {
			for hop := range strings.SplitSeq(line, ",") {
				if hop = strings.TrimSpace(hop); hop != "" {
					hops = append(hops, hop)
				}
			}
		}
		return XForwardedFor, hops
	}
	for _, line := range f {
		for _, element := range splitQuoted(line, ',') {
			if strings.TrimSpace(element) == "" {
				continue
			}
			hop := "" // an element without for= comes from a proxy that hides the client
			for _, pair := range splitQuoted(element, ';') {
				name, value, _ := strings.Cut(pair, "=")
				if strings.EqualFold(strings.TrimSpace(name), "for") {
					hop = strings.TrimSpace(value)
				}
			}
			hops = append(hops, hop)
		}
	}
	return Forwarded, hops
}

// splitQuoted splits a header at separators outside quotes. It begins at the end, so that a quote which the client has
// left open hides nothing that a proxy has appended.
func splitQuoted(s string, separator byte) (parts []string) {
	quoted, end := false, len(s)
	for i := len(s) - 1; i >= 0; i-- {
		switch before := s[:i]; {
		case s[i] == '"' && (len(before)-len(strings.TrimRight(before, `\`)))%2 == 0: // it is not escaped
			quoted = !quoted
		case s[i] == separator && !quoted:
			parts, end = append(parts, s[i+1:end]), i
		}
	}
	parts = append(parts, s[:end])
	slices.Reverse(parts)
	return parts
}

// parseHop parses an address as proxies write it: with or without a port, brackets, quotes and a zone. "unknown" and
// obfuscated names, which begin with an underscore, are not addresses.
func parseHop(s string) (netip.Addr, bool) {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		s = strings.TrimSpace(strings.ReplaceAll(s[1:len(s)-1], `\`, ""))
	}
	host := s
	switch rest, bracket := strings.CutPrefix(s, "["); {
	case bracket:
		var after string
		host, after, bracket = strings.Cut(rest, "]")
		if !bracket || after != "" && !strings.HasPrefix(after, ":") {
			return netip.Addr{}, false
		}
	case strings.Count(s, ":") == 1: // an IPv6 address has more
		host, _, _ = strings.Cut(s, ":")
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, false
	}
	return ip.Unmap().WithZone(""), true
}

// warnOfProxy warns, once, that a setting may be wrong. Only once, because any client can send the header to a server
// without a proxy.
func (a *Access) warnOfProxy(peer netip.Addr, header string) {
	a.forwarded.Do(func() {
		a.Log.Warn("header of a proxy ignored: its sender is in no network of http.trustedProxies. If it is your proxy, "+
			"all clients behind it count as one address: add its network to http.trustedProxies (NAVLOG_HTTP_TRUSTED_PROXIES)",
			"sender", peer, "header", header)
	})
}

// warnOfHop warns, once, that a trusted proxy wrote something that cannot be parsed: the clients behind it count as
// one address, that of the last proxy that can be parsed.
func (a *Access) warnOfHop(peer netip.Addr, hop string) {
	a.unreadable.Do(func() {
		a.Log.Warn("a trusted proxy names no address as its client: such clients count as one address, that of the proxy. "+
			"Have the proxy send X-Forwarded-For or Forwarded with addresses", "sender", peer, "client",
			hop[:min(len(hop), 100)])
	})
}

// Trusted reports whether an address belongs to one of the operator's proxies. Networks have no zones.
func (a *Access) Trusted(ip netip.Addr) bool {
	return slices.ContainsFunc(a.Proxies, func(p netip.Prefix) bool { return p.Contains(ip.WithZone("")) })
}

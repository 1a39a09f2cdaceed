package rpc

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// Endpoint is one RPC endpoint of a node or provider. Its text form is just the URL.
type Endpoint struct {
	// URL of JSON-RPC: http, https, ws or wss. It may contain a key, so only its scheme and host are ever shown.
	URL string `yaml:"url" env:"URL"`
	// WS is the ws or wss URL at which the same node announces new blocks; empty for none. An endpoint whose URL is a
	// WebSocket does not need it.
	WS string `yaml:"ws" env:"WS"`
	// Spare marks an endpoint to use when the others fail, such as an expensive one. It counts as the last one of the
	// list, and takes no block ranges of a backfill. It gets health checks and calls for second opinions like the
	// others.
	Spare bool `yaml:"spare" env:"SPARE"`
	// RequestsPerSecond is the maximum rate of requests: above 0, to 100,000; 0 for no limit. Each call in a batch
	// counts.
	RequestsPerSecond float64 `yaml:"requestsPerSecond" env:"REQUESTS_PER_SECOND"`
	// Burst is how many requests may be sent at once after a pause: 1 to 100,000; 0 for the requests of one second.
	Burst int `yaml:"burst" env:"BURST"`
	// Prices are the units that this endpoint's provider bills for a call, by method; nil for chain.prices.
	Prices map[string]uint64 `yaml:"prices" env:"PRICES"`
}

// Endpoints returns endpoints with these URLs, without further settings.
func Endpoints(urls ...string) []Endpoint {
	endpoints := make([]Endpoint, len(urls))
	for i, u := range urls {
		endpoints[i].URL = u
	}
	return endpoints
}

// UnmarshalText reads a URL, also in place of a mapping in YAML.
func (e *Endpoint) UnmarshalText(text []byte) error {
	*e = Endpoint{URL: strings.TrimSpace(string(text))}
	return nil
}

// Faults reports every mistake of an endpoint.
func (e Endpoint) Faults(key string, fault func(format string, a ...any)) {
	if err := checkURL(e.URL, "https", "http", "wss", "ws"); err != nil {
		fault("%s %w", key, err)
	}
	if e.WS != "" {
		if err := checkURL(e.WS, "wss", "ws"); err != nil {
			fault("%s.ws %w", key, err)
		}
	}
	if !(e.RequestsPerSecond >= 0 && e.RequestsPerSecond <= 100_000) { // also rejects NaN
		fault("%s.requestsPerSecond is %v and must be above 0, to 100000, or 0 for no limit", key, e.RequestsPerSecond)
	}
	if e.Burst < 0 || e.Burst > 100_000 {
		fault("%s.burst is %d and must be 1 to 100000, or 0 for the requests of one second", key, e.Burst)
	}
}

// Canonical returns the URL in the form that different spellings of it share: two endpoints of one URL would agree with
// each other. One server has HTTP and WebSocket at one URL, so their schemes count as the same.
func (e Endpoint) Canonical() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return e.URL
	}
	port := "80"
	if u.Scheme = strings.Replace(u.Scheme, "ws", "http", 1); u.Scheme == "https" {
		port = "443"
	}
	u.Host = net.JoinHostPort(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), cmp.Or(u.Port(), port))
	u.Fragment, u.RawFragment, u.ForceQuery = "", "", false
	u.RawPath = strings.TrimSuffix(u.EscapedPath(), "/")
	u.Path, _ = url.PathUnescape(u.RawPath)
	return u.String()
}

// checkURL never repeats the URL, which may hold a key.
func checkURL(raw string, schemes ...string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return fmt.Errorf("is not a URL such as %s://node.example:8545", schemes[0])
	}
	if !slices.Contains(schemes, u.Scheme) {
		last := len(schemes) - 1
		return fmt.Errorf("has the scheme %q and must be %s or %s", u.Scheme, strings.Join(schemes[:last], ", "),
			schemes[last])
	}
	return nil
}

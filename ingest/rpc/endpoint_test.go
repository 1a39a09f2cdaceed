package rpc

import "testing"

// Spellings of one URL are one endpoint, and different URLs are not.
func TestCanonical(t *testing.T) {
	canonical := map[string][]string{}
	for _, same := range [][]string{
		{"https://node.example", "https://NODE.example/", "HTTPS://node.example:443", "https://node.example.",
			"https://node.example:/#main", "https://node.example.:443/#", "wss://node.example/", "wss://node.example:443",
			"https://node.example?"},
		{"http://node.example", "http://node.example:80/", "ws://node.example", "ws://node.example:80"},
		{"http://node.example:443", "ws://node.example:443/"},
		{"https://node.example:8545/v1/key", "wss://node.example.:8545/v1/key/", "https://node.example:8545/v1/key#x"},
		{"https://node.example:8545/v1/KEY"},
		{"https://node.example/a%2Fb", "https://node.example:443/a%2Fb/"},
		{"https://node.example/a/b"},
		{"https://node.example/?key=1", "https://node.example?key=1"},
		{"https://node.example/?key=2"},
		{"https://user:word@node.example", "wss://user:word@node.example:443/"},
		{"http://[2001:DB8::1]", "http://[2001:db8::1]:80/"},
		{"http://[2001:db8::1]:8545", "ws://[2001:db8::1]:8545"},
	} {
		want := Endpoint{URL: same[0]}.Canonical()
		for _, url := range same {
			if got := (Endpoint{URL: url}).Canonical(); got != want {
				t.Errorf("%s has the form %s, but %s has %s", url, got, same[0], want)
			}
		}
		canonical[want] = append(canonical[want], same[0])
	}
	for form, urls := range canonical {
		if len(urls) > 1 {
			t.Errorf("different URLs have the form %s: %q", form, urls)
		}
	}
}

package health

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/navlog/navlog/query/serve"
)

// Explorer is the section http.explorer of navlog.yaml: the block explorer that the pages link to. Each URL is either
// empty, which is the default and means no link, or contains its placeholder exactly once.
type Explorer struct {
	// Tx is the URL of a transaction, with {tx} in place of its hash.
	Tx string `yaml:"tx" env:"TX"`
	// Address is the URL of an address, with {address} in its place.
	Address string `yaml:"address" env:"ADDRESS"`
	// Block is the URL of a block, with {block} in place of its number.
	Block string `yaml:"block" env:"BLOCK"`
}

// maxExplorerURL is the maximum length of such a URL in bytes: every response of /status contains it.
const maxExplorerURL = 500

// Validate reports all mistakes at once.
func (e Explorer) Validate() error {
	var faults []error
	for _, one := range []struct{ key, url string }{{"tx", e.Tx}, {"address", e.Address}, {"block", e.Block}} {
		if one.url == "" {
			continue
		}
		if err := checkExplorerURL(one.url, "{"+one.key+"}"); err != nil {
			faults = append(faults, fmt.Errorf("http.explorer.%s %w", one.key, err))
		}
	}
	return errors.Join(faults...)
}

// checkExplorerURL does not repeat the URL in its errors, because it may contain a password.
func checkExplorerURL(template, placeholder string) error {
	const example = "http or https URL with a host, for example https://explorer.example/"
	filled := strings.ReplaceAll(template, placeholder, "1")
	u, err := url.Parse(filled)
	switch {
	case len(template) > maxExplorerURL:
		return fmt.Errorf("is longer than %d bytes", maxExplorerURL)
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("must be an %s%s", example, placeholder)
	case u.User != nil:
		return errors.New("must have no user or password, because it is public")
	case strings.Count(template, placeholder) != 1:
		return fmt.Errorf("must have %s once, where the explorer expects it", placeholder)
	case strings.ContainsAny(filled, "{}"):
		return fmt.Errorf("must have no other placeholder than %s", placeholder)
	case strings.Contains(template[:len(u.Scheme)+len("://")+len(u.Host)], "{"):
		return fmt.Errorf("must have %s after its host", placeholder)
	}
	return nil
}

// explorerJSON is an Explorer in /status; a missing link is null.
type explorerJSON struct {
	Tx      *string `json:"tx"`
	Address *string `json:"address"`
	Block   *string `json:"block"`
}

// public returns the Explorer as /status shows it, or nil if there is none.
func (e Explorer) public() *explorerJSON {
	if e == (Explorer{}) {
		return nil
	}
	return &explorerJSON{serve.OrNull(e.Tx), serve.OrNull(e.Address), serve.OrNull(e.Block)}
}

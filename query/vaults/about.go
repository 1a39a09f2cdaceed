package vaults

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/printable"
)

// About is an entry of http.vaults in navlog.yaml: the operator's details of a vault, which no event of a vault has.
type About struct {
	// Address is the address of the vault.
	Address string `yaml:"address" env:"ADDRESS"`
	// Description is plain text on one line, up to 500 characters.
	Description string `yaml:"description" env:"DESCRIPTION"`
	// ManagementFee and PerformanceFee are decimal numbers in percent, such as 2 or 0.5; empty: not known.
	ManagementFee  string `yaml:"managementFee" env:"MANAGEMENT_FEE"`
	PerformanceFee string `yaml:"performanceFee" env:"PERFORMANCE_FEE"`
	// Link is an https URL with more information; empty: none.
	Link string `yaml:"link" env:"LINK"`
}

const (
	maxDescription = 500 // characters
	maxLink        = 500 // bytes
)

var percentText = regexp.MustCompile(`^(0|[1-9][0-9]{0,2})(\.[0-9]{1,6})?$`)

// CheckAbout reports every mistake in the entries of http.vaults.
func CheckAbout(entries []About) error {
	var faults []error
	seen := map[string]int{}
	for i, e := range entries {
		key := fmt.Sprintf("http.vaults[%d]", i)
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Errorf(key+format, args...))
		}
		switch first, twice := seen[strings.ToLower(e.Address)]; {
		case !serve.IsAddress(e.Address):
			fault(".address is %q and must be 0x and 40 hex digits", e.Address)
		case twice:
			fault(".address is the same as http.vaults[%d].address (%s)", first, e.Address)
		default:
			seen[strings.ToLower(e.Address)] = i
		}
		if e == (About{Address: e.Address}) {
			fault(" has only an address: give a description, a fee or a link, or remove it")
		}
		if n := utf8.RuneCountInString(e.Description); n > maxDescription {
			fault(".description has %d characters and must have at most %d", n, maxDescription)
		} else if printable.Text(e.Description, len(e.Description)) != e.Description {
			fault(".description must be plain text on one line")
		}
		for _, fee := range []struct{ name, text string }{
			{"managementFee", e.ManagementFee}, {"performanceFee", e.PerformanceFee},
		} {
			if fee.text != "" && !isPercent(fee.text) {
				fault(".%s is %q and must be a number of percent from 0 to 100, such as 2 or 0.5", fee.name, fee.text)
			}
		}
		if e.Link != "" {
			if err := checkLink(e.Link); err != nil {
				fault(".link %w", err)
			}
		}
	}
	return errors.Join(faults...)
}

func isPercent(text string) bool {
	value, err := strconv.ParseFloat(text, 64)
	return err == nil && percentText.MatchString(text) && value <= 100
}

// checkLink does not repeat the URL in its errors, because it may have a password.
func checkLink(link string) error {
	u, err := url.Parse(link)
	switch {
	case len(link) > maxLink:
		return fmt.Errorf("is longer than %d bytes", maxLink)
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return errors.New("must be an https URL with a host, for example https://vault.example/about")
	case u.User != nil:
		return errors.New("must have no user or password, because every visitor reads it")
	}
	return nil
}

// aboutJSON is what /vaults/{address} has of an About. What the operator does not give is null.
type aboutJSON struct {
	Description    *string `json:"description"`
	ManagementFee  *string `json:"managementFee"`
	PerformanceFee *string `json:"performanceFee"`
	Link           *string `json:"link"`
}

// Abouts are the entries of http.vaults by vault.
type Abouts map[common.Address]About

// ByVault returns entries, which must be valid, by vault.
func ByVault(entries []About) Abouts {
	all := make(Abouts, len(entries))
	for _, e := range entries {
		all[common.HexToAddress(e.Address)] = e
	}
	return all
}

func (a Abouts) of(vault common.Address) aboutJSON {
	e := a[vault]
	return aboutJSON{serve.OrNull(e.Description), serve.OrNull(e.ManagementFee), serve.OrNull(e.PerformanceFee),
		serve.OrNull(e.Link)}
}

// Command clients exercises the Go client on a live system: see smoke.sh, whose three programs send the same requests
// and must print the same line.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/big"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/navlog/navlog/schemas/client"
)

// line is what each of the programs prints.
type line struct {
	ChainID int64     `json:"chainId"`
	Vaults  []string  `json:"vaults"` // address and total assets of each vault
	Users   int64     `json:"users"`
	Then    [2]string `json:"then"` // total deposited by all users as of the middle of the chain
	Now     [2]string `json:"now"`  // the same as of the block
	Partner string    `json:"partner"`
	Refused string    `json:"refused"`
}

func main() {
	log.SetFlags(0)
	address, key, at := os.Args[1], os.Args[2], os.Args[3]
	block, err := strconv.ParseInt(at, 10, 64)
	must(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	public, err := client.New(address, "", nil)
	must(err)
	as := url.Values{"asOfBlock": {at}}

	var l line
	status, err := client.Read[client.Status](public.Get(ctx, "/status", nil))
	must(err)
	l.ChainID = status.Data.ChainID
	vaults, err := client.Read[[]client.Vault](public.Get(ctx, "/api/v1/vaults", as))
	must(err)
	first := int64(0)
	for _, v := range vaults.Data {
		assets := "null"
		if v.TotalAssets != nil {
			assets = *v.TotalAssets
		}
		l.Vaults = append(l.Vaults, v.Address+" "+assets)
		start, err := strconv.ParseInt(v.StartBlock, 10, 64)
		must(err)
		first = max(first, start)
	}
	_, l.Then = deposited(ctx, public, (first+block)/2)
	l.Users, l.Now = deposited(ctx, public, block)

	partner, err := client.New(address, key, nil)
	must(err)
	stats, err := client.Read[client.PartnerStats](partner.Get(ctx, "/api/v1/partner/stats", as))
	must(err)
	l.Partner = fmt.Sprintf("%d %s", stats.Data.PartnerID, stats.Data.TotalVolume)
	unknown, err := client.New(address, "nk_test_unknown", nil)
	must(err)
	_, err = client.Read[client.PartnerStats](unknown.Get(ctx, "/api/v1/partner/stats", nil))
	if refused := (*client.Error)(nil); errors.As(err, &refused) {
		l.Refused = refused.Code
	}
	must(json.NewEncoder(os.Stdout).Encode(l))
}

// deposited pages through all users as of a block, and returns how many there are and how much they deposited.
func deposited(ctx context.Context, public *client.Client, block int64) (users int64, sum [2]string) {
	total := new(big.Int)
	for page := 1; ; page++ {
		list, err := client.Read[[]client.User](public.Get(ctx, "/api/v1/users",
			url.Values{"page": {strconv.Itoa(page)}, "pageSize": {"3"}, "asOfBlock": {strconv.FormatInt(block, 10)}}))
		if err != nil {
			log.Fatalf("page %d as of block %d: %v", page, block, err)
		}
		for _, u := range list.Data {
			amount, ok := new(big.Int).SetString(u.TotalDeposited, 10)
			if !ok {
				log.Fatalf("user %s deposited %q", u.Address, u.TotalDeposited)
			}
			total.Add(total, amount)
			users++
		}
		if meta := list.Meta; !meta.HasNextPage {
			if users != meta.Total {
				log.Fatalf("as of block %d there are %d users, and the pages had %d", block, meta.Total, users)
			}
			return users, [2]string{strconv.FormatInt(block, 10), total.String()}
		}
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

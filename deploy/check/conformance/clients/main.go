// Command clients is what the Go client is tried with on a live system: see smoke.sh, whose
// three programs ask for the same and must print the same line.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/big"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/navlog/navlog/schemas/client"
)

// line is what each of the programs prints.
type line struct {
	ChainID int64     `json:"chainId"`
	Vaults  []string  `json:"vaults"` // address and total assets of each
	Users   int64     `json:"users"`
	Then    [2]string `json:"then"` // what all users deposited, as of the middle of the chain
	Now     [2]string `json:"now"`  // and as of the block
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
	public, err := client.NewClientWithResponses(address, client.WithHTTPClient(&http.Client{Timeout: 10 * time.Second}))
	must(err)

	var l line
	status, err := public.GetStatusWithResponse(ctx)
	must(err)
	l.ChainID = status.JSON200.Data.ChainID
	vaults, err := public.ListVaultsWithResponse(ctx, &client.ListVaultsParams{AsOfBlock: &block})
	must(err)
	first := int64(0)
	for _, v := range vaults.JSON200.Data {
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

	partner, err := client.NewClientWithResponses(address, client.WithKey(key))
	must(err)
	stats, err := partner.GetPartnerStatsWithResponse(ctx, &client.GetPartnerStatsParams{AsOfBlock: &block})
	must(err)
	l.Partner = fmt.Sprintf("%d %s", stats.JSON200.Data.PartnerID, stats.JSON200.Data.TotalVolume)
	stranger, err := client.NewClientWithResponses(address, client.WithKey("nk_test_of_nobody"))
	must(err)
	refused, err := stranger.GetPartnerStatsWithResponse(ctx, nil)
	must(err)
	l.Refused = refused.JSONDefault.Error.Code
	must(json.NewEncoder(os.Stdout).Encode(l))
}

// deposited walks through all users as of a block: how many there are, and what they deposited.
func deposited(ctx context.Context, public *client.ClientWithResponses, block int64) (users int64, sum [2]string) {
	total, size := new(big.Int), 3
	for page := 1; ; page++ {
		list, err := public.ListUsersWithResponse(ctx, &client.ListUsersParams{Page: &page, PageSize: &size, AsOfBlock: &block})
		must(err)
		if list.JSON200 == nil {
			log.Fatalf("page %d as of block %d: %s", page, block, list.Body)
		}
		for _, u := range list.JSON200.Data {
			amount, ok := new(big.Int).SetString(u.TotalDeposited, 10)
			if !ok {
				log.Fatalf("user %s deposited %q", u.Address, u.TotalDeposited)
			}
			total.Add(total, amount)
			users++
		}
		if meta := list.JSON200.Meta; !meta.HasNextPage {
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

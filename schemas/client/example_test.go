package client_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/navlog/navlog/schemas/client"
)

// All users as of one block, page by page, and a key that is refused.
func Example() {
	navlog := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.RequestURI() {
		case "/api/v1/users?page=1&pageSize=1&asOfBlock=57":
			fmt.Fprint(w, `{"ok":true,"data":[{"address":"0x11","totalDeposited":"170"}],"meta":{"total":2,"hasNextPage":true}}`)
		case "/api/v1/users?page=2&pageSize=1&asOfBlock=57":
			fmt.Fprint(w, `{"ok":true,"data":[{"address":"0x22","totalDeposited":"250"}],"meta":{"total":2,"hasNextPage":false}}`)
		default:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"ok":false,"error":{"code":"UNAUTHORIZED","message":"%s is no key.","requestId":"1"}}`, r.Header.Get("x-api-key"))
		}
	}))
	defer navlog.Close()

	api, err := client.NewClientWithResponses(navlog.URL, client.WithKey("nk_test_mine"), client.WithHTTPClient(&http.Client{Timeout: 10 * time.Second}))
	if err != nil {
		log.Fatal(err)
	}
	block, size := int64(57), 1
	for page := 1; ; page++ {
		answer, err := api.ListUsersWithResponse(context.Background(), &client.ListUsersParams{Page: &page, PageSize: &size, AsOfBlock: &block})
		if err != nil {
			log.Fatal(err)
		}
		if answer.JSON200 == nil {
			log.Fatal(answer.Status())
		}
		for _, user := range answer.JSON200.Data {
			fmt.Println(user.Address, user.TotalDeposited)
		}
		if !answer.JSON200.Meta.HasNextPage {
			break
		}
	}
	stats, err := api.GetPartnerStatsWithResponse(context.Background(), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats.JSONDefault.Error.Code, stats.JSONDefault.Error.Message)
	// Output:
	// 0x11 170
	// 0x22 250
	// UNAUTHORIZED nk_test_mine is no key.
}

package oracle

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
)

// sameFile compares both files of a list with the expected rows; columns gives the order of the columns.
func (a *asked) sameFile(path string, columns []string, want []any) {
	a.t.Helper()
	texts := [][]string{columns}
	for _, row := range want {
		var line []string
		for _, c := range columns {
			value := row.(object)[c]
			if value == nil {
				value = ""
			}
			line = append(line, fmt.Sprint(value))
		}
		texts = append(texts, line)
	}
	read, err := csv.NewReader(a.Get(withQuery(path, "format=csv")).Body).ReadAll()
	if err != nil {
		a.t.Fatal(err)
	}
	same(a.t, path+" as CSV", read, texts)

	body := a.Get(path, "Accept", "application/vnd.apache.parquet").Body.Bytes()
	got := readtest.Parquet(a.t, path, body)
	same(a.t, path+" as Parquet", got, texts)
}

var depositColumns = strings.Fields("id vaultAddress vaultName userAddress senderAddress assetAmount shares " +
	"partnerId sweptAt txHash blockNumber logIndex timestamp")

var (
	requestColumns = strings.Fields("id vaultAddress vaultName userAddress receiverAddress requestIndex shares " +
		"assetsEstimate status claimable assetsClaimable assetsClaimed partnerId requestedAt expiresAt fundedAt claimedAt " +
		"cancelledAt expiredAt txHash blockNumber logIndex timestamp")
	eventColumns = strings.Fields("id seq kind vaultAddress vaultName blockNumber timestamp txHash logIndex " +
		"userAddress partnerId depositId requestIndex assets shares navPerShare totalAssets totalSupply fromId toId state " +
		"retractedBySeq effect")
	userColumns = strings.Fields("address firstSeen totalDeposited totalWithdrawn")
	navColumns  = strings.Fields("id vaultAddress vaultName navPerShare totalAssets totalSupply timestamp " +
		"blockNumber txHash logIndex")
	reorganisationColumns = strings.Fields("fromBlock toBlock count logs seq")
	settlementColumns     = strings.Fields("vaultAddress vaultName depositsToSweep.count depositsToSweep.totalAmount " +
		"withdrawalsToFund.count withdrawalsToFund.totalAmount")
	seriesColumns = strings.Fields("start end complete nav.open nav.high nav.low nav.close nav.updates totalAssets " +
		"totalSupply deposits.count deposits.assets requested.count requested.assets claimed.count claimed.assets " +
		"newUsers users")
	vaultColumns = strings.Fields("address name symbol chainId decimals asset.address asset.symbol asset.decimals " +
		"totalAssets totalSupply navPerShare navUpdatedAt startBlock")
)

// TestFiles: the file of each list is the whole list, at the newest block and at a past one, with each filter.
func TestFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("sends one query after the other")
	}
	s := randomScenario(4, func(*scenario) {})
	if !s.hasReorganisation() {
		t.Fatal("the scenario has no reorganisation")
	}
	a := startAPI(t, s.Log)
	a.Server.FileRows = 8 // so that a list takes several reads
	if n := len(At(t, s.Log, s.Seq(), s.head-7).events(nil, false)); n < 4*a.Server.FileRows {
		t.Fatalf("%d events are too few for this test", n)
	}
	for pinned, o := range a.twice(s.head - 7) {
		rows := func(path string, columns []string, want []any) {
			t.Helper()
			a.sameFile(withQuery(path, pinned), columns, want)
		}
		file := func(path string, columns []string) {
			t.Helper()
			var want []any
			for _, row := range o.list(t, path) {
				want = append(want, flat(row))
			}
			rows(path, columns, want)
		}
		var waiting []any
		for _, path := range append(o.vaults(t), "/api/v1") {
			for _, by := range []string{"firstSeen", "totalDeposited", "totalWithdrawn"} {
				file(path+"/users?sortBy="+by, userColumns)
				file(path+"/users?sortOrder=asc&sortBy="+by, userColumns)
			}
			if path == "/api/v1" {
				continue
			}
			vault := vaultOf(path)
			file(path+"/nav", navColumns)
			file(path+"/withdrawals", requestColumns)
			rows(path+"/events", eventColumns, o.events(inVault(vault), false))
			file("/api/v1/queues/withdrawals?vault="+vault.Hex(), requestColumns)
			var mine []any
			for _, group := range o.list(t, "/api/v1/queues/deposits?vault="+vault.Hex()) {
				mine = append(mine, group.(object)["deposits"].([]any)...)
			}
			rows("/api/v1/queues/deposits?vault="+vault.Hex(), depositColumns, mine)
			waiting = append(waiting, mine...)
			series := path + "/series?interval=hour"
			var points []any
			for _, p := range o.answer(t, series).(object)["points"].([]any) {
				points = append(points, flat(p))
			}
			rows(series, seriesColumns, points)
		}
		rows("/api/v1/queues/deposits", depositColumns, waiting)
		for _, width := range []uint64{1, 5} {
			rows(fmt.Sprintf("/api/v1/reorganisations?width=%d", width), reorganisationColumns, o.reorganisations(width))
		}
		file("/api/v1/settlement/summary", settlementColumns)
		file("/api/v1/vaults", vaultColumns)
		file("/api/v1/partner/vaults", vaultColumns)
		file("/api/v1/queues/withdrawals", requestColumns)
		rows("/api/v1/events", eventColumns, o.events(nil, false))
		rows("/api/v1/events?retracted=true", eventColumns, o.events(nil, true))
		for _, u := range people {
			path := "/api/v1/users/" + u.Hex() + "/withdrawals"
			file(path, requestColumns)
			file(path+"?status=claimed", requestColumns)
		}
	}
	a.Get("/api/v1/users?format=csv&sortBy=address").Failed(t, 400, "INVALID_PARAMETER")
	a.Get("/api/v1/vaults/"+readtest.Unknown.Hex()+"/users?format=csv").Failed(t, 404, "NOT_FOUND")
	a.Get("/api/v1/events?format=csv&before=AAAA").Failed(t, 400, "INVALID_PARAMETER")
}

// flat returns a row with the names of a file: those of a nested object after a dot.
func flat(row any) object {
	out := object{}
	for name, value := range row.(object) {
		parts, nested := value.(object)
		for part, v := range parts {
			out[name+"."+part] = v
		}
		if !nested {
			out[name] = value
		}
	}
	return out
}

// TestFilesOfDeposits: a file is the whole list, at the newest block and at a past one, with and without a time
// range.
func TestFilesOfDeposits(t *testing.T) {
	s := randomScenario(4, func(*scenario) {})
	if !s.hasReorganisation() {
		t.Fatal("the scenario has no reorganisation")
	}
	a := startAPI(t, s.Log)
	a.Server.FileRows = 8 // so that a list takes several reads
	for pinned, o := range a.twice(s.head - 7) {
		paths := []string{"/api/v1/partner/deposits"}
		for _, path := range o.vaults(t) {
			paths = append(paths, path+"/deposits",
				fmt.Sprintf("%s/deposits?from=%d&to=%d", path, readtest.BlockTime(12), readtest.BlockTime(25)))
		}
		for _, u := range people {
			paths = append(paths, "/api/v1/users/"+u.Hex()+"/deposits")
		}
		for _, path := range paths {
			a.sameFile(withQuery(path, pinned), depositColumns, o.list(t, path))
		}
	}
	path := "/api/v1/vaults/" + readtest.VaultA.Hex() + "/deposits"
	a.sameFile("/api/v1/users/"+readtest.Alice.Hex()+"/deposits?vault="+readtest.Unknown.Hex(), depositColumns, nil)
	a.Get("/api/v1/vaults/"+readtest.Unknown.Hex()+"/deposits?format=csv").Failed(t, 404, "NOT_FOUND")
	for _, wrong := range []string{"format=xml", "format=csv&page=1", "format=parquet&pageSize=5", "format=csv&from=x"} {
		a.Get(path+"?"+wrong).Failed(t, 400, "INVALID_PARAMETER")
	}
	asOf := fmt.Sprintf("%s?format=csv&asOfBlock=%d", path, s.head-7)
	r := a.Get(asOf, "Accept", "application/vnd.apache.parquet")
	same(t, "header", []string{r.Header().Get("Content-Type"), r.Header().Get("Content-Disposition"),
		r.Header().Get("X-Indexed-Block")},
		[]string{"text/csv; charset=utf-8; header=present",
			fmt.Sprintf(`attachment; filename="navlog-31337-vaults-%s-deposits-%d.csv"`, strings.ToLower(readtest.VaultA.Hex()),
				s.head-7), fmt.Sprint(s.head - 7)})
	if got := a.Get(asOf, "If-None-Match", r.Header().Get("Etag")); got.Code != 304 {
		t.Errorf("a file that the client has returns %d", got.Code)
	}
	for _, accept := range []string{"*/*", "text/html, */*;q=0.8", "text/csv;q=0", "application/json, text/csv;q=0.5",
		"application/json, text/csv"} {
		a.Get(path, "Accept", accept).Data(t)
	}
}

// TestFileOfRewrittenBlock: a reorganisation retracts the blocks of a file after its first rows were read, and another
// one that retracts less follows before the next ones are read. Files from lists are cut off; files from events, files
// about a block that stays, and files whose rows were all read at once are sent completely and unchanged.
func TestFileOfRewrittenBlock(t *testing.T) {
	if testing.Short() {
		t.Skip("sends one query after the other")
	}
	before := readtest.SmallChain()
	var more []readtest.Fact // deposits of eleven users: a file by rows of one ranks ten users at once
	for i := range 11 {
		more = append(more, readtest.Fact{Kind: readtest.Deposit, Vault: readtest.VaultA, User: common.Address{0xd0, byte(i)},
			Other: readtest.Router, ID: uint64(4 + i), Assets: 5, Shares: 5, Block: 12, Index: uint32(i),
			Tx: readtest.Tx(byte(19 + i))})
	}
	before.Append(append(more, readtest.BlockRecord(12))...)
	whole := readtest.NewLog(readtest.ChainID)
	whole.Entries = slices.Clone(before.Entries)
	whole.Retract(9)
	whole.Append(readtest.BlockRecord(10), readtest.BlockRecord(11))
	again := readtest.NewLog(readtest.ChainID)
	again.Entries = slices.Clone(whole.Entries)
	again.Retract(10)
	again.Append(readtest.BlockRecord(11))
	for path, cut := range map[string]bool{
		"/api/v1/queues/withdrawals":                                           true,
		"/api/v1/users":                                                        true,
		"/api/v1/users?sortBy=totalDeposited&sortOrder=asc":                    true,
		"/api/v1/vaults/" + readtest.VaultA.Hex() + "/users":                   true,
		"/api/v1/users/" + readtest.Bob.Hex() + "/withdrawals":                 true,
		"/api/v1/queues/withdrawals?asOfBlock=10":                              true,
		"/api/v1/queues/withdrawals?asOfBlock=9":                               false,
		"/api/v1/users?asOfBlock=9":                                            false,
		"/api/v1/users?sortBy=totalWithdrawn&asOfBlock=9":                      false,
		"/api/v1/vaults/" + readtest.VaultA.Hex() + "/deposits":                true,
		"/api/v1/vaults/" + readtest.VaultA.Hex() + "/withdrawals":             true,
		"/api/v1/queues/deposits":                                              true,
		"/api/v1/events":                                                       false,
		"/api/v1/queues/deposits?asOfBlock=9":                                  false,
		"/api/v1/vaults/" + readtest.VaultA.Hex() + "/deposits?asOfBlock=9":    false,
		"/api/v1/vaults/" + readtest.VaultA.Hex() + "/withdrawals?asOfBlock=9": false,
	} {
		for _, atOnce := range []int{1, 100} {
			g := readtest.New(t, enginetest.ClickHouse(t))
			g.Write(before)
			wrapped := slices.Clone(routes)
			then := func() {}
			for i := range wrapped {
				get := wrapped[i].Get
				wrapped[i].Get = func(r *serve.Request) (*serve.Answer, error) {
					a, err := get(r)
					if err == nil && a.Stream != nil {
						send := a.Stream
						a.Stream = func(ctx context.Context, w io.Writer) error { then(); return send(ctx, w) }
					}
					return a, err
				}
			}
			a := &asked{readtest.Serve(t, g, wrapped...), t, g, before}
			a.Server.FileRows = atOnce
			file := withQuery(path, "format=csv")
			was := a.Get(file).Body.String()
			then = func() { g.Write(whole); g.Write(again) }
			got, ended := a.abrupt(file)
			switch {
			case ended == (cut && atOnce == 1):
				t.Errorf("%s, read by %d rows, is complete: %t\n%s", path, atOnce, ended, got)
			case ended && got != was:
				t.Errorf("%s\n got %s\nwant %s", path, got, was)
			}
		}
	}
}

// abrupt returns the body of a response, and whether it was sent completely.
func (a *asked) abrupt(path string) (body string, ended bool) {
	a.t.Helper()
	rec := httptest.NewRecorder()
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			panic(v)
		}
		body = rec.Body.String()
	}()
	a.Handler.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
	return "", rec.Code == http.StatusOK
}

// TestParquetReadByTheEngine: the engine, a reader other than the library that writes the files, reads the documented
// types and the same values as in the CSV.
func TestParquetReadByTheEngine(t *testing.T) {
	s := randomScenario(4, func(*scenario) {})
	a := startAPI(t, s.Log)
	a.Server.FileRows = 7
	for path, columns := range map[string]string{
		"/api/v1/events": "id String, seq UInt64, kind String, vaultAddress String, vaultName String, blockNumber UInt64, " +
			"timestamp DateTime64(3, 'UTC'), txHash String, logIndex Int64, userAddress Nullable(String), partnerId " +
			"Nullable(Int64), depositId Nullable(UInt64), requestIndex Nullable(UInt64), assets Nullable(String), shares " +
			"Nullable(String), navPerShare Nullable(String), totalAssets Nullable(String), totalSupply Nullable(String), " +
			"fromId Nullable(UInt64), toId Nullable(UInt64), state String, retractedBySeq Nullable(UInt64), effect " +
			"Nullable(String)",
		"/api/v1/vaults/" + readtest.VaultA.Hex() +
			"/series?interval=hour": "start DateTime64(3, 'UTC'), end DateTime64(3, 'UTC'), complete Bool, nav.open " +
			"Nullable(String), nav.high Nullable(String), nav.low Nullable(String), nav.close Nullable(String), nav.updates " +
			"Nullable(Int64), totalAssets Nullable(String), totalSupply Nullable(String), deposits.count Int64, " +
			"deposits.assets String, requested.count Int64, requested.assets String, claimed.count Int64, claimed.assets " +
			"String, newUsers Int64, users Int64",
	} {
		from := fmt.Sprintf("FROM format(Parquet, unhex('%X'))", a.Get(withQuery(path, "format=parquet")).Body.Bytes())
		const settings = " SETTINGS max_query_size = 100000000, max_threads = 1"
		described, err := a.gen.Conn.Query(t.Context(), "SELECT * "+from+settings)
		if err != nil {
			t.Fatal(err)
		}
		var types, texts []string
		for _, c := range described.ColumnTypes() {
			types = append(types, c.Name()+" "+c.DatabaseTypeName())
			text := "toString(`" + c.Name() + "`)"
			if strings.HasPrefix(c.DatabaseTypeName(), "DateTime64") {
				text = "replace(toString(`" + c.Name() + "`), ' ', 'T') || 'Z'"
			}
			texts = append(texts, "ifNull("+text+", '')")
		}
		if err := described.Close(); err != nil {
			t.Fatal(err)
		}
		same(t, path+" has the types", strings.Join(types, ", "), columns)
		var rows []struct {
			Row []string `ch:"row"`
		}
		if err := a.gen.Conn.Select(t.Context(), &rows,
			"SELECT ["+strings.Join(texts, ", ")+"] AS row "+from+settings); err != nil {
			t.Fatal(err)
		}
		read, err := csv.NewReader(a.Get(withQuery(path, "format=csv")).Body).ReadAll()
		if err != nil || len(read) != len(rows)+1 || len(rows) == 0 {
			t.Fatalf("%s: %d lines of CSV and %d rows, %v", path, len(read), len(rows), err)
		}
		for i, r := range rows {
			same(t, path, r.Row, read[i+1])
		}
	}
}

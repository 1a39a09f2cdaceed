package oracle

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/navlog/navlog/query/readtest"
)

// sameFile compares both files of a list with the list that the oracle says, whose order
// of columns is given.
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
	file, err := parquet.OpenFile(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		a.t.Fatalf("%s: %v: %q", path, err, body)
	}
	var names []string
	for _, f := range file.Schema().Fields() {
		names = append(names, f.Name())
	}
	got := [][]string{names}
	reader := parquet.NewReader(file)
	defer reader.Close()
	for range file.NumRows() {
		rows := make([]parquet.Row, 1)
		if n, err := reader.ReadRows(rows); n != 1 {
			a.t.Fatal(n, err)
		}
		var line []string
		for i, f := range file.Schema().Fields() {
			v := rows[0][i]
			switch typed := f.Type().String(); {
			case v.IsNull():
				line = append(line, "")
			case strings.HasPrefix(typed, "TIMESTAMP"):
				line = append(line, time.UnixMilli(v.Int64()).UTC().Format("2006-01-02T15:04:05.000Z"))
			case typed == "STRING":
				line = append(line, string(v.ByteArray()))
			default:
				line = append(line, fmt.Sprint(v.Int64()))
			}
		}
		got = append(got, line)
	}
	same(a.t, path+" as Parquet", got, texts)
}

var depositColumns = strings.Fields("id vaultAddress vaultName userAddress senderAddress assetAmount shares partnerId sweptAt txHash blockNumber logIndex timestamp")

// TestFilesOfDeposits: a file is the whole list, now and at a past block, of all time and
// of some.
func TestFilesOfDeposits(t *testing.T) {
	s := tell(4, func(*story) {})
	if !s.hasReorganisation() {
		t.Fatal("the story has no reorganisation")
	}
	a := serve(t, s.Log)
	a.Server.FileRows = 3 // so that a list has several parts
	for pinned, o := range map[string]*Oracle{"": At(s.Log, s.Seq(), 1<<62), fmt.Sprintf("asOfBlock=%d", s.head-7): At(s.Log, s.Seq(), s.head-7)} {
		for _, v := range o.vaults {
			path := "/api/v1/vaults/" + v.address.Hex() + "/deposits"
			a.sameFile(withQuery(path, pinned), depositColumns, o.vaultDeposits(v.address, nil))
			span := fmt.Sprintf("from=%d&to=%d", readtest.BlockTime(12), readtest.BlockTime(25))
			a.sameFile(withQuery(withQuery(path, span), pinned), depositColumns, o.vaultDeposits(v.address, func(block uint64) bool { return block >= 12 && block <= 25 }))
		}
		for _, u := range people {
			a.sameFile(withQuery("/api/v1/users/"+u.Hex()+"/deposits", pinned), depositColumns, o.depositsNewestFirst(ofUser(u)))
		}
		a.sameFile(withQuery("/api/v1/partner/deposits", pinned), depositColumns, o.depositsNewestFirst(func(e readtest.Entry) bool { return e.Partner == 7 }))
	}
	path := "/api/v1/vaults/" + readtest.VaultA.Hex() + "/deposits"
	a.sameFile("/api/v1/users/"+readtest.Alice.Hex()+"/deposits?vault="+readtest.Nobody.Hex(), depositColumns, nil)
	a.Get("/api/v1/vaults/"+readtest.Nobody.Hex()+"/deposits?format=csv").Failed(t, 404, "NOT_FOUND")
	for _, wrong := range []string{"format=xml", "format=csv&page=1", "format=parquet&pageSize=5", "format=csv&from=x"} {
		a.Get(path+"?"+wrong).Failed(t, 400, "INVALID_PARAMETER")
	}
	asOf := fmt.Sprintf("%s?format=csv&asOfBlock=%d", path, s.head-7)
	r := a.Get(asOf, "Accept", "application/vnd.apache.parquet")
	same(t, "header", []string{r.Header().Get("Content-Type"), r.Header().Get("Content-Disposition"), r.Header().Get("X-Indexed-Block")},
		[]string{"text/csv; charset=utf-8; header=present", fmt.Sprintf(`attachment; filename="navlog-31337-vaults-%s-deposits-%d.csv"`, strings.ToLower(readtest.VaultA.Hex()), s.head-7), fmt.Sprint(s.head - 7)})
	if got := a.Get(asOf, "If-None-Match", r.Header().Get("Etag")); got.Code != 304 {
		t.Errorf("a file that is known is %d", got.Code)
	}
	for _, accept := range []string{"*/*", "text/html, */*;q=0.8", "text/csv;q=0", "application/json, text/csv;q=0.5"} {
		a.Get(path, "Accept", accept).Data(t)
	}
}

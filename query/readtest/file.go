package readtest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

// Parquet reads the file of a list: its columns, and the rows in the form that CSV has.
func Parquet(t testing.TB, path string, body []byte) [][]string {
	t.Helper()
	file, err := parquet.OpenFile(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatalf("%s: %v: %q", path, err, body)
	}
	var names []string
	for _, f := range file.Schema().Fields() {
		names = append(names, f.Name())
	}
	out := [][]string{names}
	reader := parquet.NewReader(file)
	defer reader.Close()
	for range file.NumRows() {
		rows := make([]parquet.Row, 1)
		if n, err := reader.ReadRows(rows); n != 1 {
			t.Fatal(n, err)
		}
		var line []string
		for i, f := range file.Schema().Fields() {
			v := rows[0][i]
			switch typed := f.Type().String(); {
			case v.IsNull():
				line = append(line, "")
			case strings.HasPrefix(typed, "TIMESTAMP"):
				line = append(line, time.UnixMilli(v.Int64()).UTC().Format("2006-01-02T15:04:05.000Z"))
			case typed == "BOOLEAN":
				line = append(line, fmt.Sprint(v.Boolean()))
			case typed == "STRING":
				line = append(line, string(v.ByteArray()))
			default:
				line = append(line, fmt.Sprint(v.Int64()))
			}
		}
		out = append(out, line)
	}
	return out
}

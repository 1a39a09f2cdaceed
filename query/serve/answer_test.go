package serve

import (
	"net/http"
	"testing"

	"github.com/navlog/navlog/query/files"
)

// TestAccepted: the response has the format that the client prefers. A specific name takes precedence over a
// wildcard, whatever their order.
func TestAccepted(t *testing.T) {
	for accept, want := range map[string]files.Format{
		"": "", "*/*": "", "application/json": "", "text/*": "", "text/html, */*;q=0.8": "", "text/csv;q=0": "",
		"text/csv;q=rubbish":         "",
		"application/json, text/csv": "", "text/csv, application/json": "", "application/json, text/csv;q=0.5": "",
		"text/csv, */*": "", "text/csv, application/*": "", "*/*;q=0.5, text/csv;q=0.5": "",
		"text/csv;q=0.5, application/*;q=0.7, */*;q=0.1": "",
		"application/json, */*;q=0.1, text/csv;q=0.9":    "",

		"text/csv": files.CSV, "TEXT/CSV ; charset=utf-8;Q=0.1": files.CSV, "text/csv, */*;q=0.9": files.CSV,
		"text/csv;q=0.2, */*;q=0.1":             files.CSV,
		"text/csv, application/json;q=0.5, */*": files.CSV, "*/*, application/json;q=0, text/csv;q=0.1": files.CSV,
		"text/csv, application/*;q=0.9, */*": files.CSV,
		"application/vnd.apache.parquet":     files.Parquet, "text/csv;q=0.5, application/vnd.apache.parquet": files.Parquet,
		"text/csv, application/vnd.apache.parquet": files.CSV,
	} {
		if got := acceptedFormat(http.Header{"Accept": {accept}}); got != want {
			t.Errorf("Accept: %s is %q, want %q", accept, got, want)
		}
	}
	if got := acceptedFormat(http.Header{"Accept": {"text/csv;q=0.5",
		"application/vnd.apache.parquet;q=0.6, */*;q=0.1"}}); got != files.Parquet {
		t.Errorf("with two header lines: %q", got)
	}
	for accept, want := range map[string]bool{
		"": false, "identity": false, "br": false, "gzip;q=0": false, "gzip; q=0.000": false, "*;q=0": false,
		"*, gzip;q=0": false, "gzip;q=0, *": false,
		"gzip": true, "x-gzip": true, "br, GZIP;q=0.001": true, "*": true, "*;q=0, gzip": true, "br;q=0, *": true,
	} {
		if got := acceptsGzip(http.Header{"Accept-Encoding": {accept}}); got != want {
			t.Errorf("Accept-Encoding: %s accepts gzip: %v", accept, got)
		}
	}
}

package query

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

const (
	jsonKind = "application/json; charset=utf-8"
	// gzipSuffix marks the ETag of a compressed answer: a strong ETag names bytes.
	gzipSuffix = "-gzip"
	// minZipped is the shortest body that is compressed: a shorter one fits into
	// one packet as it is.
	minZipped = 1024
)

// finished is an answer as it goes over the wire, in each of its forms. It may
// be sent many times at once, and nobody changes it.
type finished struct {
	status int
	header http.Header // what both forms say
	tag    string      // hash of the plain body
	plain  form
	zipped func() form // made when it is first asked for
}

// form is a body and the header that goes with its bytes.
type form struct {
	body   []byte
	header http.Header
}

// finish makes the bytes of an answer. header are those that the handler set.
func (a *answer) finish(header http.Header) (*finished, error) {
	body, err := a.body()
	if err != nil {
		return nil, internal(err)
	}
	sum := sha256.Sum256(body)
	all := http.Header{"Content-Type": {cmp.Or(a.kind, jsonKind)}}
	maps.Copy(all, header)
	f := &finished{status: cmp.Or(a.status, http.StatusOK), header: all, tag: hex.EncodeToString(sum[:16])}
	f.plain = newForm(body, f.tag)
	f.zipped = sync.OnceValue(f.zip)
	return f, nil
}

func newForm(body []byte, tag string) form {
	return form{body, http.Header{"Content-Length": {strconv.Itoa(len(body))}, "Etag": {`"` + tag + `"`}}}
}

// zip compresses an answer, where that makes it shorter.
func (f *finished) zip() form {
	if len(f.plain.body) < minZipped {
		return f.plain
	}
	var b bytes.Buffer
	err := zipping(func(w io.Writer) error { _, err := w.Write(f.plain.body); return err })(&b)
	if err != nil || b.Len() >= len(f.plain.body) {
		return f.plain
	}
	zipped := newForm(bytes.Clone(b.Bytes()), f.tag+gzipSuffix)
	zipped.header["Content-Encoding"] = []string{"gzip"}
	return zipped
}

// zippers are kept, for each holds most of a megabyte.
var zippers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// zipping is stream with its bytes compressed.
func zipping(stream func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		z := zippers.Get().(*gzip.Writer)
		defer zippers.Put(z)
		z.Reset(w)
		if err := stream(z); err != nil {
			return err
		}
		return z.Close()
	}
}

// acceptsGzip reads Accept-Encoding (RFC 9110, 12.5.3): gzip counts by its
// name, or by * where it is not named, and a weight of 0 refuses it.
func acceptsGzip(h http.Header) bool {
	accepted := false
	for _, line := range h["Accept-Encoding"] {
		for part := range strings.SplitSeq(line, ",") {
			coding, weight, _ := strings.Cut(part, ";")
			coding, weight = strings.ToLower(strings.TrimSpace(coding)), strings.ToLower(strings.TrimSpace(weight))
			refused := strings.HasPrefix(weight, "q=0") && strings.Trim(weight[len("q="):], "0.") == ""
			switch coding {
			case "gzip", "x-gzip":
				return !refused
			case "*":
				accepted = !refused
			}
		}
	}
	return accepted
}

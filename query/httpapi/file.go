package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/files"
)

const (
	// maxFiles is how many files are being sent at once, a quarter more for partners. A file
	// holds two parts of fileRows in memory, and a slot of the engine only while it reads one.
	maxFiles = 12
	// filesPerPartner are those of one partner.
	filesPerPartner = 3
	// fileRows is how much of a list is asked for at once for a file.
	fileRows = 4000
)

// formatParam is the parameter by which a client asks for a file. It goes before Accept.
const formatParam = "format"

// formatOf is the format of the file that a request asks for; empty where it wants JSON,
// or names what there is not, which readParams reports.
func formatOf(r *http.Request) files.Format {
	if given := r.URL.Query().Get(formatParam); given != "" {
		if _, ok := files.Kinds[files.Format(given)]; ok {
			return files.Format(given)
		}
		return ""
	}
	return acceptedFormat(r.Header)
}

// acceptedFormat is the format that Accept names and weighs more than JSON; empty for none:
// who takes both alike has JSON, as who names neither.
func acceptedFormat(h http.Header) (format files.Format) {
	best := weight(h, "Accept", "application/json", "application/*", "*/*")
	for _, f := range []files.Format{files.CSV, files.Parquet} {
		if w := weight(h, "Accept", files.Kinds[f]); w > best {
			best, format = w, f
		}
	}
	return format
}

// readParams begins to read the parameters of a request.
func (r *Request) readParams() {
	r.Params = newParams(r.HTTP.URL.RawQuery)
	if !r.asFile {
		return
	}
	r.Params.OneOf(formatParam, "json", "json", string(files.CSV), string(files.Parquet))
	if r.format != "" {
		r.Params.whole = r.fileRows
	}
	if r.format == files.CSV && !r.HTTP.ProtoAtLeast(1, 1) {
		r.Params.Fault(formatParam, "must not be csv over HTTP/1.0, which does not tell a whole file from one that was cut off: ask by HTTP/1.1, also where a proxy asks for you, or for parquet")
	}
}

// AsFile tells whether the list is asked for as a file.
func (r *Request) AsFile() bool { return r.format != "" }

// Whole makes the answer that has a whole list, of which next gives some rows at a time, and
// none at its end. The first ones are asked for at once, while an error can still be told,
// and each of the others while the ones before it are written. A file whose block is rewritten
// meanwhile is cut off.
func Whole[T any](ctx context.Context, r *Request, p *ask.Pin, columns []files.Column[T], next func(context.Context) ([]T, error)) (*Answer, error) {
	return whole(ctx, r, fmt.Sprintf("%d-%s-%d", p.ChainID, r.listName(), p.Block), columns, next, func(ctx context.Context) error { return r.Settled(ctx, p) })
}

// Settled reports whether what a long answer read so far is of the state that it is pinned to; the
// error is ask.ErrRewritten where it is not, and what was read must not be written.
func (r *Request) Settled(ctx context.Context, p *ask.Pin) error { return p.Settled(ctx, r.watcher) }

// WholeAsRead is Whole of a list that is about no block, and may change while it is sent: a
// row is as it was when it was read. So nothing but its bytes could name it, and it has no ETag.
func WholeAsRead[T any](ctx context.Context, r *Request, columns []files.Column[T], next func(context.Context) ([]T, error)) (*Answer, error) {
	a, err := whole(ctx, r, r.listName()+"-"+r.watcher.Now().UTC().Format("20060102T150405Z"), columns, next, func(context.Context) error { return nil })
	if a != nil {
		a.untagged = true
	}
	return a, err
}

// listName is what a file is called by: the path of its list.
func (r *Request) listName() string {
	return strings.NewReplacer("/api/v1/", "", "{address}", strings.ToLower(r.vars["address"]), "/", "-").Replace(routeOf(r.HTTP))
}

// whole is Whole by a name. Only while settled says nothing, what next gave is written.
func whole[T any](ctx context.Context, r *Request, name string, columns []files.Column[T], next func(context.Context) ([]T, error), settled func(context.Context) error) (*Answer, error) {
	rows, err := next(ctx)
	if err != nil {
		return nil, err
	}
	return &Answer{Kind: r.format.ContentType(), Name: fmt.Sprintf("navlog-%s.%s", name, r.format), turns: true, Stream: func(ctx context.Context, out io.Writer) error {
		w := files.NewWriter(r.format, columns, out)
		for len(rows) > 0 {
			var more []T
			err := ask.Together(
				func() error { return w.Write(rows) },
				func() (err error) {
					release, err := r.turn(ctx)
					if err != nil {
						return err
					}
					defer release()
					ctx, cancel := context.WithTimeout(ctx, r.work)
					defer cancel()
					if more, err = next(ctx); err == nil {
						err = settled(ctx)
					}
					return err
				},
			)
			if err != nil {
				return err
			}
			rows = more
		}
		return w.Close()
	}}, nil
}

// Once gives the rows of a short list, which are all there.
func Once[T any](rows []T) func(context.Context) ([]T, error) {
	return func(context.Context) ([]T, error) {
		all := rows
		rows = nil
		return all, nil
	}
}

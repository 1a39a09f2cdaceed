package serve

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
	// maxFiles is how many files are sent at once, plus a quarter for partners. A file holds two pages of fileRows in
	// memory, and an engine slot only while it reads one.
	maxFiles = 12
	// fileRows is how many rows of a list are read at once for a file.
	fileRows = 4000
)

// formatParam is the parameter that requests a file. It takes precedence over Accept.
const formatParam = "format"

// formatOf returns the format of the requested file, or "" for JSON and for an unknown format, which readParams
// reports.
func (r *Request) formatOf() files.Format {
	if given := r.query.Get(formatParam); given != "" {
		if _, ok := files.Kinds[files.Format(given)]; ok {
			return files.Format(given)
		}
		return ""
	}
	return acceptedFormat(r.HTTP.Header)
}

// acceptedFormat returns the format that Accept prefers to JSON, or "" if there is none. JSON wins a tie, and is the
// default.
func acceptedFormat(h http.Header) (format files.Format) {
	best := weight(h, "Accept", "application/json", "application/*", "*/*")
	for _, f := range []files.Format{files.CSV, files.Parquet} {
		if w := weight(h, "Accept", files.Kinds[f]); w > best {
			best, format = w, f
		}
	}
	return format
}

// readParams prepares the parameters of a request, and checks those of files.
func (r *Request) readParams() {
	r.Params = newParams(r.query)
	if !r.asFile {
		return
	}
	r.Params.OneOf(formatParam, "json", "json", string(files.CSV), string(files.Parquet))
	if r.format != "" {
		r.Params.whole = r.server.FileRows
	}
	if r.format == files.CSV && !r.HTTP.ProtoAtLeast(1, 1) {
		r.Params.Fault(formatParam,
			"must not be csv over HTTP/1.0, which cannot signal that a file was cut off: use HTTP/1.1, also between a proxy "+
				"and navlog, or request parquet")
	}
}

// AsFile reports whether the list is requested as a file.
func (r *Request) AsFile() bool { return r.format != "" }

// Settled reports whether what a long answer read so far belongs to the state that it is pinned to. The error is
// ask.ErrRewritten if it does not, and then the rows must not be written.
func (r *Request) Settled(ctx context.Context, p *ask.Pin) error {
	return p.Settled(ctx, r.server.Watcher)
}

// listName returns the list's part of a file name, made from its path.
func (r *Request) listName() string {
	return strings.NewReplacer("/api/v1/", "", "{address}", strings.ToLower(r.Path("address")), "/",
		"-").Replace(routeOf(r.HTTP))
}

// Whole returns the answer that contains a whole list; next returns the next rows, and whether there may be more. The
// first rows are read at once, while an error can still be reported, and each later batch while the previous one is
// written. If the file's block is rewritten between two batches, the file is cut off.
//
// p is nil for a list that does not depend on a block and may change while it is sent: each row is as it was when it
// was read. So the file has no ETag, because only its bytes could identify it.
func Whole[T any](
	ctx context.Context, r *Request, p *ask.Pin, next func(context.Context) (rows []T, more bool, err error),
) (*Answer, error) {
	name := r.listName() + "-" + r.server.Watcher.Now().UTC().Format("20060102T150405Z") // when the first rows are read
	if p != nil {
		name = fmt.Sprintf("%d-%s-%d", p.ChainID, r.listName(), p.Block)
	}
	rows, more, err := next(ctx)
	if err != nil {
		return nil, err
	}
	return &Answer{Kind: r.format.ContentType(), Name: fmt.Sprintf("navlog-%s.%s", name, r.format), untagged: p == nil,
		Stream: func(ctx context.Context, out io.Writer) error {
			w := files.NewWriter[T](r.format, out)
			for more {
				var following []T
				err := ask.Together(
					func() error { return w.Write(rows) },
					func() error {
						return r.Turn(ctx, p, func(ctx context.Context) (err error) {
							following, more, err = next(ctx)
							return err
						})
					},
				)
				if err != nil {
					return err
				}
				rows = following
			}
			if err := w.Write(rows); err != nil {
				return err
			}
			return w.Close()
		}}, nil
}

// Listed returns a page of a list, or all of it as a file, which is read page by page: each begins after the last entry
// of the previous one. count returns the number of entries, and describe what the answer has of one.
func Listed[A any, R comparable, T any](ctx context.Context, r *Request, p *ask.Pin, page Page,
	question *ask.Page[A, R], args A,
	count func() (int64, error), describe func(*R) T) (*Answer, error) {
	if r.AsFile() {
		var last *ask.Place
		return Whole(ctx, r, p, func(ctx context.Context) (_ []T, more bool, err error) {
			var rows []R
			rows, last, err = question.After(ctx, p, args, last, page.Size)
			return Each(rows, describe), len(rows) == page.Size, err
		})
	}
	rows, total, err := question.Counted(ctx, p, args, page.Offset(), page.Size, count)
	if err != nil {
		return nil, err
	}
	return r.List(Each(rows, describe), page, total), nil
}

// Each returns what describe makes of each row.
func Each[R, T any](rows []R, describe func(*R) T) []T {
	out := make([]T, len(rows))
	for i := range rows {
		out[i] = describe(&rows[i])
	}
	return out
}

// Short returns a list whose rows are all in memory, or the file of it.
func Short[T any](ctx context.Context, r *Request, p *ask.Pin, rows []T) (*Answer, error) {
	if !r.AsFile() {
		return &Answer{Data: rows}, nil
	}
	return Whole(ctx, r, p, func(context.Context) ([]T, bool, error) { return rows, false, nil })
}

package faultproxy

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// status responds with an HTTP status and body from the provider's front end, without calling a backend.
func status(code int, retryAfter, body string) delivery {
	return func(*exchange) (string, sender, error) {
		detail := fmt.Sprintf("HTTP %d %s", code, http.StatusText(code))
		if retryAfter != "" {
			detail += ", Retry-After: " + retryAfter
		}
		return detail, func(w http.ResponseWriter) {
			if retryAfter != "" {
				w.Header().Set("Retry-After", retryAfter)
			}
			if body[0] == '<' {
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(code)
				_, _ = w.Write([]byte(body))
				return
			}
			sendJSON(w, code, []byte(body))
		}, nil
	}
}

func noContent(*exchange) (string, sender, error) {
	return "HTTP 204", func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }, nil
}

func range413(x *exchange) (string, sender, error) {
	if x.batch {
		return "", nil, nil
	}
	blocks, limit, err := width(x.calls[0], reply{})
	if err != nil || blocks <= limit {
		return "", nil, err
	}
	return status(http.StatusRequestEntityTooLarge, "", `{"message":"response is too large"}`)(x)
}

func reset(*exchange) (string, sender, error) {
	return "the connection is reset", func(w http.ResponseWriter) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset instead of a graceful close
		}
		conn.Close()
	}, nil
}

// batchRefusals are the ways in which relays without batches reject one.
var batchRefusals = []delivery{
	status(http.StatusOK, "", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}`),
	status(http.StatusBadRequest, "", `{"message":"cannot unmarshal array"}`),
	status(http.StatusMethodNotAllowed, "", `{}`),
	status(http.StatusOK, "", `[]`),
	reset,
}

func noBatches(x *exchange) (string, sender, error) {
	return batchRefusals[x.rng.IntN(len(batchRefusals))](x)
}

// resendAs sends the body of the upstream's response in another form, unless the upstream itself failed.
func resendAs(form func(x *exchange, body []byte) (detail string, send sender)) delivery {
	return func(x *exchange) (string, sender, error) {
		code, body, err := x.post(x.body)
		if err != nil || code != http.StatusOK {
			return "", nil, err
		}
		detail, send := form(x, body)
		return detail, send, nil
	}
}

// truncateBody truncates the response; what arrives is complete according to its HTTP headers, but is not valid JSON.
func truncateBody(x *exchange, body []byte) (string, sender) {
	if len(body) < 2 {
		return "", nil
	}
	cut := 1 + x.rng.IntN(len(body)-1)
	// A trailing line feed is not part of the JSON.
	for cut > 1 && (body[cut-1] == '}' || body[cut-1] == ']' || body[cut-1] == '\n') {
		cut--
	}
	return fmt.Sprintf("%d of %d bytes", cut, len(body)),
		func(w http.ResponseWriter) { sendJSON(w, http.StatusOK, body[:cut]) }
}

// slowPieces is the number of pieces of a slow body.
const slowPieces = 5

func slow(x *exchange, body []byte) (string, sender) {
	pause := x.proxy.config.Pause
	return fmt.Sprintf("%d pieces, %s between them", slowPieces, pause), func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		timer := time.NewTimer(0)
		defer timer.Stop()
		for i := range slowPieces {
			select {
			case <-x.ctx.Done():
				return
			case <-timer.C:
			}
			_, _ = w.Write(body[i*len(body)/slowPieces : (i+1)*len(body)/slowPieces])
			_ = http.NewResponseController(w).Flush()
			timer.Reset(pause)
		}
	}
}

func packed(_ *exchange, body []byte) (string, sender) {
	return "gzip", func(w http.ResponseWriter) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write(body)
		_ = z.Close()
	}
}

func marked(_ *exchange, body []byte) (string, sender) {
	return "a byte order mark", func(w http.ResponseWriter) {
		sendJSON(w, http.StatusOK, slices.Concat([]byte("\xef\xbb\xbf\r\n "), body, []byte(" \r\n\t")))
	}
}

func plainText(_ *exchange, body []byte) (string, sender) {
	return "text/plain in chunks", func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusNonAuthoritativeInfo)
		for _, piece := range [][]byte{body[:len(body)/2], body[len(body)/2:]} {
			_, _ = io.Copy(w, bytes.NewReader(piece))
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// rebuilt changes the JSON of the response, or of each response of a batch.
func rebuilt(change func(rng *rand.Rand, answers []map[string]any) []map[string]any) delivery {
	return resendAs(func(x *exchange, body []byte) (string, sender) {
		var answers []map[string]any
		if !x.batch {
			body = slices.Concat([]byte("["), body, []byte("]"))
		}
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if err := d.Decode(&answers); err != nil || len(answers) == 0 {
			return "", nil
		}
		answers = change(x.rng, answers)
		var out any = answers
		if !x.batch {
			out = answers[0]
		}
		return fmt.Sprintf("%d answers", len(answers)),
			func(w http.ResponseWriter) { sendJSON(w, http.StatusOK, mustJSON(out)) }
	})
}

func nullError(rng *rand.Rand, answers []map[string]any) []map[string]any {
	for _, a := range answers {
		if _, has := a["result"]; has && a["result"] != nil {
			a["error"] = []any{nil, "", false, map[string]any{}}[rng.IntN(4)]
		}
	}
	return answers
}

func oddBatch(rng *rand.Rand, answers []map[string]any) []map[string]any {
	answers = append(answers, answers[rng.IntN(len(answers))])
	shuffle(rng, answers)
	return answers
}

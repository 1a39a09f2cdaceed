package faultproxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// status responds with an HTTP status and body from the provider's front end, without calling a backend.
func status(code int, retryAfter, body string) delivery {
	return func(context.Context, *Proxy, *exchange) (string, sender, error) {
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

func range413(ctx context.Context, p *Proxy, x *exchange) (string, sender, error) {
	if x.batch {
		return "", nil, nil
	}
	blocks, err := p.width(ctx, x.calls[0])
	if err != nil || blocks <= p.config.RangeLimit {
		return "", nil, err
	}
	detail := fmt.Sprintf("%d blocks: HTTP 413", blocks)
	return detail, func(w http.ResponseWriter) {
		sendJSON(w, http.StatusRequestEntityTooLarge, []byte(`{"message":"response is too large"}`))
	}, nil
}

// brokenBody truncates the response; what arrives is complete according to its HTTP headers, but is not valid JSON.
func brokenBody(ctx context.Context, p *Proxy, x *exchange) (string, sender, error) {
	code, body, err := p.post(ctx, x.backend, x.body)
	if err != nil || len(body) < 2 {
		return "", nil, err
	}
	cut := 1 + x.rng.IntN(len(body)-1)
	// A trailing line feed is not part of the JSON.
	for cut > 1 && (body[cut-1] == '}' || body[cut-1] == ']' || body[cut-1] == '\n') {
		cut--
	}
	return fmt.Sprintf("%d of %d bytes", cut, len(body)), func(w http.ResponseWriter) { sendJSON(w, code, body[:cut]) },
		nil
}

// slowPieces is the number of pieces of a slow body.
const slowPieces = 5

func slowBody(ctx context.Context, p *Proxy, x *exchange) (string, sender, error) {
	code, body, err := p.post(ctx, x.backend, x.body)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("%d pieces, %s between them", slowPieces, p.config.Pause), func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(code)
		timer := time.NewTimer(0)
		defer timer.Stop()
		for i := range slowPieces {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			_, _ = w.Write(body[i*len(body)/slowPieces : (i+1)*len(body)/slowPieces])
			_ = http.NewResponseController(w).Flush()
			timer.Reset(p.config.Pause)
		}
	}, nil
}

func reset(context.Context, *Proxy, *exchange) (string, sender, error) {
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

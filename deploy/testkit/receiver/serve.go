package receiver

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Serve serves a handler with TLS on a free port of 127.0.0.1: a receiver of one's own. A sender has to trust caFile, the
// authority that is kept in dir. Close the server.
func Serve(dir string, handler http.Handler) (server *http.Server, address, caFile string, err error) {
	now := time.Now()
	ca, err := openAuthority(dir, now)
	if err != nil {
		return nil, "", "", err
	}
	certificate, err := ca.issue(now)
	if err != nil {
		return nil, "", "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", "", fmt.Errorf("listen for webhooks: %w", err)
	}
	server = &http.Server{
		Handler: handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	go server.ServeTLS(listener, "", "")
	return server, listener.Addr().String(), ca.file, nil
}

package receiver

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/navlog/navlog/schemas/certs/certstest"
)

// caLife is how long an authority is valid: longer than any process runs.
const caLife = 2 * 365 * 24 * time.Hour

// A Server is a receiver whose user provides the handler: what to expect, and how to respond.
type Server struct {
	Address string // host:port
	CAFile  string // the certificate that a sender has to trust
	http    *http.Server
}

// Serve serves a handler with TLS on a free port of 127.0.0.1, with a certificate of a new authority, whose own
// certificate is written to dir.
func Serve(dir string, handler http.Handler) (*Server, error) {
	listener, trust, caFile, err := listen(dir)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: handler, TLSConfig: trust,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go server.ServeTLS(listener, "", "")
	return &Server{listener.Addr().String(), caFile, server}, nil
}

// Close stops the server and aborts responses in progress.
func (s *Server) Close() { _ = s.http.Close() }

// listen opens a port, and creates an authority and a certificate for it. Every start creates others: senders learn
// them together with the port, which is another one too.
func listen(dir string) (listener net.Listener, trust *tls.Config, caFile string, err error) {
	now := time.Now()
	ca, err := certstest.NewCA("navlog demo receiver authority", now, now.Add(caLife))
	if err != nil {
		return nil, nil, "", err
	}
	certificate, err := ca.Issue("navlog demo receiver")
	if err != nil {
		return nil, nil, "", err
	}
	caFile = filepath.Join(dir, "receiver-ca.pem")
	if err = os.MkdirAll(dir, 0o755); err == nil {
		err = os.WriteFile(caFile, []byte(ca.PEM()), 0o644)
	}
	if err != nil {
		return nil, nil, "", fmt.Errorf("write the receiver's authority: %w", err)
	}
	if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, nil, "", fmt.Errorf("listen for webhooks: %w", err)
	}
	return listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, caFile, nil
}

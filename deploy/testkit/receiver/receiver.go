package receiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/webhook"
)

const (
	// maxBody is far larger than any event.
	maxBody = 64 << 10
	// remembered is how many event ids are kept to distinguish a repeat from a new event.
	remembered = 10_000
	// closeWait is how long Close lets deliveries in progress finish.
	closeWait = 5 * time.Second
)

// A Receiver responds to the webhooks of some partners and prints them.
type Receiver struct {
	secrets  map[int64]string
	log      *slog.Logger
	server   *http.Server
	address  string
	caFile   string
	served   chan struct{} // closed when the server has stopped
	closing  sync.Once
	closeErr error

	mu   sync.Mutex // guards out and seen
	out  io.Writer
	seen *recent
}

// Start starts a receiver that listens on a free port of 127.0.0.1 until Close, or until ctx is done. It writes the
// certificate of its authority to dir. secrets are the signing secrets by partner id. Each event becomes one line on
// out.
func Start(ctx context.Context, dir string, secrets map[int64]string, out io.Writer, log *slog.Logger) (*Receiver, error) {
	listener, trust, caFile, err := listen(dir)
	if err != nil {
		return nil, err
	}
	r := &Receiver{
		secrets: secrets, log: log, address: listener.Addr().String(), caFile: caFile,
		served: make(chan struct{}), out: out, seen: newRecent(remembered),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /partners/{id}", r.receive)
	r.server = &http.Server{
		Handler:           mux,
		TLSConfig:         trust,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() {
		defer close(r.served)
		if err := r.server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the demo receiver ended", "error", err)
		}
	}()
	go func() {
		select {
		case <-ctx.Done():
			r.Close()
		case <-r.served:
		}
	}()
	return r, nil
}

// URL returns the URL for the partner to register.
func (r *Receiver) URL(partner int64) string {
	return fmt.Sprintf("https://%s/partners/%d", r.address, partner)
}

// CAFile returns the path of the certificate that a sender must trust.
func (r *Receiver) CAFile() string { return r.caFile }

// Close waits up to five seconds for deliveries in progress, and stops. Calling it again is harmless.
func (r *Receiver) Close() error {
	r.closing.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeWait)
		defer cancel()
		if err := r.server.Shutdown(ctx); err != nil {
			r.closeErr = errors.Join(fmt.Errorf("close the demo receiver: %w", err), r.server.Close())
		}
		<-r.served
	})
	return r.closeErr
}

func (r *Receiver) receive(w http.ResponseWriter, request *http.Request) {
	partner, err := strconv.ParseInt(request.PathValue("id"), 10, 64)
	secret, known := r.secrets[partner]
	if err != nil || !known {
		http.Error(w, "no such partner", http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxBody))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge)
			return
		}
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	h := request.Header
	if err := webhook.Verify(secret, h.Get(webhook.HeaderTimestamp), h.Get(webhook.HeaderSignature), body, time.Now()); err != nil {
		r.log.Warn("a webhook was refused", "partner", partner, "error", err)
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	event, err := parse(partner, h, body)
	if err != nil {
		r.log.Warn("a webhook was refused", "partner", partner, "error", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.print(event)
	w.WriteHeader(http.StatusOK)
}

// delivery is an event as the receiver parses it: the data of both kinds in one struct.
type delivery struct {
	ID        uuid.UUID `json:"id"`
	Version   int       `json:"version"`
	Type      string    `json:"type"`
	PartnerID int64     `json:"partnerId"`
	Data      struct {
		UserAddress    string `json:"userAddress"`
		Assets         string `json:"assets"`
		AssetsEstimate string `json:"assetsEstimate"`
		RequestIndex   string `json:"requestIndex"`
		TxHash         string `json:"txHash"`
	} `json:"data"`
}

// parse reads a body whose signature was correct, and compares it with its headers.
func parse(partner int64, h http.Header, body []byte) (*delivery, error) {
	var d delivery
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, fmt.Errorf("the body is not an event: %w", err)
	}
	switch {
	case d.ID == uuid.Nil:
		return nil, errors.New("the event has no id")
	case d.Version != webhook.Version:
		return nil, fmt.Errorf("the event has version %d, this receiver reads %d", d.Version, webhook.Version)
	case h.Get(webhook.HeaderEventID) != d.ID.String():
		return nil, fmt.Errorf("%s is %q and the event's id %s", webhook.HeaderEventID, h.Get(webhook.HeaderEventID), d.ID)
	case h.Get(webhook.HeaderEventType) != d.Type:
		return nil, fmt.Errorf("%s is %q and the event's type %q", webhook.HeaderEventType, h.Get(webhook.HeaderEventType), d.Type)
	case d.PartnerID != partner:
		return nil, fmt.Errorf("the event is for partner %d and came to partner %d", d.PartnerID, partner)
	}
	return &d, nil
}

// print writes the event's line, one event at a time.
func (r *Receiver) print(d *delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	news := "new"
	if !r.seen.add(d.ID) {
		news = "repeat"
	}
	if _, err := fmt.Fprintf(r.out, "%s  (%s)\n", d.line(), news); err != nil {
		r.log.Warn("a webhook could not be printed", "id", d.ID, "error", err)
	}
}

// line describes the event in native units, because it does not contain the asset's decimals.
func (d *delivery) line() string {
	switch head := fmt.Sprintf("%-20s partner %d", d.Type, d.PartnerID); d.Type {
	case webhook.DepositReferral:
		return fmt.Sprintf("%s  %s native units by %s  tx %s", head, d.Data.Assets, d.Data.UserAddress, d.Data.TxHash)
	case webhook.WithdrawalReferral:
		return fmt.Sprintf("%s  request %s, about %s native units by %s  tx %s", head, d.Data.RequestIndex, d.Data.AssetsEstimate, d.Data.UserAddress, d.Data.TxHash)
	default:
		return fmt.Sprintf("%s  id %s", head, d.ID)
	}
}

// recent remembers the newest ids, up to the length of the ring.
type recent struct {
	ids  map[uuid.UUID]struct{}
	ring []uuid.UUID
	next int
}

func newRecent(size int) *recent {
	return &recent{ids: make(map[uuid.UUID]struct{}, size), ring: make([]uuid.UUID, size)}
}

// add reports whether the id is new.
func (s *recent) add(id uuid.UUID) bool {
	if _, found := s.ids[id]; found {
		return false
	}
	delete(s.ids, s.ring[s.next]) // uuid.Nil, which is never added, while the ring fills
	s.ids[id] = struct{}{}
	s.ring[s.next] = id
	s.next = (s.next + 1) % len(s.ring)
	return true
}

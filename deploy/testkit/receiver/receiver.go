package receiver

import (
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

// maxBody is far larger than any event.
const maxBody = 64 << 10

// A Receiver responds to the webhooks of some partners and prints them.
type Receiver struct {
	*Server
	secrets map[int64]string
	log     *slog.Logger

	mu   sync.Mutex // guards out and seen
	out  io.Writer
	seen map[uuid.UUID]bool
}

// Start starts a receiver on a free port of 127.0.0.1. It writes the certificate of its authority to dir. secrets are
// the signing secrets by partner id. Each event becomes one line on out.
func Start(dir string, secrets map[int64]string, out io.Writer, log *slog.Logger) (*Receiver, error) {
	r := &Receiver{secrets: secrets, log: log, out: out, seen: map[uuid.UUID]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /partners/{id}", r.receive)
	var err error
	r.Server, err = Serve(dir, mux)
	return r, err
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
		http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge) // or its sender is gone and reads nothing
		return
	}
	h := request.Header
	if err := webhook.Verify(secret, h.Get(webhook.HeaderTimestamp), h.Get(webhook.HeaderSignature), body,
		time.Now()); err != nil {
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
		return nil, fmt.Errorf("%s is %q and the event's type %q", webhook.HeaderEventType, h.Get(webhook.HeaderEventType),
			d.Type)
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
	if r.seen[d.ID] {
		news = "repeat"
	}
	r.seen[d.ID] = true
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
		return fmt.Sprintf("%s  request %s, about %s native units by %s  tx %s", head, d.Data.RequestIndex,
			d.Data.AssetsEstimate, d.Data.UserAddress, d.Data.TxHash)
	default:
		return fmt.Sprintf("%s  id %s", head, d.ID)
	}
}

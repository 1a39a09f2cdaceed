// Command go receives navlog's webhooks: see ../README.md. Like a partner's receiver, it uses
// only the standard library.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

const (
	tolerance = 300 * time.Second
	maxBody   = 64 << 10
)

// receiver remembers what it has seen in memory; a real one uses its database.
type receiver struct {
	secret []byte

	mu        sync.Mutex
	seen      map[string]bool
	sequences map[int64]bool
	highest   int64
}

// genuine reports whether the body was signed recently with the partner's secret.
func (r *receiver) genuine(h http.Header, body []byte) bool {
	timestamp := h.Get("X-Service-Timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	mac := hmac.New(sha256.New, r.secret)
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	want := []byte("sha256=" + hex.EncodeToString(mac.Sum(nil)))
	// During a rotation there are two signatures, and one of them is made with this receiver's secret.
	return hmac.Equal([]byte(h.Get("X-Service-Signature")), want) ||
		hmac.Equal([]byte(h.Get("X-Service-Signature-Next")), want)
}

// note reports whether an event is new or a repeat, and how many sequences are missing below
// the highest.
func (r *receiver) note(id, sequence string) (news string, missing int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	news = "new"
	if r.seen[id] {
		news = "repeat"
	}
	r.seen[id] = true
	if n, err := strconv.ParseInt(sequence, 10, 64); err == nil {
		r.sequences[n] = true
		r.highest = max(r.highest, n)
	}
	return news, r.highest - int64(len(r.sequences))
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxBody))
	if err != nil {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	if !r.genuine(request.Header, body) {
		http.Error(w, "not genuine", http.StatusUnauthorized)
		return
	}
	// From the body: headers are not signed, and a copied request may have another id there.
	var event struct{ ID, Type string }
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "no event", http.StatusBadRequest)
		return
	}
	news, missing := r.note(event.ID, request.Header.Get("X-Service-Sequence"))
	fmt.Println(news, event.ID, event.Type, "missing", missing)
	w.WriteHeader(http.StatusNoContent)
}

func main() {
	secret := os.Getenv("WEBHOOK_SECRET")
	if secret == "" {
		log.Fatal("WEBHOOK_SECRET is not set")
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "0"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening", listener.Addr().(*net.TCPAddr).Port)
	r := &receiver{secret: []byte(secret), seen: map[string]bool{}, sequences: map[int64]bool{}}
	server := &http.Server{Handler: r, ReadTimeout: 10 * time.Second}
	log.Fatal(server.ServeTLS(listener, os.Getenv("TLS_CERT"), os.Getenv("TLS_KEY")))
}

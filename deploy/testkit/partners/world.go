package partners

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/webhook"
)

// A World is a Kafka with the referral topics and a PostgreSQL with partners.
type World struct {
	stack.Stack
	Dir string

	client  *kgo.Client
	mu      sync.Mutex
	secrets map[int64]string // partners' signing secrets, by id
}

// Start starts a world in dir, which PostgreSQL's user must be able to enter.
func Start(ctx context.Context, dir string) (*World, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	w := &World{Dir: dir, secrets: map[int64]string{}}
	if err := w.start(ctx); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *World) start(ctx context.Context) (err error) {
	if err := os.MkdirAll(w.Dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of a run: %w", err)
	}
	in := stack.In(w.Dir)
	in.ClickHouse = ""
	started, err := stack.Start(ctx, in)
	if err != nil {
		return err
	}
	w.Stack = *started
	return errors.Join(w.makeTopics(ctx), w.Connect(ctx))
}

func (w *World) makeTopics(ctx context.Context) (err error) {
	if w.client, err = kgo.NewClient(append(w.Chainlog().Options(), kgo.ProducerLinger(0))...); err != nil {
		return fmt.Errorf("create a Kafka client: %w", err)
	}
	return chainlog.EnsureTopics(ctx, kadm.NewClient(w.client), chainID, w.Chainlog().Topology())
}

// RemakeTopic deletes a referral topic with all its records, and creates it again under another id.
func (w *World) RemakeTopic(ctx context.Context, topic string) error {
	answers, err := kadm.NewClient(w.client).DeleteTopics(ctx, topic)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	w.client.Close() // it writes to the old id
	return w.makeTopics(ctx)
}

// Close stops the engines.
func (w *World) Close() error {
	if w.client != nil {
		w.client.Close()
	}
	return w.Stack.Close()
}

// Produce appends referrals to their topics and returns when all are acknowledged.
func (w *World) Produce(ctx context.Context, referrals ...Referral) error {
	records := make([]*kgo.Record, len(referrals))
	for i, r := range referrals {
		records[i] = &kgo.Record{Topic: r.Topic, Key: []byte(strconv.FormatUint(uint64(r.Partner), 10)), Value: r.Value}
	}
	if err := w.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("append %d referrals: %w", len(referrals), err)
	}
	return nil
}

// Partner creates a partner with a webhook URL, or without one if url is empty.
func (w *World) Partner(ctx context.Context, id int64, url string) error {
	made, err := Make(ctx, w.Pool, id, fmt.Sprintf("partner %d", id), url)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.secrets[id] = made.SigningSecret
	return err
}

// Event returns the event and the partner of a request, whose path has the value partner. It is an error if the request
// is not signed with that partner's secret, as of this time.
func (w *World) Event(r *http.Request, body []byte, now time.Time) (id uuid.UUID, partner int64, err error) {
	h := r.Header
	if id, err = uuid.Parse(h.Get(webhook.HeaderEventID)); err != nil {
		return id, 0, fmt.Errorf("event id %q: %w", h.Get(webhook.HeaderEventID), err)
	}
	partner, _ = strconv.ParseInt(r.PathValue("partner"), 10, 64)
	w.mu.Lock()
	secret := w.secrets[partner]
	w.mu.Unlock()
	err = webhook.Verify(secret, h.Get(webhook.HeaderTimestamp), h.Get(webhook.HeaderSignature), body, now)
	if err != nil {
		err = fmt.Errorf("event %s: %w", id, err)
	}
	return id, partner, err
}

// Dispatch starts `navlog dispatch`. navlog is the binary, caFile the certificate that it trusts; its output is
// appended to logName in the world's folder.
func (w *World) Dispatch(navlog, caFile, logName string, settings ...string) (*stack.Process, error) {
	own := []string{"NAVLOG_CHAIN_ID=" + strconv.Itoa(chainID), "NAVLOG_SECRET_KEY=" + SealKey,
		"NAVLOG_WEBHOOKS_CA_FILE=" + caFile, "NAVLOG_GUARD_ALLOW_NETWORKS=" + Network}
	return w.Run(navlog, "dispatch", filepath.Join(w.Dir, logName), append(own, settings...)...)
}

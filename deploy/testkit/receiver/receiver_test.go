package receiver

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/webhook"
)

const (
	secretOne = "whsec_one"
	secretTwo = "whsec_two"
)

var secrets = map[int64]string{1: secretOne, 2: secretTwo}

// lines is an output that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t *testing.T) (*Receiver, *http.Client, *lines) {
	t.Helper()
	out := &lines{}
	r, err := Start(t.TempDir(), secrets, out, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, clientTrusting(t, r.CAFile), out
}

func clientTrusting(t *testing.T, caFile string) *http.Client {
	t.Helper()
	trust, err := certs.Files{CA: caFile}.Config()
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// post is a delivery, which a test can make incorrect.
type post struct {
	url, method, id, kind, body, secret string
	at                                  time.Time
}

func urlOf(r *Receiver, partner int) string {
	return fmt.Sprintf("https://%s/partners/%d", r.Address, partner)
}

func depositOf(r *Receiver, id string) post {
	return post{
		url: urlOf(r, 1), method: http.MethodPost, id: id, kind: "deposit.referral", secret: secretOne, at: time.Now(),
		body: `{"id":"` + id + `","version":1,"type":"deposit.referral","createdAt":"2026-01-02T03:04:05.000Z","partnerId":1,` +
			`"data":{"vaultAddress":"0x01","userAddress":"0xAb","assets":"12500000","shares":"12","txHash":"0xfe","blockNumber":"7","logIndex":0,"timestamp":"2026-01-02T03:04:05.000Z"}}`,
	}
}

func (p post) send(t *testing.T, client *http.Client) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), p.method, p.url, strings.NewReader(p.body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Service-Event-Id", p.id)
	request.Header.Set("X-Service-Event-Type", p.kind)
	request.Header.Set("X-Service-Timestamp", strconv.FormatInt(p.at.Unix(), 10))
	request.Header.Set("X-Service-Signature", webhook.Sign(p.secret, p.at.Unix(), []byte(p.body)))
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(b)
}

func TestPrintsEachEvent(t *testing.T) {
	r, client, out := start(t)
	deposit := depositOf(r, "11111111-1111-4111-8111-111111111111")
	request := post{
		url: urlOf(r, 2), method: http.MethodPost, id: "22222222-2222-4222-8222-222222222222", kind: "withdrawal.referral",
		secret: secretTwo, at: time.Now(),
		body: `{"id":"22222222-2222-4222-8222-222222222222","version":1,"type":"withdrawal.referral","partnerId":2,"data":{"userAddress":"0xCd","requestIndex":"4","assetsEstimate":"99","txHash":"0xaa"}}`,
	}
	test := post{
		url: urlOf(r, 1), method: http.MethodPost, id: "33333333-3333-4333-8333-333333333333", kind: "webhook.test",
		secret: secretOne, at: time.Now(),
		body: `{"id":"33333333-3333-4333-8333-333333333333","version":1,"type":"webhook.test","partnerId":1,"data":{}}`,
	}
	for _, p := range []post{deposit, request, deposit, test} {
		if status, answer := p.send(t, client); status != http.StatusOK {
			t.Fatalf("%s was answered with %d %s", p.kind, status, answer)
		}
	}
	want := "deposit.referral     partner 1  12500000 native units by 0xAb  tx 0xfe  (new)\n" +
		"withdrawal.referral  partner 2  request 4, about 99 native units by 0xCd  tx 0xaa  (new)\n" +
		"deposit.referral     partner 1  12500000 native units by 0xAb  tx 0xfe  (repeat)\n" +
		"webhook.test         partner 1  id 33333333-3333-4333-8333-333333333333  (new)\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out, want)
	}
}

func TestRefuses(t *testing.T) {
	r, client, out := start(t)
	const id = "11111111-1111-4111-8111-111111111111"
	for name, try := range map[string]struct {
		change func(*post)
		status int
		answer string
	}{
		"another partner's secret": {func(p *post) { p.secret = secretTwo }, 401, "does not match the body"},
		"an old timestamp": {func(p *post) { p.at = p.at.Add(-webhook.Tolerance - 10*time.Second) }, 401,
			"away from the clock"},
		"a future timestamp": {func(p *post) { p.at = p.at.Add(webhook.Tolerance + 10*time.Second) }, 401,
			"away from the clock"},
		"an unknown partner":          {func(p *post) { p.url = urlOf(r, 3) }, 404, "no such partner"},
		"a partner that is not an id": {func(p *post) { p.url = urlOf(r, 1) + "x" }, 404, "no such partner"},
		"another path":                {func(p *post) { p.url = strings.TrimSuffix(urlOf(r, 1), "/partners/1") }, 404, ""},
		"another method":              {func(p *post) { p.method = http.MethodPut }, 405, ""},
		"a large body":                {func(p *post) { p.body += strings.Repeat(" ", maxBody) }, 413, "too large"},
		"no JSON":                     {func(p *post) { p.body = "hello" }, 400, "not an event"},
		"no id":                       {func(p *post) { p.body = `{"version":1}` }, 400, "has no id"},
		"another version": {func(p *post) { p.body = strings.Replace(p.body, `"version":1`, `"version":2`, 1) },
			400, "version 2"},
		"another id in the header": {func(p *post) { p.id = strings.Replace(id, "1", "2", 1) }, 400, "X-Service-Event-Id"},
		"another type in the header": {
			func(p *post) { p.kind = "withdrawal.referral" }, 400, "X-Service-Event-Type",
		},
		"another partner in the body": {func(p *post) {
			p.body = strings.Replace(p.body, `"partnerId":1`, `"partnerId":2`,
				1)
		}, 400, "for partner 2"},
	} {
		p := depositOf(r, id)
		try.change(&p)
		status, answer := p.send(t, client)
		if status != try.status || !strings.Contains(answer, try.answer) {
			t.Errorf("%s: answered with %d %q, want %d %q", name, status, answer, try.status, try.answer)
		}
		if strings.Contains(answer, secretOne) || strings.Contains(answer, secretTwo) {
			t.Errorf("%s: the answer tells a secret: %s", name, answer)
		}
	}
	if out.String() != "" {
		t.Errorf("refused deliveries were printed: %s", out)
	}
	if status, answer := depositOf(r, id).send(t, client); status != 200 || !strings.HasSuffix(out.String(), "(new)\n") {
		t.Errorf("after all that the right delivery was answered with %d %q and printed as %q", status, answer, out)
	}
}

func TestASignatureIsOverTheRawBytes(t *testing.T) {
	r, client, _ := start(t)
	p := depositOf(r, "11111111-1111-4111-8111-111111111111")
	// the same JSON
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url, strings.NewReader(p.body+" "))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Service-Event-Id", p.id)
	request.Header.Set("X-Service-Event-Type", p.kind)
	request.Header.Set("X-Service-Timestamp", strconv.FormatInt(p.at.Unix(), 10))
	request.Header.Set("X-Service-Signature", webhook.Sign(p.secret, p.at.Unix(), []byte(p.body)))
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("answered with %d", response.StatusCode)
	}
}

// broken is an output that always fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, fmt.Errorf("gone") }

func TestABrokenOutputIsNotThePartnersFault(t *testing.T) {
	warnings := &lines{}
	r, err := Start(t.TempDir(), secrets, broken{}, slog.New(slog.NewTextHandler(warnings, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	status, _ := depositOf(r, "11111111-1111-4111-8111-111111111111").send(t, clientTrusting(t, r.CAFile))
	if status != 200 || !strings.Contains(warnings.String(), "could not be printed") {
		t.Errorf("answered with %d, said %q", status, warnings)
	}
}

package dispatch

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook"
)

const samples = "../schemas/webhook/samples"

// skipWithout skips the test if something is missing on the machine; in CI that is a failure.
func skipWithout(t *testing.T, what string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is missing: %v", what, err)
	default:
		t.Skipf("%s is missing: %v (`make samples` fetches npm packages)", what, err)
	}
}

// Each sample receives real deliveries: it accepts them, recognises a repeat, notices a gap,
// rejects another secret, and accepts both secrets of a rotation.
func TestSampleReceivers(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the sample receivers one after another")
	}
	for name, command := range map[string]func(*testing.T) []string{
		"go":         goSample,
		"typescript": typescriptSample,
		"python":     pythonSample,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			s := f.sample(testSecret, command(t)...)
			f.partner(7, s.url)
			f.start(nil)
			f.delivers(0, 3)
			f.exec("INSERT INTO command (partner_id, kind, event_id) SELECT 7, 'replay', event_id FROM delivery WHERE " +
				"sequence = 2")
			f.eventually("the repeat is reported", func() bool { return strings.Count(s.reports(), "repeat ") == 1 })
			f.eventually("delivered", f.in(registry.Delivered, 3))

			// A copy of a delivery has another id in the header, which is not signed.
			var body []byte
			f.check(f.pool.QueryRow(t.Context(), "SELECT body FROM delivery WHERE sequence = 1").Scan(&body))
			now := time.Now().Unix()
			copied := fmt.Sprintf(
				"X-Service-Timestamp: %d\r\nX-Service-Signature: %s\r\nX-Service-Event-Id: %s\r\nContent-Length: %d\r\n\r\n%s",
				now, webhook.Sign(testSecret, now, body), uuid.New(), len(body), body,
			)
			if status := f.sends(s, copied); status != 204 {
				t.Errorf("a copied delivery: %d", status)
			}
			f.eventually("the copy is a repeat", func() bool { return strings.Count(s.reports(), "repeat ") == 2 })
			for _, unsigned := range []string{
				"Content-Length: -1\r\n\r\n", "X-Service-Timestamp: " + strings.Repeat("9", 5000) + "\r\nContent-Length: 0\r\n\r\n",
			} {
				if status := f.sends(s, unsigned); status < 400 || status > 499 {
					t.Errorf("%.30q: %d", unsigned, status)
				}
			}

			// Sequence 4 is never sent: the receiver notices.
			f.exec("UPDATE stream SET last_sequence = 4")
			f.deposits(7, 3, 4)
			f.eventually("the gap is reported", func() bool { return strings.Contains(s.reports(), "missing 1") })

			// The receiver has the secret that the partner is about to replace.
			next := registry.NewSigningSecret()
			_, err := f.queries.RotateSecret(
				t.Context(), db.RotateSecretParams{PartnerID: 7, NextSecret: f.sealer.Seal(7, next), OverlapSeconds: 3600},
			)
			f.check(err)
			f.delivers(4, 5)

			// Another receiver already has the new secret.
			s = f.sample(next, command(t)...)
			f.setURL(7, s.url)
			f.eventually("the new URL is known", func() bool {
				e, known, err := f.known(7)
				return err == nil && known && e.URL == s.url
			})
			f.delivers(5, 6)

			wrong := f.sample(registry.NewSigningSecret(), command(t)...)
			f.partner(8, wrong.url)
			f.deposits(8, 6, 7)
			f.eventually("refused", f.in(registry.Failed, 1))
			if n := f.number("SELECT count(*) FROM attempt WHERE status = 401"); n < 4 {
				t.Errorf("%d attempts with another secret were rejected", n)
			}
		})
	}
}

func goSample(t *testing.T) []string {
	binary := filepath.Join(t.TempDir(), "receiver")
	if out, err := exec.Command("go", "build", "-o", binary, samples+"/go").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return []string{binary}
}

var compiled sync.Once

func typescriptSample(t *testing.T) []string {
	node, err := exec.LookPath("node")
	skipWithout(t, "node", err)
	_, err = os.Stat(samples + "/node_modules/typescript")
	skipWithout(t, "the npm package typescript", err)
	compiled.Do(func() {
		if out, err := exec.Command(
			node, samples+"/node_modules/typescript/bin/tsc", "-p", samples,
		).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	})
	return []string{node, samples + "/typescript/receiver.js"}
}

func pythonSample(t *testing.T) []string {
	python, err := exec.LookPath("python3")
	skipWithout(t, "python3", err)
	return []string{python, samples + "/python/receiver.py"}
}

// sample is a receiver that runs as a process.
type sample struct {
	url string
	out *lockedBuffer
}

func (s *sample) reports() string { return s.out.String() }

func (f *fixture) sample(secret string, command ...string) *sample {
	f.Helper()
	dir := f.TempDir()
	trusted := f.receiver(ok) // the dispatchers trust its certificate
	key, err := x509.MarshalPKCS8PrivateKey(trusted.TLS.Certificates[0].PrivateKey)
	f.check(err)
	f.check(os.WriteFile(filepath.Join(dir, "cert.pem"), pem.EncodeToMemory(&pem.Block{
		Type: "CERTIFICATE", Bytes: trusted.Certificate().Raw,
	}), 0o600))
	f.check(os.WriteFile(
		filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600,
	))
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(
		os.Environ(), "WEBHOOK_SECRET="+secret, "TLS_CERT="+filepath.Join(dir, "cert.pem"),
		"TLS_KEY="+filepath.Join(dir, "key.pem"), "PORT=0",
	)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	f.check(err)
	f.check(cmd.Start())
	lines := bufio.NewReader(stdout)
	first, err := lines.ReadString('\n')
	f.check(err)
	s := &sample{
		out: &lockedBuffer{}, url: "https://127.0.0.1:" + strings.TrimSpace(strings.TrimPrefix(first, "listening ")) + "/",
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = lines.WriteTo(s.out)
	}()
	f.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	})
	return s
}

// sends sends a request to a sample, from its second line on, and returns the status of the response.
func (f *fixture) sends(s *sample, request string) int {
	f.Helper()
	address := strings.Trim(strings.TrimPrefix(s.url, "https:"), "/")
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	f.check(err)
	defer conn.Close()
	f.check(conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = conn.Write([]byte("POST / HTTP/1.1\r\nHost: " + address + "\r\n" + request))
	f.check(err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	f.check(err)
	defer response.Body.Close()
	return response.StatusCode
}

// Independent libraries accept what navlog sends: Stripe's and GitHub's once the header is
// converted to their format, that of Standard Webhooks as it is.
func TestForeignLibrariesVerify(t *testing.T) {
	node, err := exec.LookPath("node")
	skipWithout(t, "node", err)
	_, err = os.Stat(samples + "/node_modules/standardwebhooks")
	skipWithout(t, "the npm package standardwebhooks", err)
	f := newFixture(t)
	r := f.partner7(ok)
	odd := f.unusualDelivery(7)
	f.start(nil)
	f.deposits(7, 1, 2)
	f.replay(7, odd)
	f.eventually("delivered", f.in(registry.Delivered, 2))
	for _, c := range r.got() {
		headers := map[string]string{}
		for name := range c.header {
			headers[name] = c.header.Get(name)
		}
		input, err := json.Marshal(map[string]any{"headers": headers, "body": string(c.body), "secret": testSecret})
		f.check(err)
		cmd := exec.Command(node, samples+"/verify.mjs")
		cmd.Stdin = bytes.NewReader(input)
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != "stripe\noctokit\nstandardwebhooks\n" {
			t.Errorf("%s: %v: %s", c.body, err, out)
		}
	}
}

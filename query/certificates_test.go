package query

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/certs/certstest"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	certificatesPath = webhooksPath + "/certificates"
	removePath       = certificatesPath + "/remove"
	sevensURL        = "https://seven.example/hook"
)

// body returns a JSON object of texts: names and values in turn.
func body(namesAndValues ...string) string {
	fields := make(map[string]string)
	for pair := range slices.Chunk(namesAndValues, 2) {
		fields[pair[0]] = pair[1]
	}
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// certificatesOf lists the subjects in an answer: "URL used: authorities / client certificates".
func certificatesOf(data any) []string {
	list := []string{}
	for _, one := range data.(object)["certificates"].([]any) {
		entry := one.(object)
		subjects := func(of string) (all []string) {
			for _, c := range entry[of].([]any) {
				all = append(all, c.(object)["subject"].(string))
			}
			return all
		}
		list = append(list, fmt.Sprintf("%s %v: %v / %v", entry["url"], entry["used"], subjects("authorities"),
			subjects("client")))
	}
	return list
}

// A partner sets, reads, renews and removes its certificates at the server, whose login has navlog_rotation. The key is
// stored sealed, dispatch can open it, and it is in no answer, no log and no audit.
func TestPartnerSetsCertificates(t *testing.T) {
	w := newRotations(t, "login_certifying_serve", "navlog_serve, navlog_rotation", allowed)
	key := w.partner(7, "Seven")
	eights := w.partner(8, "Eight")
	ca := certstest.New(t)
	first, second := ca.Texts(ca.Client("first")), ca.Texts(ca.Client("second"))
	same(t, "before", certificatesOf(w.get(certificatesPath, "x-api-key", key).Data(t)), []string{})
	all := body("authorities", first.Authorities, "certificate", first.Client, "key", first.Key)
	w.post(certificatesPath, all, key).Failed(t, 404, "NOT_FOUND") // there is no URL
	w.post(webhooksPath, body("url", sevensURL), key).Data(t)

	got := w.post(certificatesPath, all, key).Data(t)
	same(t, "set", certificatesOf(got), []string{sevensURL + " true: [CN=an authority] / [CN=first]"})
	client := got.(object)["certificates"].([]any)[0].(object)["client"].([]any)[0].(object)
	leaf := ca.Certificate
	same(t, "validity", []any{client["issuer"], client["notBefore"], client["notAfter"]}, []any{
		"CN=an authority", leaf.NotBefore.UTC().Format("2006-01-02T15:04:05.000Z"),
		leaf.NotAfter.UTC().Format("2006-01-02T15:04:05.000Z"),
	})
	renewed := body("certificate", second.Client, "key", second.Key, "more", "ignored")
	same(t, "renewed", certificatesOf(w.post(certificatesPath, renewed, key).Data(t)),
		[]string{sevensURL + " true: [CN=an authority] / [CN=second]"})
	same(t, "used by dispatch", w.used(7), "second")

	// The URL that the partner will use next, in another form.
	next := body("authorities", ca.PEM(), "url", " https://NEXT.example:443/hook")
	want := []string{sevensURL + " true: [CN=an authority] / [CN=second]",
		"https://next.example/hook false: [CN=an authority] / []"}
	same(t, "of another URL", certificatesOf(w.post(certificatesPath, next, key).Data(t)), want)
	same(t, "read again", certificatesOf(w.get(certificatesPath, "x-api-key", key).Data(t)), want)
	same(t, "of another partner", certificatesOf(w.get(certificatesPath, "x-api-key", eights).Data(t)), []string{})
	w.post(removePath, body("url", sevensURL), eights).Failed(t, 404, "NOT_FOUND")

	want[0] = sevensURL + " true: [CN=an authority] / []"
	same(t, "without client certificate", certificatesOf(w.post(removePath, body("only", "client"), key).Data(t)), want)
	same(t, "without the next", certificatesOf(w.post(removePath, body("url", "https://next.example/hook"), key).Data(t)),
		want[:1])
	w.post(removePath, body("only", "client"), key).Failed(t, 404, "NOT_FOUND")
	same(t, "without any", certificatesOf(w.post(removePath, "", key).Data(t)), []string{})

	rows, err := db.New(w.owner).ListAudit(t.Context(), db.ListAuditParams{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[string]int{}
	for _, row := range rows {
		if strings.HasPrefix(row.Command, "partner certificates") && row.Outcome == registry.ActionDone {
			recorded[row.Command]++
			same(t, "the audit", fmt.Sprint(row.Operator, row.PartnerID, row.Login),
				fmt.Sprint("partner 7", 7, "login_certifying_serve"))
		}
	}
	same(t, "rows of the audit", fmt.Sprint(recorded), "map[partner certificates remove:3 partner certificates set:3]")
	for what, text := range map[string]string{"the log": w.logged.String(), "the audit": fmt.Sprint(rows)} {
		if strings.Contains(text, "PRIVATE KEY") || strings.Contains(text, "seven.example") {
			t.Errorf("%s has a key or a URL", what)
		}
	}
}

// used returns the name in the client certificate that dispatch would use for a partner.
func (w rotations) used(id int64) string {
	w.t.Helper()
	q := db.New(w.owner)
	endpoints, err := q.Endpoints(w.t.Context(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range endpoints {
		if e.PartnerID != id {
			continue
		}
		if strings.Contains(string(e.ClientKey), "PRIVATE") {
			w.t.Error("the key is stored unencrypted")
		}
		p, err := w.sealer.OpenCertificates(e)
		if err != nil {
			w.t.Fatal(err)
		}
		return p.Client.Leaf.Subject.CommonName
	}
	return ""
}

// Unusable certificates are refused with one sentence that names the mistake, and nothing is stored.
func TestCertificatesThatAreRefused(t *testing.T) {
	withoutDetector(t)
	w := newRotations(t, "login_refusing_serve", "navlog_serve, navlog_rotation", allowed)
	key := w.partner(7, "Seven")
	w.post(webhooksPath, body("url", sevensURL), key).Data(t)
	ca := certstest.New(t)
	good := ca.Texts(ca.Client("seven"))
	late, err := ca.IssueUntil("late", time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	expired := ca.Texts(late)
	const invalid = "INVALID_BODY"
	for _, c := range []struct {
		path, body string
		status     int
		code, want string
	}{
		{certificatesPath, `[]`, 400, invalid, "must be a JSON object"},
		{certificatesPath, `null`, 400, invalid, "must be a JSON object"},
		{certificatesPath, `{}`, 400, invalid, "give authorities, or certificate and key, or all three"},
		{certificatesPath, `{"Authorities":"x"}`, 400, invalid, "give authorities, or certificate and key, or all three"},
		{certificatesPath, `{"authorities":7}`, 400, invalid, "The field authorities must be a string"},
		{certificatesPath, `{"authorities":null}`, 400, invalid, "The field authorities must be a string"},
		{certificatesPath, `{"key":""}`, 400, invalid, "The field key must be a string that is not empty"},
		{certificatesPath, body("certificate", good.Client), 400, invalid,
			"the client certificate has no private key: give both, or neither."},
		{certificatesPath, body("key", good.Key), 400, invalid,
			"the private key has no client certificate: give both, or neither."},
		{certificatesPath, body("authorities", good.Key), 400, invalid, "a private key where only certificates belong"},
		{certificatesPath, body("authorities", good.Client), 400, invalid, "it has no CA flag"},
		{certificatesPath, body("authorities", strings.Repeat("#", certs.MaxPEM+1)), 400, invalid, "longer than 65536 bytes"},
		{certificatesPath, body("certificate", expired.Client, "key", expired.Key), 400, invalid, "expired at"},
		{certificatesPath, body("authorities", ca.PEM(), "url", "http://seven.example"), 400, "INVALID_WEBHOOK_URL",
			"https://"},
		{certificatesPath, body("authorities", ca.PEM(), "url", "https://a:b@seven.example"), 400, "INVALID_WEBHOOK_URL", ""},
		{certificatesPath, body("authorities", ca.PEM(), "url", strings.Repeat("x", 2049)), 400, "INVALID_WEBHOOK_URL",
			"longer than 2048"},
		{certificatesPath, strings.Repeat(" ", 256<<10+1), 413, "PAYLOAD_TOO_LARGE", "256 KiB"},
		{removePath, `[]`, 400, invalid, "must be a JSON object"},
		{removePath, `{"only":"key"}`, 400, invalid, `"authorities" or "client"`},
		{removePath, `{"only":null}`, 400, invalid, "The field only must be a string"},
		{removePath, body("url", "seven"), 400, "INVALID_WEBHOOK_URL", ""},
		{removePath, strings.Repeat(" ", 16<<10+1), 413, "PAYLOAD_TOO_LARGE", "16 KiB"},
		{removePath, `{}`, 404, "NOT_FOUND", "no such certificates"},
	} {
		w.clock.add(time.Minute) // another window of the limit
		r := w.post(c.path, c.body, key)
		r.Failed(t, c.status, c.code)
		if !strings.Contains(r.Body.String(), c.want) &&
			!strings.Contains(r.Body.String(), strings.ReplaceAll(c.want, `"`, `\"`)) {
			t.Errorf("%s %.60s: %s, want %q", c.path, c.body, r.Body, c.want)
		}
		if strings.Contains(r.Body.String(), "BEGIN PRIVATE") || strings.Contains(r.Body.String(), good.Key[40:80]) {
			t.Errorf("%s %.60s: the response has the key", c.path, c.body)
		}
	}
	w.Do("POST", certificatesPath, strings.NewReader("{}"), "x-api-key", key, "Content-Type", "text/plain").Failed(t, 415,
		"UNSUPPORTED_MEDIA_TYPE")
	same(t, "stored", certificatesOf(w.get(certificatesPath, "x-api-key", key).Data(t)), []string{})

	for n := range registry.MaxCertificates {
		w.clock.add(time.Minute)
		w.post(certificatesPath, body("authorities", ca.PEM(), "url", fmt.Sprintf("https://seven.example/%d", n)),
			key).Data(t)
	}
	w.clock.add(time.Minute)
	w.post(certificatesPath, body("authorities", ca.PEM()), key).Failed(t, http.StatusConflict, invalid)
	// a known URL still can be renewed
	w.post(certificatesPath, body("authorities", ca.PEM(), "url", "https://seven.example/0"), key).Data(t)
}

// Without the setting a partner reads its certificates and changes nothing, whatever the login may do; without the role
// the log contains the role to grant. A missing key comes first.
func TestCertificatesNeedTheSettingAndTheRole(t *testing.T) {
	withoutDetector(t)
	ca := certstest.New(t)
	change := body("authorities", ca.PEM())
	for name, c := range map[string]struct {
		roles  string
		change []func(*Config)
		status int
		code   string
	}{
		"off":  {"navlog_serve, navlog_rotation", nil, 404, "NOT_FOUND"},
		"role": {"navlog_serve", []func(*Config){allowed}, 503, "UNAVAILABLE"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRotations(t, "login_certificates_"+name, c.roles, c.change...)
			key := w.partner(7, "Seven")
			w.deliveries()
			w.certificates()
			stored := certificatesOf(w.get(certificatesPath, "x-api-key", key).Data(t))
			same(t, "stored", len(stored), 1)
			for path, body := range map[string]string{certificatesPath: change, removePath: ""} {
				w.post(path, body, key).Failed(t, c.status, c.code)
				w.post(path, body, "").Failed(t, 401, "UNAUTHORIZED")
			}
			w.get(certificatesPath).Failed(t, 401, "UNAUTHORIZED")
			same(t, "stored", certificatesOf(w.get(certificatesPath, "x-api-key", key).Data(t)), stored)
			if got := strings.Contains(w.logged.String(), "grant it navlog_rotation"); got != (name == "role") {
				t.Errorf("the log contains the role to grant: %t", got)
			}
		})
	}
}

// Changes of certificates count against the limit of a partner's changes.
func TestChangesOfCertificatesAreLimited(t *testing.T) {
	w := newRotations(t, "login_certificates_limited", "navlog_serve, navlog_rotation", allowed)
	key := w.partner(7, "Seven")
	for range 10 {
		w.post(rotateSecretPath, `{"overlapSeconds":0}`, key).Data(t)
	}
	for _, path := range []string{certificatesPath, removePath} {
		r := w.post(path, "{}", key)
		r.Failed(t, 429, "RATE_LIMITED")
		same(t, "policy", r.Header().Get("RateLimit-Policy"), `"webhooks";q=10;w=60`)
	}
}

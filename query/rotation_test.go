package query

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/deploy/testkit/registrytest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/certs/certstest"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	rotateSecretPath = webhooksPath + "/secret/rotate"
	rotateKeyPath    = "/api/v1/partner/keys/rotate"
	anEvent          = "57e04288-f027-5ee3-baa8-df40dbd8417c"
)

// rotations is a world whose server has a separate login, with some roles of the registry.
type rotations struct {
	*world
	owner  *pgxpool.Pool
	sealer *registry.Sealer
	losing *atomic.Bool // PostgreSQL commits, and the server's connection is lost before the confirmation
}

// losingConn is a connection to PostgreSQL that loses the response to COMMIT.
type losingConn struct {
	net.Conn
	losing *atomic.Bool
}

func (c losingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err == nil && c.losing.Load() && bytes.Contains(b, []byte("commit\x00")) {
		if _, err := c.Read(make([]byte, 1)); err != nil { // the response has arrived
			return n, err
		}
		return n, c.Close()
	}
	return n, err
}

func newRotations(t *testing.T, login, roles string, change ...func(*Config)) rotations {
	t.Helper()
	at := registrytest.Postgres(t)
	w := newWorldOn(t, enginetest.ClickHouse(t), at, change...)
	if err := registry.GrantRoles(t.Context(), w.pool); err != nil {
		t.Fatal(err)
	}
	w.exec("DROP ROLE IF EXISTS %[1]s; CREATE ROLE %[1]s LOGIN PASSWORD 'secret' IN ROLE %[2]s", login, roles)
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal("parse the test's URL")
	}
	u.User = url.UserPassword(login, "secret")
	config, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		t.Fatal("parse the login's URL")
	}
	losing, dial := new(atomic.Bool), config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return losingConn{conn, losing}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	owner := w.pool
	w.pool = pool
	w.serve(change...)
	w.SealWith(partners.SealKey)
	w.pool = owner // for the test's own queries
	return rotations{w, owner, partners.Sealer(), losing}
}

func allowed(c *Config) { c.PartnerRotation = true }

func (w rotations) post(path, body, key string) reply {
	header := []string{"x-api-key", key}
	if body != "" {
		header = append(header, "Content-Type", "application/json")
	}
	return w.Do("POST", path, strings.NewReader(body), header...)
}

// secrets are the current and the next secret of a partner.
func (w rotations) secrets(id int64) (current, next string) {
	w.t.Helper()
	var sealed, sealedNext []byte
	const question = "SELECT secret, next_secret FROM endpoint WHERE partner_id = $1"
	if err := w.owner.QueryRow(w.t.Context(), question, id).Scan(&sealed, &sealedNext); err != nil {
		w.t.Fatal(err)
	}
	current, err := w.sealer.Open(id, sealed)
	if err != nil {
		w.t.Fatal(err)
	}
	if sealedNext != nil {
		if next, err = w.sealer.Open(id, sealedNext); err != nil {
			w.t.Fatal(err)
		}
	}
	return current, next
}

// An empty body counts as no body, also if it is sent in chunks, as some clients and proxies do.
func TestEmptyBodyInChunks(t *testing.T) {
	w := newRotations(t, "login_rotating_chunks", "navlog_serve, navlog_rotation", allowed)
	key := w.partner(7, "Seven")
	for path, want := range map[string]int{rotateSecretPath: http.StatusOK, removePath: http.StatusNotFound} {
		r := httptest.NewRequest("POST", path, http.NoBody)
		r.ContentLength = -1
		r.Header.Set("x-api-key", key)
		rec := httptest.NewRecorder()
		w.Client.Handler.ServeHTTP(rec, r)
		if rec.Code != want {
			t.Errorf("%s: %d %s, want %d", path, rec.Code, rec.Body, want)
		}
	}
}

// A partner gets a new secret and a new key from the server, whose login has navlog_rotation. They appear nowhere else:
// no cache keeps the response, no log has them, and the audit names the partner.
func TestPartnerRotates(t *testing.T) {
	w := newRotations(t, "login_rotating_serve", "navlog_serve, navlog_rotation", allowed)
	key := w.partner(7, "Seven")
	w.partner(8, "Eight")
	old, _ := w.secrets(7)
	eights, _ := w.secrets(8)

	before := time.Now()
	r := w.post(rotateSecretPath, "", key)
	rotated := r.Data(t).(object)
	if got := r.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control is %q", got)
	}
	current, next := w.secrets(7)
	if current != old || next != rotated["signingSecret"] || next == old {
		t.Error("the old secret does not sign together with the new one")
	}
	end, err := time.Parse(time.RFC3339, rotated["takesOverAt"].(string))
	if err != nil || end.Sub(before.Add(registry.DefaultOverlap)).Abs() > 10*time.Minute {
		t.Errorf("the new secret takes over at %v, %v", rotated["takesOverAt"], err)
	}

	r = w.post(rotateSecretPath, `{"overlapSeconds":3600}`, key)
	details := r.Failed(t, http.StatusConflict, "INVALID_BODY").(object)
	same(t, "the end of the rotation under way", details["endsAt"], rotated["takesOverAt"])
	for _, bad := range []string{
		`[]`, `null`, `{"overlapSeconds":-1}`, `{"overlapSeconds":2592001}`, `{"overlapSeconds":"1"}`,
		`{"overlapSeconds":1.5}`,
		`{"overlapSeconds":null}`,
	} {
		w.post(rotateSecretPath, bad, key).Failed(t, 400, "INVALID_BODY")
	}
	w.clock.add(time.Minute) // another window of the limit
	if _, unchanged := w.secrets(7); unchanged != next {
		t.Error("a refused rotation changed the next secret")
	}
	leaked := w.post(rotateSecretPath, `{"overlapSeconds":0,"more":1}`, key).Data(t).(object)
	if current, next := w.secrets(7); current != leaked["signingSecret"] || next != "" {
		t.Error("overlapSeconds 0 does not replace both secrets")
	}

	r = w.post(rotateKeyPath, "", key)
	second := r.Data(t).(object)
	same(t, "Cache-Control", r.Header().Get("Cache-Control"), "no-store")
	same(t, "revoked at first", second["revoked"], []any{})
	newKey := second["apiKey"].(string)
	if registry.IsTestKey(newKey) != registry.IsTestKey(key) || !registry.WellFormedKey(newKey) {
		t.Errorf("the new key is %.8s..., another kind of key", newKey)
	}
	w.get(webhooksPath, "x-api-key", key).Data(t) // the old key works until the next rotation
	third := w.post(rotateKeyPath, "", newKey).Data(t).(object)
	same(t, "revoked", third["revoked"], []any{key[len(key)-4:]})
	w.clock.add(2 * time.Second)
	w.get(webhooksPath, "x-api-key", key).Failed(t, 401, "UNAUTHORIZED")
	w.get(webhooksPath, "x-api-key", newKey).Data(t)
	w.get(webhooksPath, "x-api-key", third["apiKey"].(string)).Data(t)

	if unchanged, _ := w.secrets(8); unchanged != eights {
		t.Error("a rotation changed the secret of another partner")
	}
	rows, err := db.New(w.owner).ListAudit(t.Context(), db.ListAuditParams{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	recorded := 0
	for _, row := range rows {
		if strings.HasPrefix(row.Command, "partner rotate-") {
			recorded++
			same(t, "the audit", fmt.Sprint(row.Operator, row.PartnerID, row.Login),
				fmt.Sprint("partner 7", 7, "login_rotating_serve"))
		}
	}
	same(t, "rows of the audit", recorded, 4)
	for _, secret := range []string{
		rotated["signingSecret"].(string), leaked["signingSecret"].(string), newKey, third["apiKey"].(string), "whsec_",
		"nk_",
	} {
		if strings.Contains(w.logged.String(), secret) {
			t.Error("the log has a secret")
		}
	}
	same(t, "the pages offer rotation", w.get(webhooksPath, "x-api-key", newKey).Data(t).(object)["rotation"], true)
}

// A request that was admitted before its key was revoked or its partner disabled, and sends its body after that,
// changes nothing: its client would keep access with a key that is still live.
func TestKeyRevokedWhileTheBodyIsRead(t *testing.T) {
	w := newRotations(t, "login_revoked_serve", "navlog_serve, navlog_rotation", allowed)
	w.partner(7, "Seven")
	w.exec("UPDATE endpoint SET url = '%s'", sevensURL)
	w.exec("INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) VALUES ('%s', 7, 1, "+
		"'deposit.referral', '{}', 'delivered')", anEvent)
	before, _ := w.secrets(7)
	revoke := func() {
		if _, err := registry.RevokeKeys(t.Context(), w.owner, "tests", 7, ""); err != nil {
			t.Error(err)
		}
	}
	ca := certstest.New(t)
	for path, sent := range map[string]string{
		rotateKeyPath: "{}", rotateSecretPath: "{}", webhooksPath: body("url", sevensURL+"/other"),
		webhooksPath + "/test":                              "{}",
		webhooksPath + "/deliveries/" + anEvent + "/replay": "{}",
		certificatesPath:                                    body("authorities", ca.Texts(ca.Client("seven")).Authorities),
		removePath:                                          "{}",
	} {
		for want, change := range map[int]func(){
			http.StatusUnauthorized: revoke,
			http.StatusForbidden:    func() { w.exec("UPDATE partner SET disabled = true WHERE id = 7") },
		} {
			w.exec("UPDATE partner SET disabled = false WHERE id = 7")
			key := w.key(7)
			w.clock.add(time.Minute) // another window of the limits
			// Do would read the body before the request is admitted.
			r := httptest.NewRequest("POST", path, io.MultiReader(onRead(change), strings.NewReader(sent)))
			r.Header.Set("x-api-key", key)
			r.Header.Set("Content-Type", "application/json")
			rec := httptest.NewRecorder()
			w.Client.Handler.ServeHTTP(rec, r)
			if rec.Code != want {
				t.Errorf("%s: %d %s, want %d", path, rec.Code, rec.Body, want)
			}
			revoke()
			if live, err := db.New(w.owner).ListLiveKeys(t.Context(), 7); err != nil || len(live) > 0 {
				t.Errorf("%s: %d live keys, %v", path, len(live), err)
			}
		}
	}
	w.unchanged(t, "all requests")
	if after, next := w.secrets(7); after != before || next != "" {
		t.Error("the secret changed")
	}
}

// unchanged checks that requests changed no endpoint and no certificates, and left no command.
func (w rotations) unchanged(t *testing.T, requests string) {
	t.Helper()
	var changes int
	const counted = `SELECT (SELECT count(*) FROM endpoint WHERE url <> $1 OR next_secret IS NOT NULL)
		+ (SELECT count(*) FROM command) + (SELECT count(*) FROM endpoint_certificates)`
	if err := w.owner.QueryRow(t.Context(), counted, sevensURL).Scan(&changes); err != nil || changes > 0 {
		t.Errorf("%s: %d changes, %v", requests, changes, err)
	}
}

// A key that is revoked while its request waits for the revocation changes nothing.
func TestKeyRevokedBeforeTheChange(t *testing.T) {
	w := newRotations(t, "login_waiting_serve", "navlog_serve, navlog_rotation", allowed)
	w.partner(7, "Seven")
	w.exec("UPDATE endpoint SET url = '%s'", sevensURL)
	w.exec("INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) VALUES ('%s', 7, 1, "+
		"'deposit.referral', '{}', 'delivered')", anEvent)
	before, _ := w.secrets(7)
	ca := certstest.New(t)
	for path, sent := range map[string]string{
		rotateKeyPath: "", rotateSecretPath: "", webhooksPath: body("url", sevensURL+"/other"), webhooksPath + "/test": "",
		webhooksPath + "/deliveries/" + anEvent + "/replay": "",
		certificatesPath: body("authorities", ca.Texts(ca.Client("seven")).Authorities), removePath: "",
	} {
		key := w.key(7)
		revocation, err := w.owner.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = revocation.Rollback(context.Background()) }()
		q := db.New(revocation)
		if _, err := q.LockPartner(t.Context(), 7); err != nil {
			t.Fatal(err)
		}
		if _, err := q.RevokeKeys(t.Context(), db.RevokeKeysParams{PartnerID: 7}); err != nil {
			t.Fatal(err)
		}
		response := make(chan reply, 1)
		go func() { response <- w.post(path, sent, key) }()
		wait.For(t, path+" waits for the revocation", func() bool {
			var waiting int
			err := w.owner.QueryRow(t.Context(),
				"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting)
			return err == nil && waiting == 1
		})
		if err := revocation.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		(<-response).Failed(t, 401, "UNAUTHORIZED")
		if live, err := db.New(w.owner).ListLiveKeys(t.Context(), 7); err != nil || len(live) > 0 {
			t.Errorf("%s: %d live keys, %v", path, len(live), err)
		}
		w.unchanged(t, path)
		if after, _ := w.secrets(7); after != before {
			t.Errorf("%s: the secret changed", path)
		}
	}
}

// onRead is an empty body that calls a function when it is read.
type onRead func()

func (f onRead) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

// Without the setting rotation is not found, whatever the login may do; a missing key comes first.
func TestRotationIsOffByDefault(t *testing.T) {
	w := newRotations(t, "login_rotating_off", "navlog_serve, navlog_rotation")
	key := w.partner(7, "Seven")
	before, _ := w.secrets(7)
	for _, path := range []string{rotateSecretPath, rotateKeyPath} {
		w.post(path, "", key).Failed(t, 404, "NOT_FOUND")
		w.post(path, "", "").Failed(t, 401, "UNAUTHORIZED")
	}
	if after, next := w.secrets(7); after != before || next != "" {
		t.Error("the secret changed")
	}
	same(t, "the pages offer rotation", w.get(webhooksPath, "x-api-key", key).Data(t).(object)["rotation"], false)
}

// With the setting, and a login that has only navlog_serve, nothing is rotated, and the log contains the role to grant.
func TestRotationNeedsTheRole(t *testing.T) {
	w := newRotations(t, "login_not_rotating_serve", "navlog_serve", allowed)
	key := w.partner(7, "Seven")
	before, _ := w.secrets(7)
	for _, path := range []string{rotateSecretPath, rotateKeyPath} {
		w.post(path, "", key).Failed(t, 503, "UNAVAILABLE")
	}
	if after, next := w.secrets(7); after != before || next != "" {
		t.Error("the secret changed")
	}
	w.get(webhooksPath, "x-api-key", key).Data(t)
	if !strings.Contains(w.logged.String(), "grant it navlog_rotation") {
		t.Errorf("the log lacks the role to grant: %s", w.logged)
	}
}

// If PostgreSQL commits a change and the server gets no confirmation, the partner gets neither "nothing was changed"
// nor a time after which to repeat a request that would do harm, but advice on what to do.
func TestPartnerRotatesWithoutAConfirmation(t *testing.T) {
	w := newRotations(t, "login_unconfirmed_serve", "navlog_serve, navlog_rotation", allowed)
	key := w.partner(7, "Seven")
	before, _ := w.secrets(7)
	ca := certstest.New(t)
	authorities := body("authorities", ca.Texts(ca.Client("seven")).Authorities, "url", sevensURL)
	w.losing.Store(true)
	for _, change := range []struct{ path, body, do string }{
		{rotateSecretPath, "", "overlapSeconds 0"}, {rotateKeyPath, "", "Ask the operator"},
		{certificatesPath, authorities, "GET"},
	} {
		r := w.post(change.path, change.body, key)
		r.Failed(t, 503, "UNAVAILABLE")
		if text := r.Body.String(); !strings.Contains(text, "It is not known whether this was changed") ||
			!strings.Contains(text, change.do) ||
			strings.Contains(text, "Nothing was changed") || r.Header().Get("Retry-After") != "" {
			t.Errorf("%s: %s, Retry-After %q", change.path, text, r.Header().Get("Retry-After"))
		}
	}
	w.losing.Store(false)
	if current, next := w.secrets(7); current != before || next == "" {
		t.Error("the secret was not rotated: the test shows nothing")
	}
	w.post(rotateSecretPath, `{"overlapSeconds":0}`, key).Data(t)
}

// Rotations count against the limit of a partner's changes.
func TestRotationsAreLimited(t *testing.T) {
	w := newRotations(t, "login_limited_serve", "navlog_serve, navlog_rotation", allowed)
	key := w.partner(7, "Seven")
	for range 10 {
		w.post(rotateSecretPath, `{"overlapSeconds":0}`, key).Data(t)
	}
	for _, path := range []string{rotateSecretPath, rotateKeyPath} {
		r := w.post(path, "", key)
		r.Failed(t, 429, "RATE_LIMITED")
		same(t, "policy", r.Header().Get("RateLimit-Policy"), `"webhooks";q=10;w=60`)
	}
}

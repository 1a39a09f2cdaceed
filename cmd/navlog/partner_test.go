package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config/configtest"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/deploy/testkit/registrytest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/certs/certstest"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// commands runs navlog's commands with a separate registry.
type commands struct {
	t    *testing.T
	file string
}

func newCommands(t *testing.T) commands {
	t.Setenv("NAVLOG_SECRET_KEY", strings.TrimPrefix(configtest.SecretKey, "NAVLOG_SECRET_KEY="))
	t.Setenv("NAVLOG_POSTGRES_URL", registrytest.Postgres(t))
	return commands{t, configtest.Write(t, configtest.Sound)}
}

func (c commands) run(args ...string) (string, error) {
	var out, errOut bytes.Buffer
	err := run(c.t.Context(), append(args, "--config", c.file), &out, &errOut)
	return out.String(), err
}

func (c commands) json(into any, args ...string) {
	c.t.Helper()
	out, err := c.run(append(args, "--json")...)
	if err != nil {
		c.t.Fatalf("navlog %s: %v", strings.Join(args, " "), err)
	}
	c.tryJSON(out, into)
}

// tryJSON decodes the output of a command.
func (c commands) tryJSON(out string, into any) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(out), into); err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
}

// fullDisk is a stream that can take nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A key or secret that cannot be shown is lost: the error reports this, and the commands that it names give the partner
// others without revoking the key that it uses.
func TestSecretThatCannotBeShown(t *testing.T) {
	c := newCommands(t)
	lost := func(args ...string) string {
		t.Helper()
		err := run(t.Context(), append(args, "--config", c.file), fullDisk{}, io.Discard)
		if err == nil || cli.CodeOf(err) != cli.Failed || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("navlog %s: %v", strings.Join(args, " "), err)
		}
		return err.Error()
	}
	key := regexp.MustCompile(`API key \.\.\.(.{4})`)
	follow := func(text, want string) (shown []registry.NewPartner) {
		t.Helper()
		if found := key.FindStringSubmatch(text); found != nil {
			want = strings.ReplaceAll(want, "LAST4", found[1])
		}
		if text != want+": write the result: no space left on device" {
			t.Fatalf("the error is %q, want %q", text, want)
		}
		for _, command := range regexp.MustCompile("`navlog ([^`]*)`").FindAllStringSubmatch(text, -1) {
			var p registry.NewPartner
			c.json(&p, strings.Fields(command[1])...)
			shown = append(shown, p)
		}
		return shown
	}
	shown := follow(lost("partner", "create", "Acme", "--id", "7"),
		"partner 7 has a new API key ...LAST4 and signing secret, but it could not be shown and is lost: run `navlog "+
			"partner revoke-key 7 LAST4`, then `navlog partner rotate-key 7`, then `navlog partner rotate-secret 7 --overlap "+
			"0s`")
	if shown[1].APIKey == "" || shown[2].SigningSecret == "" {
		t.Errorf("the commands show %+v", shown)
	}
	used := shown[1].APIKey
	shown = follow(lost("partner", "rotate-key", "7", "--json"),
		"partner 7 has a new API key ...LAST4, but it could not be shown and is lost: "+
			"run `navlog partner revoke-key 7 LAST4`, then `navlog partner rotate-key 7`")
	if len(shown[1].Revoked) > 0 {
		t.Errorf("the key in use ends with %s, and the rotation revoked %v", last4(used), shown[1].Revoked)
	}
	if out := c.mustRun("partner", "rotate-key", "7"); !strings.Contains(out, "revoked key     ..."+last4(used)+"\n") {
		t.Errorf("the third key revokes ...%s, and the output is\n%s", last4(used), out)
	}
	follow(lost("partner", "rotate-key", "7"),
		"partner 7 has a new API key ...LAST4, but it could not be shown and is lost, and key ..."+
			last4(shown[1].APIKey)+" was revoked: run `navlog partner revoke-key 7 LAST4`, then `navlog partner rotate-key 7`")
	text := lost("partner", "rotate-secret", "7")
	follow(text,
		"partner 7 has a new signing secret, but it could not be shown and is lost: "+
			"run `navlog partner rotate-secret 7 --overlap 0s` before "+
			regexp.MustCompile(`20\d\d-\S+Z`).FindString(text)+", when the lost secret takes over; it ends the present secret "+
			"at once, and the partner rejects webhooks until it has the new one")
	follow(lost("partner", "rotate-secret", "7", "--overlap", "0s"),
		"partner 7 has a new signing secret, but it could not be shown and is lost: "+
			"run `navlog partner rotate-secret 7 --overlap 0s`")
}

// A pipe that nothing reads any more is such a stream too: it must not end the process before it says what was lost.
func TestSecretIntoClosedPipe(t *testing.T) {
	if os.Getenv("NAVLOG_TEST_FILE") != "" {
		cli.Main("navlog", func(ctx context.Context, _ []string, out, errOut io.Writer) error {
			file := os.Getenv("NAVLOG_TEST_FILE")
			os.Unsetenv("NAVLOG_TEST_FILE") // not a setting
			return run(ctx, []string{"partner", "create", "Acme", "--config", file}, out, errOut)
		})
		return
	}
	c := newCommands(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	read.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSecretIntoClosedPipe$")
	cmd.Env = append(os.Environ(), "NAVLOG_TEST_FILE="+c.file)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = write, &said
	err = cmd.Run()
	if cmd.ProcessState.ExitCode() != int(cli.Failed) ||
		!strings.Contains(said.String(), "it could not be shown and is lost: run `navlog partner revoke-key 1 ") {
		t.Errorf("%v, and standard error has %q", err, said.String())
	}
}

// Without an output nothing is issued or revoked. The runtime opens the null device for a stream that is closed.
func TestSecretIntoNothing(t *testing.T) {
	c := newCommands(t)
	var before, after []map[string]any
	if _, err := c.run("partner", "create", "Acme", "--id", "7"); err != nil {
		t.Fatal(err)
	}
	c.json(&before, "audit")
	nothing, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer nothing.Close()
	for _, command := range []string{"create Other", "rotate-key 7", "rotate-secret 7", "rotate-secret 7 --lost-key"} {
		err := run(t.Context(), append(strings.Fields("partner "+command), "--config", c.file), nothing, io.Discard)
		if cli.CodeOf(err) != cli.Usage || !strings.Contains(err.Error(), "standard output is closed or /dev/null") {
			t.Errorf("navlog partner %s: %v", command, err)
		}
	}
	if c.json(&after, "audit"); len(after) != len(before) {
		t.Errorf("the audit had %d rows and has %v", len(before), after)
	}
}

func TestPartnerLife(t *testing.T) {
	c := newCommands(t)
	var created registry.NewPartner
	c.json(&created, "partner", "create", "Acme", "--id", "7", "--test")
	if created.ID != 7 || !registry.WellFormedKey(created.APIKey) || !strings.HasPrefix(created.APIKey, "nk_test_") ||
		!strings.HasPrefix(created.SigningSecret, "whsec_") {
		t.Fatalf("created %+v", created)
	}

	postgres, err := registry.Open(t.Context(), registry.Config{URL: os.Getenv("NAVLOG_POSTGRES_URL"), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer postgres.Close()
	q := db.New(postgres)
	found, err := q.PartnerByKey(t.Context(), registry.HashKey(created.APIKey))
	if err != nil || found.ID != 7 {
		t.Fatalf("the key finds %+v, %v", found, err)
	}

	// Two keys may be live at the same time; a third one revokes the first.
	var second, third registry.NewPartner
	c.json(&second, "partner", "rotate-key", "7", "--test")
	if _, err := q.PartnerByKey(t.Context(), registry.HashKey(created.APIKey)); err != nil {
		t.Errorf("the first key was revoked with the second: %v", err)
	}
	c.json(&third, "partner", "rotate-key", "7", "--test")
	if _, err := q.PartnerByKey(t.Context(), registry.HashKey(created.APIKey)); err == nil {
		t.Error("the first of three keys is still live")
	}
	for _, key := range []string{second.APIKey, third.APIKey} {
		if _, err := q.PartnerByKey(t.Context(), registry.HashKey(key)); err != nil {
			t.Errorf("a new key is not live: %v", err)
		}
	}

	var rotated registry.NewPartner
	c.json(&rotated, "partner", "rotate-secret", "7")
	if err := partners.Register(t.Context(), postgres, 7, "https://acme.example/hook"); err != nil {
		t.Fatal(err)
	}
	endpoints, err := q.Endpoints(t.Context(), nil)
	if err != nil || len(endpoints) != 1 {
		t.Fatalf("endpoints %v, %v", endpoints, err)
	}
	sealer, err := registry.NewSealer(strings.TrimPrefix(configtest.SecretKey, "NAVLOG_SECRET_KEY="))
	if err != nil {
		t.Fatal(err)
	}
	if secret, err := sealer.Open(7, endpoints[0].Secret); err != nil || secret != created.SigningSecret {
		t.Errorf("the old secret does not sign during the overlap (%v)", err)
	}
	if secret, err := sealer.Open(7, endpoints[0].NextSecret); err != nil || secret != rotated.SigningSecret ||
		secret == created.SigningSecret {
		t.Errorf("the stored secret is not the one that was printed (%v)", err)
	}
	if out := c.mustRun("partner", "rotate-secret", "7", "--overlap", "0s"); !strings.Contains(out, "takes over at") {
		t.Errorf("the output lacks the time at which the secret takes over:\n%s", out)
	}
	c.json(&rotated, "partner", "rotate-secret", "7", "--overlap", "0s")
	if endpoints, err = q.Endpoints(t.Context(), nil); err != nil || len(endpoints[0].NextSecret) != 0 {
		t.Fatalf("a rotation continues after a replacement: %v", err)
	}
	if secret, err := sealer.Open(7, endpoints[0].Secret); err != nil || secret != rotated.SigningSecret {
		t.Errorf("the replaced secret is not the one that was printed (%v)", err)
	}

	for _, args := range [][]string{{"partner", "disable", "7"}, {"partner", "set-limit", "7", "30"}} {
		if _, err := c.run(args...); err != nil {
			t.Fatal(err)
		}
	}
	var list []partnerRow
	c.json(&list, "partner", "list")
	if len(list) != 1 || !list[0].Disabled || list[0].RateLimit == nil || *list[0].RateLimit != 30 ||
		list[0].LiveKeys != 2 {
		t.Errorf("list %+v", list)
	}
	var next registry.NewPartner
	c.json(&next, "partner", "create", "After Acme")
	if next.ID != 8 {
		t.Errorf("the partner after 7 got id %d", next.ID)
	}
	out, err := c.run("partner", "show", "7")
	if err != nil || !strings.Contains(out, "disabled") || strings.Contains(out, third.APIKey) {
		t.Errorf("show: %q, %v", out, err)
	}
	if _, err := c.run("partner", "enable", "7"); err != nil {
		t.Error(err)
	}
	if out, err = c.run("partner", "list"); err != nil || !strings.Contains(out, "enabled") {
		t.Errorf("list: %q, %v", out, err)
	}
}

func TestPartnerMistakes(t *testing.T) {
	c := newCommands(t)
	c.mustRun("partner", "create", "One", "--id", "1")
	c.mustRun("partner", "create", "Last", "--id", "4294967295")
	for _, m := range []struct {
		args []string
		want string
	}{
		{[]string{"partner", "create", "Again", "--id", "1"}, "partner 1 exists already"},
		{[]string{"partner", "create", "Big", "--id", "4294967296"}, "1 to 4294967295"},
		{[]string{"partner", "create", "Next"}, "no id is left after the largest one: choose a free --id"},
		{[]string{"partner", "show", "9"}, "there is no partner 9"},
		{[]string{"partner", "disable", "9"}, "there is no partner 9"},
		{[]string{"partner", "rotate-key", "9"}, "there is no partner 9"},
		{[]string{"partner", "rotate-secret", "9"}, "there is no partner 9"},
		{[]string{"partner", "set-limit", "1", "2000000"}, "0 to 1000000"},
		{[]string{"partner", "fly"}, "navlog partner --help"},
	} {
		if _, err := c.run(m.args...); err == nil || !strings.Contains(err.Error(), m.want) {
			t.Errorf("navlog %s: %v, want %q", strings.Join(m.args, " "), err, m.want)
		}
	}
}

// Two commands that create a partner concurrently, without an id, may choose the same id. The error of the one that
// loses must ask to run it again, without mentioning an id that its operator did not give.
func TestPartnerCreatedTwiceAtOnce(t *testing.T) {
	c := newCommands(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	postgres, err := registry.Open(ctx, registry.Config{URL: os.Getenv("NAVLOG_POSTGRES_URL"), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer postgres.Close()
	first, err := postgres.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Rollback(ctx)
	if _, err := db.New(first).CreatePartner(ctx, "First"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := c.run("partner", "create", "Second")
		done <- err
	}()
	wait.Until(t, func() error { // it waits for the id of the first
		var waits bool
		err := postgres.QueryRow(ctx,
			"SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waits)
		if err == nil && !waits {
			err = errors.New("no session waits for the first partner's transaction")
		}
		return err
	})
	if err := first.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "run it again") ||
		strings.Contains(err.Error(), "--id") {
		t.Errorf("the second one: %v", err)
	}
	if out, err := c.run("partner", "create", "Second"); err != nil || !strings.Contains(out, "partner 2 (Second)") ||
		!strings.Contains(out, "navlog never shows it again") {
		t.Errorf("the second run: %q, %v", out, err)
	}
}

func TestSecretsNeedTheirKey(t *testing.T) {
	c := newCommands(t)
	t.Setenv("NAVLOG_SECRET_KEY", "")
	if _, err := c.run("partner", "create", "One"); err == nil ||
		!strings.Contains(err.Error(), "openssl rand -base64 32") {
		t.Errorf("got %v", err)
	}
}

// dispatch could not open the secrets of two different keys in one registry. If the key is lost, all secrets are
// replaced.
func TestSecretsAreOfOneKey(t *testing.T) {
	c := newCommands(t)
	var one registry.NewPartner
	c.json(&one, "partner", "create", "One", "--id", "1")
	other := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	t.Setenv("NAVLOG_SECRET_KEY", other)
	for _, args := range [][]string{{"partner", "create", "Two"}, {"partner", "rotate-secret", "1"},
		{"partner", "rotate-secret", "1", "--overlap", "0s"}} {
		if _, err := c.run(args...); err == nil ||
			!strings.Contains(err.Error(),
				"NAVLOG_SECRET_KEY is not the key it was stored with: give the key that dispatch has") {
			t.Errorf("navlog %s with another key: %v", strings.Join(args, " "), err)
		}
	}
	c.json(&one, "partner", "rotate-secret", "1", "--lost-key")
	var two registry.NewPartner
	c.json(&two, "partner", "create", "Two")

	postgres, err := registry.Open(t.Context(), registry.Config{URL: os.Getenv("NAVLOG_POSTGRES_URL"), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer postgres.Close()
	sealer, err := registry.NewSealer(other)
	if err != nil {
		t.Fatal(err)
	}
	q := db.New(postgres)
	for _, p := range []registry.NewPartner{one, two} {
		if err := partners.Register(t.Context(), postgres, p.ID, "https://acme.example/hook"); err != nil {
			t.Fatal(err)
		}
	}
	endpoints, err := q.Endpoints(t.Context(), nil)
	if err != nil || len(endpoints) != 2 {
		t.Fatalf("endpoints %v, %v", endpoints, err)
	}
	printed := map[int64]string{one.ID: one.SigningSecret, two.ID: two.SigningSecret}
	for _, e := range endpoints {
		if secret, err := sealer.Open(e.PartnerID, e.Secret); err != nil || secret != printed[e.PartnerID] ||
			len(e.NextSecret) > 0 {
			t.Errorf("partner %d: not the secret that was printed (%v)", e.PartnerID, err)
		}
	}
}

// After the key was lost, the doctor names what the new key does not open until everything is replaced: the secrets of the
// other partners, and the keys of client certificates. The login of serve may read neither them nor the dates.
func TestDoctorFindsWhatALostKeySealed(t *testing.T) {
	c := newCommands(t)
	owner := os.Getenv("NAVLOG_POSTGRES_URL")
	c.mustRun("partner", "create", "One", "--id", "1")
	c.mustRun("partner", "create", "Two", "--id", "2")
	files := certstest.New(t).Files()
	set := []string{"partner", "certificates", "set", "1", "--certificate", files.Cert, "--key", files.Key, "--url",
		"https://acme.example/hook"}
	c.mustRun(set...)
	t.Setenv("NAVLOG_SECRET_KEY", base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)))
	c.mustRun("migrate", "--roles")
	pool := c.registry()
	for _, step := range []struct{ replace, want, not string }{
		{"partner rotate-secret 1 --lost-key", "the signing secret of partner 2,", "the signing secret of partner 1,"},
		{"partner rotate-secret 2 --lost-key", "`navlog partner certificates set 1`", "the signing secret of"},
		{strings.Join(set, " "), "it opens all stored secrets", ""},
	} {
		c.mustRun(strings.Fields(step.replace)...)
		e := &examination{config: mustLoad(t, c.file)}
		e.secretKey(t.Context(), pool)
		if f := e.findings[0]; !strings.Contains(f.Found, step.want) || step.not != "" && (f.Verdict != failing ||
			strings.Contains(f.Found, step.not)) {
			t.Errorf("after `navlog %s`: %+v", step.replace, f)
		}
	}
	c.asRole(owner, "navlog_serve")
	e := &examination{config: mustLoad(t, c.file)}
	if e.certificates(t.Context(), c.registry()); len(e.findings) > 0 {
		t.Errorf("as the login of serve: %+v", e.findings)
	}
}

func TestUnreachableEngineIsNamed(t *testing.T) {
	c := newCommands(t)
	t.Setenv("NAVLOG_POSTGRES_URL", "postgres://navlog:hidden@127.0.0.1:1/navlog")
	_, err := c.run("partner", "list")
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v", err)
	}
}

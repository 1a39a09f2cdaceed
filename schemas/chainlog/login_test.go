package chainlog

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/navlog/navlog/schemas/certs/certstest"
)

// door is a broker with TLS that accepts one mechanism, and records what clients send.
type door struct {
	config Config
	mu     sync.Mutex
	sent   []string
	takes  func(sent string) bool
}

func newDoor(t *testing.T, mechanism string) *door {
	t.Helper()
	authority := certstest.New(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(authority.Server()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	d := &door{config: DefaultConfig(), takes: func(string) bool { return true }}
	d.config.Brokers, d.config.TLS, d.config.Certificates = cluster.ListenAddrs(), true, authority.Files()
	d.config.SASL.Mechanism = mechanism
	cluster.ControlKey(int16(kmsg.SASLHandshake), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		response := r.ResponseKind().(*kmsg.SASLHandshakeResponse)
		response.SupportedMechanisms = []string{mechanism}
		if r.(*kmsg.SASLHandshakeRequest).Mechanism != mechanism {
			response.ErrorCode = kerr.UnsupportedSaslMechanism.Code
		}
		return response, nil, true
	})
	cluster.ControlKey(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		sent := string(r.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.sent = append(d.sent, sent)
		response := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		switch {
		case !d.takes(sent):
			response.ErrorCode = kerr.SaslAuthenticationFailed.Code
		case mechanism == AWSIAM: // these brokers never send an empty response
			response.SASLAuthBytes = []byte(`{"version":"2020_10_22"}`)
		}
		return response, nil, true
	})
	return d
}

func (d *door) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.sent)
}

// login opens a connection, and returns what the client sent.
func (d *door) login(t *testing.T) (sent string, err error) {
	t.Helper()
	client, err := kgo.NewClient(append(d.config.Options(), kgo.RequestRetries(0))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err = client.Ping(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.sent) > 0 {
		sent = d.sent[len(d.sent)-1]
	}
	return sent, err
}

// TestLoginByToken checks that the token is read for each login, and that no error contains any of it.
func TestLoginByToken(t *testing.T) {
	t.Parallel()
	d := newDoor(t, OAuthBearer)
	file := filepath.Join(t.TempDir(), "token")
	d.config.SASL.TokenFile = file
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, token := range []string{"first.token-of~a+server/with==", "renewed"} {
		write(token + "\n")
		if err := d.config.Validate(); err != nil {
			t.Fatal(err)
		}
		if sent, err := d.login(t); err != nil || sent != "n,,\x01auth=Bearer "+token+"\x01\x01" {
			t.Errorf("with the token %q the client sent %q, %v", token, sent, err)
		}
	}
	d.config.SASL.Extensions = []string{"logicalCluster=lkc-1", "identityPoolId=pool=2 a"}
	if sent, err := d.login(t); err != nil ||
		sent != "n,,\x01auth=Bearer renewed\x01identityPoolId=pool=2 a\x01logicalCluster=lkc-1\x01\x01" {
		t.Errorf("with extensions the client sent %q, %v", sent, err)
	}
	d.takes = func(string) bool { return false }
	_, err := d.login(t)
	if why := Explain(err); why == nil || !strings.Contains(why.Error(), "or a token or a role that they accept") ||
		strings.Contains(why.Error(), "renewed") {
		t.Errorf("a rejected token: %v", why)
	}
	before := d.count()
	for text, want := range map[string]string{
		"": "is empty", " \n": "is empty", "a b": "one token and nothing else", "sécret": "one token and nothing else",
		"a\x01auth=Bearer b": "one token and nothing else", "secret\nsecond": "one token and nothing else",
		strings.Repeat("s", maxToken+1): "more than 65536 bytes",
	} {
		write(text)
		_, err := d.login(t)
		for _, err := range []error{err, d.config.Validate()} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
				t.Errorf("the file %.20q: %v, want %q and the file's name", text, err, want)
			} else if len(text) > 4 && strings.Contains(err.Error(), text) {
				t.Errorf("the error has the token in it: %.200v", err)
			}
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := d.login(t); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without the file: %v", err)
	}
	if n := d.count() - before; n != 0 {
		t.Errorf("%d logins were sent with files that hold no token", n)
	}
}

// TestLoginByRole checks that the credentials are those that Amazon's SDK finds, and that the secret parts are not
// sent.
func TestLoginByRole(t *testing.T) {
	d := newDoor(t, AWSIAM)
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": none,
		"AWS_SHARED_CREDENTIALS_FILE": none,
		"AWS_ACCESS_KEY_ID":           "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_ROLE_ARN":                "",
		"AWS_WEB_IDENTITY_TOKEN_FILE": "", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": "",
	} {
		t.Setenv(name, value)
	}
	if _, err := new(awsChain).credentials(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "no credentials for the login AWS_MSK_IAM: set AWS_ACCESS_KEY_ID") {
		t.Errorf("without credentials: %v", err)
	}
	t.Setenv("AWS_PROFILE", "missing")
	if _, err := new(awsChain).credentials(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "read the configuration of AWS for the login AWS_MSK_IAM") {
		t.Errorf("with a missing profile: %v", err)
	}
	t.Setenv("AWS_PROFILE", "")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "topsecret")
	t.Setenv("AWS_SESSION_TOKEN", "session")
	if err := d.config.Validate(); err != nil {
		t.Fatal(err)
	}
	sent, err := d.login(t)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]string
	if err := json.Unmarshal([]byte(sent), &fields); err != nil {
		t.Fatalf("%q: %v", sent, err)
	}
	if !strings.HasPrefix(fields["x-amz-credential"], "AKIDEXAMPLE/") ||
		!strings.HasSuffix(fields["x-amz-credential"], "/eu-west-1/kafka-cluster/aws4_request") ||
		fields["x-amz-security-token"] != "session" || len(fields["x-amz-signature"]) != 64 ||
		strings.Contains(sent, "topsecret") {
		t.Errorf("the client sent %v", fields)
	}
}

// TestLoginIsValidated checks that settings that a mechanism does not use are rejected, and logins that would cross the
// network unencrypted.
func TestLoginIsValidated(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		login     SASL
		encrypted bool
		want      string // empty: it is accepted
	}{
		{SASL{}, false, ""},
		{SASL{Mechanism: Plain, User: "u", Password: "p"}, false, ""},
		{SASL{User: "u", Password: "p"}, false, "have no effect without a mechanism"},
		{SASL{Mechanism: OAuthBearer, TokenFile: file}, true, ""},
		{SASL{Mechanism: AWSIAM}, true, ""},
		{SASL{Mechanism: OAuthBearer, TokenFile: file}, false, "kafka.tls is false"},
		{SASL{Mechanism: AWSIAM}, false, "kafka.tls is false"},
		{SASL{Mechanism: AWSIAM, User: "u"}, true, "which AWS_MSK_IAM does not use"},
		{SASL{Mechanism: OAuthBearer, Password: "p", TokenFile: file}, true, "which OAUTHBEARER does not use"},
		{SASL{Mechanism: OAuthBearer}, true, "kafka.sasl.tokenFile is empty"},
		{SASL{Mechanism: AWSIAM, TokenFile: file}, true, "is for the mechanism OAUTHBEARER only"},
		{SASL{TokenFile: file}, true, "is for the mechanism OAUTHBEARER only"},
		{SASL{Mechanism: "GSSAPI"}, true, `"GSSAPI" and must be PLAIN`},
		{SASL{Mechanism: OAuthBearer, TokenFile: file, Extensions: []string{"logicalCluster=lkc-1", "a=b"}}, true, ""},
		{SASL{Mechanism: OAuthBearer, TokenFile: file, Extensions: []string{"lkc-1"}}, true,
			`has "lkc-1", which must be name=value`},
		{SASL{Mechanism: OAuthBearer, TokenFile: file, Extensions: []string{"a1=b"}}, true, "which must be name=value"},
		{SASL{Mechanism: OAuthBearer, TokenFile: file, Extensions: []string{"a="}}, true, "which must be name=value"},
		{SASL{Mechanism: OAuthBearer, TokenFile: file, Extensions: []string{"a=b\x01c"}}, true, "which must be name=value"},
		{SASL{Mechanism: OAuthBearer, TokenFile: file, Extensions: []string{"a=ü"}}, true, "which must be name=value"},
		{SASL{Mechanism: OAuthBearer, TokenFile: file, Extensions: []string{"auth=b"}}, true, "the name auth"},
		{SASL{Mechanism: OAuthBearer, TokenFile: file, Extensions: []string{"a=b", "a=c"}}, true, "the name a twice"},
		{SASL{Mechanism: AWSIAM, Extensions: []string{"a=b"}}, true, "are for the mechanism OAUTHBEARER only"},
	} {
		err := c.login.validate(c.encrypted)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v, TLS %v: %v, want %q", c.login, c.encrypted, err, c.want)
		}
	}
}

package certs_test

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/certs/certstest"
)

// TestBothSides checks that a server that requires client certificates of its authority accepts only clients that have
// one, and that a client rejects a server of another authority.
func TestBothSides(t *testing.T) {
	t.Parallel()
	ours, theirs := certstest.New(t), certstest.New(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", ours.Server())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("x"))
			conn.Close()
		}
	}()
	connect := func(f certs.Files) error {
		c, err := f.Config()
		if err != nil {
			return err
		}
		conn, err := (&tls.Dialer{NetDialer: new(net.Dialer), Config: c}).DialContext(t.Context(), "tcp",
			listener.Addr().String())
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1)) // a client is rejected only after its handshake
		return err
	}
	files := ours.Files()
	for name, c := range map[string]struct {
		files certs.Files
		want  string
	}{
		"the right certificates": {files, ""},
		"no client certificate":  {certs.Files{CA: files.CA}, "certificate required"},
		"another client certificate": {certs.Files{CA: files.CA, Cert: theirs.Files().Cert, Key: theirs.Files().Key},
			"remote error: tls"},
		"the system's authorities": {certs.Files{Cert: files.Cert, Key: files.Key},
			"certificate signed by unknown authority"},
		"another authority": {theirs.Files(), "certificate signed by unknown authority"},
	} {
		if err := connect(c.files); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	// A certificate that is renewed in its file is used from the next connection on.
	mixed := certs.Files{CA: files.CA, Cert: filepath.Join(t.TempDir(), "cert"), Key: filepath.Join(t.TempDir(), "key")}
	place := func(from certs.Files) {
		for to, from := range map[string]string{mixed.Cert: from.Cert, mixed.Key: from.Key} {
			text, err := os.ReadFile(from)
			if err == nil {
				err = os.WriteFile(to, text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	place(theirs.Files())
	if connect(mixed) == nil {
		t.Error("a certificate of another authority is accepted")
	}
	place(files)
	if err := connect(mixed); err != nil {
		t.Errorf("after it was renewed: %v", err)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	good := certstest.New(t).Files()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, f := range map[string]certs.Files{
		"":                                    good,
		"needs both cert and key":             {Cert: good.Cert},
		"empty.pem has no certificate in PEM": {CA: empty},
		"no such file":                        {CA: filepath.Join(t.TempDir(), "gone")},
		"read the client's certificate":       {Cert: good.Cert, Key: empty},
	} {
		if err := f.Validate("kafka", true); (err == nil) != (want == "") || err != nil &&
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", f, err, want)
		}
	}
	if err := good.Validate("kafka", false); err == nil || !strings.Contains(err.Error(), "kafka.tls is false") {
		t.Errorf("without TLS: %v", err)
	}
	if err := (certs.Files{}).Validate("kafka", false); err != nil {
		t.Errorf("without certificates: %v", err)
	}
}

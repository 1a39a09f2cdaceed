package chainlog

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/certs/certstest"
)

// TestOwnCertificates checks that brokers with a private authority that require a client certificate accept a client
// that has the files, and reject one without them.
func TestOwnCertificates(t *testing.T) {
	t.Parallel()
	authority := certstest.New(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(authority.Server()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	connect := func(files certs.Files) error {
		c := DefaultConfig()
		c.Brokers, c.TLS, c.Certificates = cluster.ListenAddrs(), true, files
		if err := c.Validate(); err != nil {
			return err
		}
		client, err := kgo.NewClient(c.Options()...)
		if err != nil {
			return err
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return client.Ping(ctx)
	}
	if err := connect(authority.Files()); err != nil {
		t.Errorf("with the files: %v", err)
	}
	if err := connect(certs.Files{}); err == nil ||
		!strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("without the files: %v", err)
	}
	if err := connect(certs.Files{CA: authority.Files().CA}); err == nil {
		t.Error("a client without a certificate gets a response")
	}
	if err := connect(certs.Files{CA: authority.Files().CA, Cert: "gone", Key: "gone"}); err == nil ||
		!strings.Contains(err.Error(), "kafka.certificates: read the client's certificate gone") {
		t.Errorf("missing files: %v", err)
	}
}

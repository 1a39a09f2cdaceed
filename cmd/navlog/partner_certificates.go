package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

type partnerCertificatesCmd struct {
	Set    certificatesSetCmd    `cmd:"" help:"Set the authorities that sign the receiver's certificate, or the client certificate that it demands, or both."`
	Show   certificatesShowCmd   `cmd:"" help:"Show the certificates of a partner; never a key."`
	Remove certificatesRemoveCmd `cmd:"" help:"Remove the certificates for a URL."`
}

type certificatesSetCmd struct {
	partnerFlags
	Authorities string `placeholder:"FILE" help:"PEM file of the authorities that are trusted for this URL instead of those of the system."`
	Certificate string `placeholder:"FILE" help:"PEM file of the client certificate, followed by intermediate authorities."`
	Key         string `placeholder:"FILE" help:"PEM file of the private key of the client certificate, not encrypted."`
	URL         string `placeholder:"URL" help:"The URL that they belong to, for instance before the partner changes to it (default: the current one)."`
}

func (cmd certificatesSetCmd) Run(ctx context.Context, s *cli.Streams) error {
	if cmd.Authorities == "" && cmd.Certificate == "" && cmd.Key == "" {
		return cli.Usage.With(errors.New("give --authorities, or --certificate with --key, or all three"))
	}
	url, err := webhookURL(cmd.URL)
	if err != nil {
		return err
	}
	given, err := cmd.read()
	if err != nil {
		return err
	}
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, c config.Config) error {
		sealer, err := registry.ProvenSealer(ctx, pool, c.SecretKey)
		if err != nil {
			return err
		}
		url, err := registry.SetCertificates(ctx, pool, registry.Author{Name: cmd.operator()}, sealer, cmd.ID, url, given)
		if err != nil {
			return err
		}
		return cmd.report(ctx, s, pool, cmd.ID, url)
	}, config.NeedSecretKey)
}

// read returns the certificates in the files.
func (cmd certificatesSetCmd) read() (certs.Pinned, error) {
	var texts certs.Texts
	for _, f := range []struct {
		flag, file string
		into       *string
	}{{"authorities", cmd.Authorities, &texts.Authorities}, {"certificate", cmd.Certificate, &texts.Client},
		{"key", cmd.Key, &texts.Key}} {
		if f.file == "" {
			continue
		}
		text, err := readAtMost(f.file, certs.MaxPEM)
		if err != nil {
			return certs.Pinned{}, cli.Usage.With(fmt.Errorf("--%s: %w", f.flag, err))
		}
		if len(text) == 0 {
			return certs.Pinned{}, fmt.Errorf("--%s: %s is empty", f.flag, f.file)
		}
		*f.into = string(text)
	}
	return texts.Parse()
}

// readAtMost reads a file up to a size, and one byte more if it is larger.
func readAtMost(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// webhookURL returns the canonical form of a URL, in which dispatch compares it; an empty one stays empty.
func webhookURL(given string) (string, error) {
	if given == "" {
		return "", nil
	}
	url, err := guard.Canonical(given)
	if err != nil {
		return "", cli.Usage.With(fmt.Errorf("--url: %w", err))
	}
	return url, nil
}

// report prints the certificates for a URL after a change.
func (f changeFlags) report(ctx context.Context, s *cli.Streams, pool *pgxpool.Pool, id int64, url string) error {
	all, err := certificateRows(ctx, pool, id)
	if err != nil {
		return err
	}
	rows := []certificatesRow{}
	for _, r := range all {
		if r.URL == url {
			rows = append(rows, r)
		}
	}
	return f.Print(s.Out, rows, func(w io.Writer) {
		if len(rows) == 0 {
			cli.Fprintf(w, "partner %d has no certificates for %s any more\n", id, url)
		}
		writeCertificates(w, id, rows)
	})
}

type certificatesShowCmd struct {
	registryFlags
	ID int64 `arg:"" name:"partner" help:"Partner id."`
}

type certificatesRow struct {
	URL         string           `json:"url"`
	Used        bool             `json:"used"` // it is the partner's URL
	ChangedAt   time.Time        `json:"changedAt"`
	Authorities []certificateRow `json:"authorities"`
	Client      []certificateRow `json:"client"` // with its chain
}

type certificateRow struct {
	Subject     string    `json:"subject"`
	Issuer      string    `json:"issuer"`
	Fingerprint string    `json:"sha256"`
	Expires     time.Time `json:"expires"`
}

func (cmd certificatesShowCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		rows, err := certificateRows(ctx, pool, cmd.ID)
		if err != nil {
			return err
		}
		return cmd.Print(s.Out, rows, func(w io.Writer) {
			if len(rows) == 0 {
				cli.Fprintf(w, "partner %d has no certificates: the system's authorities are trusted, and no client certificate "+
					"is sent\n", cmd.ID)
			}
			writeCertificates(w, cmd.ID, rows)
		})
	})
}

// certificateRows returns what is shown of the certificates of a partner.
func certificateRows(ctx context.Context, pool *pgxpool.Pool, id int64) ([]certificatesRow, error) {
	if _, err := db.New(pool).GetPartner(ctx, id); err != nil {
		return nil, unknownPartner(id, err)
	}
	found, err := registry.ListCertificates(ctx, pool, id)
	if err != nil {
		return nil, err
	}
	rows := make([]certificatesRow, len(found))
	for i, f := range found {
		rows[i] = certificatesRow{f.URL, f.Current, f.ChangedAt, described(f.Authorities), described(f.ClientChain())}
	}
	return rows, nil
}

func described(certificates []*x509.Certificate) []certificateRow {
	rows := make([]certificateRow, len(certificates))
	for i, c := range certs.Describe(certificates) {
		rows[i] = certificateRow{c.Subject, c.Issuer, c.Fingerprint, c.NotAfter}
	}
	return rows
}

func writeCertificates(w io.Writer, id int64, rows []certificatesRow) {
	for _, r := range rows {
		state := "not used: it is not the partner's URL"
		if r.Used {
			state = "dispatch uses them within a second"
		}
		cli.Fprintf(w, "partner %d, %s (%s)\n", id, r.URL, state)
		for _, kind := range []struct {
			name string
			rows []certificateRow
		}{{"authority", r.Authorities}, {"client", r.Client}} {
			for _, c := range kind.rows {
				cli.Fprintf(w, "  %s\t%s\tissued by %s\texpires %s\tSHA-256 %s\n",
					kind.name, c.Subject, c.Issuer, c.Expires.Format(time.RFC3339), c.Fingerprint)
			}
		}
	}
}

type certificatesRemoveCmd struct {
	partnerFlags
	Only string `enum:",authorities,client" default:"" placeholder:"KIND" help:"Remove only the authorities or only the client certificate."`
	URL  string `placeholder:"URL" help:"The URL that they belong to (default: the current one)."`
}

func (cmd certificatesRemoveCmd) Run(ctx context.Context, s *cli.Streams) error {
	url, err := webhookURL(cmd.URL)
	if err != nil {
		return err
	}
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		url, err := registry.RemoveCertificates(ctx, pool, registry.Author{Name: cmd.operator()}, cmd.ID, url,
			cmd.Only != "client", cmd.Only != "authorities")
		if err != nil {
			return err
		}
		return cmd.report(ctx, s, pool, cmd.ID, url)
	})
}

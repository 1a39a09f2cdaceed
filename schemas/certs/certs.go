// Package certs reads the TLS certificates with which programs and engines authenticate each other.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Files are PEM files. They are read for each new connection, so a renewed certificate needs no restart.
type Files struct {
	// CA has the certificates of the authorities that sign the server's certificate; default: those of the system.
	CA string `yaml:"ca" env:"CA"`
	// Cert and Key are the client's certificate chain and its private key; default none.
	Cert string `yaml:"cert" env:"CERT"`
	Key  string `yaml:"key" env:"KEY"`
}

// Config returns the TLS configuration of a client: TLS 1.2 or later. The error names the file that cannot be used, and
// the reason.
func (f Files) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("read the certificates of authorities: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate in PEM: it must begin with -----BEGIN CERTIFICATE-----", f.CA)
		}
	}
	if f.Cert != "" {
		own, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("read the client's certificate %s and its key %s: %w", f.Cert, f.Key, err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

// Validate checks the files of a section of the configuration, such as kafka; on is whether the section enables TLS.
func (f Files) Validate(section string, on bool) error {
	switch {
	case f == Files{}:
		return nil
	case !on:
		return fmt.Errorf("%s.certificates are given and %s.tls is false: set it to true, or the connection is not encrypted",
			section, section)
	case (f.Cert == "") != (f.Key == ""):
		return errors.New(section + ".certificates needs both cert and key, or neither")
	}
	if _, err := f.Config(); err != nil {
		return fmt.Errorf("%s.certificates: %w", section, err)
	}
	return nil
}

package partner

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/navlog/navlog/cmd/internal/api"
	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/schemas/statement"
)

// signingKey is a key that may have signed statements. Keys are compared as a whole: they have no ids, which could
// collide.
type signingKey struct {
	public    []byte
	retiredAt *time.Time
}

// keyList is the response of /.well-known/navlog-statements. Older versions of the API only return publicKeys.
type keyList struct {
	Algorithm  string   `json:"algorithm"`
	PublicKeys [][]byte `json:"publicKeys"`
	Keys       []struct {
		PublicKey []byte     `json:"publicKey"`
		RetiredAt *time.Time `json:"retiredAt"`
	} `json:"keys"`
}

// signingKeys validates the list. A key that is listed twice may be retired only once.
func (l keyList) signingKeys() (out []signingKey, err error) {
	if l.Algorithm != "" && l.Algorithm != "Ed25519" {
		return nil, fmt.Errorf("the keys are of the algorithm %q, but statements are signed with Ed25519", l.Algorithm)
	}
	for _, k := range l.Keys {
		out = append(out, signingKey{k.PublicKey, k.RetiredAt})
	}
	for _, k := range l.PublicKeys {
		if !slices.ContainsFunc(out, func(known signingKey) bool { return bytes.Equal(known.public, k) }) {
			out = append(out, signingKey{public: k})
		}
	}
	for _, k := range out {
		if len(k.public) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("the key %s has %d bytes and must have %d",
				base64.StdEncoding.EncodeToString(k.public), len(k.public), ed25519.PublicKeySize)
		}
	}
	return out, nil
}

// parseKeys reads a file of keys: a response of /.well-known/navlog-statements, or one key per line.
func parseKeys(text []byte) ([]signingKey, error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' {
		var answer struct {
			Data *keyList `json:"data"`
			keyList
		}
		if err := json.Unmarshal(trimmed, &answer); err != nil {
			return nil, fmt.Errorf("it is not a response of /.well-known/navlog-statements: %w", err)
		}
		if answer.Data != nil {
			return answer.Data.signingKeys()
		}
		return answer.signingKeys()
	}
	var list keyList
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			return nil, fmt.Errorf("the line %q is not a key in base64", line)
		}
		list.PublicKeys = append(list.PublicKeys, key)
	}
	return list.signingKeys()
}

// known returns the keys that the flags name; given is false if they name none.
func (cmd statementVerifyCmd) known(ctx context.Context) (keys []signingKey, given bool, err error) {
	switch {
	case cmd.Key != "":
		if keys, err = parseKeys([]byte(cmd.Key)); err == nil && len(keys) != 1 {
			err = errors.New("it is not a key")
		}
		if err != nil {
			return nil, true, cli.Usage.With(fmt.Errorf("--key is %q, which is not the base64 of a public key: %w", cmd.Key,
				err))
		}
	case cmd.KeysFrom != "":
		text, err := os.ReadFile(cmd.KeysFrom)
		if err == nil {
			keys, err = parseKeys(text)
		}
		if err == nil && len(keys) == 0 {
			err = errors.New("it has no key")
		}
		if err != nil {
			return nil, true, cli.Usage.With(fmt.Errorf("read the keys of %s: %w", cmd.KeysFrom, err))
		}
	case cmd.URL != "":
		public, err := api.New(api.Config{URL: cmd.URL})
		if err != nil {
			return nil, true, err
		}
		answer, err := api.Read[keyList](public.Get(ctx, "/.well-known/navlog-statements", nil))
		if err != nil {
			return nil, true, err
		}
		if keys, err = answer.Data.signingKeys(); err != nil {
			return nil, true, fmt.Errorf("read the keys of %s: %w", cmd.URL, err)
		}
	default:
		return nil, false, nil
	}
	return keys, true, nil
}

// signer returns the known key that signed the statement; nil if no keys are given.
func (cmd statementVerifyCmd) signer(ctx context.Context, d *statement.Document) (*signingKey, error) {
	keys, given, err := cmd.known(ctx)
	if err != nil || !given {
		return nil, err
	}
	name := base64.StdEncoding.EncodeToString(d.PublicKey)
	i := slices.IndexFunc(keys, func(k signingKey) bool { return bytes.Equal(k.public, d.PublicKey) })
	if i < 0 {
		return nil, cli.Different.With(fmt.Errorf("%s is signed by the key %s, which is not an accepted key",
			cmd.File, name))
	}
	if retired := keys[i].retiredAt; retired != nil {
		made, err := time.Parse(time.RFC3339Nano, d.Header.Block.Timestamp)
		if err != nil || !made.Before(*retired) {
			return nil, cli.Different.With(fmt.Errorf(
				"%s is signed by the key %s, which was retired at %s, before the block of %s at which it was made", cmd.File, name,
				retired.UTC().Format(time.RFC3339), d.Header.Block.Timestamp))
		}
	}
	return &keys[i], nil
}

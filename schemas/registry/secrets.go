package registry

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"strings"
)

// API keys: nk_live_ (nk_test_ on a development chain), 32 base62 characters,
// and 6 more that are the CRC32 of those 32, so that a mistyped key is known
// without a look-up. Only the SHA-256 of a key is stored; 190 random bits need
// no slow hash.
const (
	livePrefix = "nk_live_"
	testPrefix = "nk_test_"
	base62     = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// NewAPIKey makes a key; test keys are for development chains.
func NewAPIKey(test bool) string {
	prefix := livePrefix
	if test {
		prefix = testPrefix
	}
	random := make([]byte, 32)
	for i := range random {
		n, err := rand.Int(rand.Reader, big.NewInt(62))
		if err != nil {
			panic(err) // crypto/rand does not fail on any supported system
		}
		random[i] = base62[n.Int64()]
	}
	return prefix + string(random) + keyChecksum(string(random))
}

// WellFormedKey tells whether key can be one of ours. It says nothing about
// whether it was ever issued.
func WellFormedKey(key string) bool {
	rest, ok := strings.CutPrefix(key, livePrefix)
	if !ok {
		rest, ok = strings.CutPrefix(key, testPrefix)
	}
	return ok && len(rest) == 38 && keyChecksum(rest[:32]) == rest[32:]
}

// HashKey is what is stored of a key.
func HashKey(key string) []byte {
	h := sha256.Sum256([]byte(key))
	return h[:]
}

func keyChecksum(random string) string {
	n := crc32.ChecksumIEEE([]byte(random))
	out := make([]byte, 6) // 62^6 > 2^32
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = base62[n%62]
		n /= 62
	}
	return string(out)
}

// NewSigningSecret makes a webhook secret: whsec_ and the base64 of 32 random
// bytes. The whole string, prefix included, is the HMAC key.
func NewSigningSecret() string {
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		panic(err) // crypto/rand does not fail on any supported system
	}
	return "whsec_" + base64.StdEncoding.EncodeToString(b)
}

// Sealer encrypts signing secrets at rest with AES-256-GCM. The partner id is
// authenticated with the text, so that a row copied to another partner fails.
type Sealer struct{ aead cipher.AEAD }

// NewSealer reads the key: 32 bytes in standard base64, from the environment.
func NewSealer(key string) (*Sealer, error) {
	b, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(b) != 32 {
		return nil, errors.New("NAVLOG_SECRET_KEY must be the base64 of 32 bytes: make one with `openssl rand -base64 32` and keep it, the stored signing secrets cannot be read without it")
	}
	block, err := aes.NewCipher(b)
	if err != nil {
		return nil, fmt.Errorf("make the cipher of NAVLOG_SECRET_KEY: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("make the cipher of NAVLOG_SECRET_KEY: %w", err)
	}
	return &Sealer{aead}, nil
}

// Seal encrypts the secret of a partner.
func (s *Sealer) Seal(partnerID int64, secret string) []byte {
	nonce := make([]byte, s.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		panic(err) // crypto/rand does not fail on any supported system
	}
	return s.aead.Seal(nonce, nonce, []byte(secret), partnerBytes(partnerID))
}

// Open decrypts what Seal made for the same partner.
func (s *Sealer) Open(partnerID int64, sealed []byte) (string, error) {
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return "", fmt.Errorf("the signing secret of partner %d is cut short in the registry: rotate it with `navlog partner rotate-secret %d`", partnerID, partnerID)
	}
	secret, err := s.aead.Open(nil, sealed[:n], sealed[n:], partnerBytes(partnerID))
	if err != nil {
		return "", fmt.Errorf("the signing secret of partner %d cannot be decrypted: NAVLOG_SECRET_KEY is not the key it was stored with", partnerID)
	}
	return string(secret), nil
}

func partnerBytes(id int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }

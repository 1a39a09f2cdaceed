package registry

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"slices"
	"strings"
)

// API keys: nk_live_ (nk_test_ on a development chain), 32 base62 characters, and the CRC32
// of those 32 in 6 more, so that a mistyped key is detected without a query. Only the
// SHA-256 of a key is stored; 190 random bits need no slow hash.
const (
	livePrefix = "nk_live_"
	testPrefix = "nk_test_"
	base62     = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// NewAPIKey returns a new key; test keys are for development chains.
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

// WellFormedKey reports whether key has the form and checksum of a key. It does not check whether the key was ever
// issued.
func WellFormedKey(key string) bool {
	rest, ok := strings.CutPrefix(key, livePrefix)
	if !ok {
		rest, ok = strings.CutPrefix(key, testPrefix)
	}
	return ok && len(rest) == 38 && keyChecksum(rest[:32]) == rest[32:]
}

// IsTestKey reports whether key is for a development chain.
func IsTestKey(key string) bool { return strings.HasPrefix(key, testPrefix) }

// HashKey returns the hash that is stored for a key.
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

// NewSigningSecret returns a new webhook secret: whsec_ and the base64 of 32 random
// bytes. The whole string, including the prefix, is the HMAC key.
func NewSigningSecret() string {
	b := make([]byte, 32)
	rand.Read(b)
	return "whsec_" + base64.StdEncoding.EncodeToString(b)
}

// Sealer encrypts signing secrets and the keys of client certificates at rest with AES-256-GCM. A sealed value is
//
//	sealMagic, id of the key, nonce, ciphertext
//
// The part before the nonce and the owner are authenticated with the text, so that a value copied to another row cannot
// be opened. The owner of a secret is its partner, that of a client key its partner and URL. Secrets from before keys
// had ids are only nonce and ciphertext; every key is tried on them.
type Sealer struct{ keys []sealKey } // the newest first

type sealKey struct {
	id   [keyIDLen]byte
	aead cipher.AEAD
}

const (
	sealMagic = "nvk1"
	keyIDLen  = 8
)

// NewSealer parses NAVLOG_SECRET_KEY: 32 bytes in standard base64, or several such keys
// separated by commas during a rotation. The first key seals, and each of them opens.
func NewSealer(keys string) (*Sealer, error) {
	if strings.TrimSpace(keys) == "" {
		return nil, errors.New("NAVLOG_SECRET_KEY is not set: give the key that dispatch has; for a new deployment create " +
			"one with `openssl rand -base64 32`")
	}
	s := new(Sealer)
	for _, text := range strings.Split(keys, ",") {
		b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		if err != nil || len(b) != 32 {
			return nil, errors.New("NAVLOG_SECRET_KEY must be the base64 of 32 bytes, or several of them separated by commas, " +
				"the newest first: create one with `openssl rand -base64 32` and keep it, because the stored signing secrets " +
				"cannot be read without it")
		}
		key, err := newSealKey(b)
		if err != nil {
			return nil, fmt.Errorf("make the cipher of NAVLOG_SECRET_KEY: %w", err)
		}
		if s.has(key.id) {
			return nil, errors.New("NAVLOG_SECRET_KEY contains one key twice: give each key once, the newest first")
		}
		s.keys = append(s.keys, key)
	}
	return s, nil
}

func newSealKey(key []byte) (sealKey, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealKey{}, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return sealKey{}, err
	}
	// A key is 256 random bits, so a part of its hash reveals nothing about it.
	sum := sha256.Sum256(append([]byte("navlog secret key id:"), key...))
	return sealKey{id: [keyIDLen]byte(sum[:]), aead: aead}, nil
}

// KeyIDs returns the ids of the keys, that of the sealing key first. Ids are not secret.
func (s *Sealer) KeyIDs() []string {
	ids := make([]string, len(s.keys))
	for i, k := range s.keys {
		ids[i] = hex.EncodeToString(k.id[:])
	}
	return ids
}

func (s *Sealer) has(id [keyIDLen]byte) bool {
	return slices.ContainsFunc(s.keys, func(k sealKey) bool { return k.id == id })
}

// Newest reports whether a value was sealed with the newest key.
func (s *Sealer) Newest(sealed []byte) bool {
	id, ok := sealedWith(sealed)
	return ok && id == s.keys[0].id
}

// sealedWith returns the key id of a sealed value, and false if it has none.
func sealedWith(sealed []byte) (id [keyIDLen]byte, ok bool) {
	rest, ok := bytes.CutPrefix(sealed, []byte(sealMagic))
	if !ok || len(rest) < keyIDLen {
		return id, false
	}
	return [keyIDLen]byte(rest), true
}

// Seal encrypts the secret of a partner with the newest key.
func (s *Sealer) Seal(partnerID int64, secret string) []byte {
	return s.seal(partnerBytes(partnerID), secret)
}

// SealClientKey encrypts the key of a partner's client certificate for a URL with the newest key.
func (s *Sealer) SealClientKey(partnerID int64, url, key string) []byte {
	return s.seal(clientKeyOwner(partnerID, url), key)
}

func (s *Sealer) seal(owner []byte, text string) []byte {
	key := s.keys[0]
	sealed := append([]byte(sealMagic), key.id[:]...)
	nonce := make([]byte, key.aead.NonceSize())
	rand.Read(nonce)
	bound := append(bytes.Clone(sealed), owner...)
	return key.aead.Seal(append(sealed, nonce...), nonce, []byte(text), bound)
}

// Open decrypts a value that Seal returned for the same partner with one of the keys.
func (s *Sealer) Open(partnerID int64, sealed []byte) (string, error) {
	owner := partnerBytes(partnerID)
	if secret, ok := s.open(owner, sealed); ok {
		return secret, nil
	}
	// The value has no id, or starts with random bytes that look like one.
	for _, k := range s.keys {
		if secret, ok := k.open(sealed, owner); ok {
			return secret, nil
		}
	}
	if len(sealed) < s.keys[0].aead.NonceSize() {
		return "", fmt.Errorf(
			"the signing secret of partner %d is truncated in the registry: rotate it with `navlog partner rotate-secret %d`",
			partnerID, partnerID,
		)
	}
	return "", s.unopened(fmt.Sprintf("the signing secret of partner %d", partnerID), sealed)
}

// openClientKey decrypts a value that SealClientKey returned for the same partner and URL with one of the keys.
func (s *Sealer) openClientKey(partnerID int64, url string, sealed []byte) (string, error) {
	if key, ok := s.open(clientKeyOwner(partnerID, url), sealed); ok {
		return key, nil
	}
	return "", s.unopened(fmt.Sprintf("the key of the client certificate of partner %d", partnerID), sealed)
}

// open decrypts a value that names its key.
func (s *Sealer) open(owner, sealed []byte) (string, bool) {
	id, named := sealedWith(sealed)
	const header = len(sealMagic) + keyIDLen
	for _, k := range s.keys {
		if named && k.id == id {
			return k.open(sealed[header:], append(bytes.Clone(sealed[:header]), owner...))
		}
	}
	return "", false
}

// unopened returns the error for a value that none of the keys opens.
func (s *Sealer) unopened(what string, sealed []byte) error {
	if id, named := sealedWith(sealed); named && !s.has(id) {
		return fmt.Errorf("%s, sealed with key %x where %s was given, cannot be decrypted: NAVLOG_SECRET_KEY is not the key "+
			"it was stored with", what, id, strings.Join(s.KeyIDs(), " and "))
	}
	return fmt.Errorf("%s cannot be decrypted: NAVLOG_SECRET_KEY is not the key it was stored with", what)
}

func (k sealKey) open(sealed, bound []byte) (string, bool) {
	n := k.aead.NonceSize()
	if len(sealed) < n {
		return "", false
	}
	secret, err := k.aead.Open(nil, sealed[:n], sealed[n:], bound)
	return string(secret), err == nil
}

func partnerBytes(id int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }

func clientKeyOwner(partnerID int64, url string) []byte {
	return append(partnerBytes(partnerID), "client key for "+url...)
}

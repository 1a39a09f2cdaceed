package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"hash/crc32"
	"math/big"
	"regexp"
	"strings"
	"testing"
)

func TestAPIKeys(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		for test, form := range map[bool]*regexp.Regexp{false: regexp.MustCompile(`^nk_live_[0-9A-Za-z]{38}$`),
			true: regexp.MustCompile(`^nk_test_[0-9A-Za-z]{38}$`)} {
			key := NewAPIKey(test)
			if !form.MatchString(key) || !WellFormedKey(key) || seen[key] {
				t.Fatalf("a malformed or repeated key: %s", key)
			}
			seen[key] = true
			// Computes the checksum independently: base 62 of big.Int, whose digits are 0-9a-zA-Z.
			swap := func(s string) string {
				return strings.Map(func(r rune) rune {
					switch {
					case r >= 'a' && r <= 'z':
						return r - 32
					case r >= 'A' && r <= 'Z':
						return r + 32
					}
					return r
				}, s)
			}
			want := swap(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(key[8:40])))).Text(62))
			if got := strings.TrimLeft(key[40:], "0"); got != strings.TrimLeft(want, "0") {
				t.Fatalf("checksum of %s is %s, want %s", key, got, want)
			}
		}
	}
	key := NewAPIKey(true)
	for i := 8; i < len(key); i++ { // every single mistyped character is detected
		other := byte('0')
		if key[i] == other {
			other = '1'
		}
		if WellFormedKey(key[:i] + string(other) + key[i+1:]) {
			t.Errorf("a wrong character at %d is not detected", i)
		}
	}
	for _, bad := range []string{"", "nk_live_", key[:len(key)-1], key + "0", "nk_prod_" + key[8:], strings.ToUpper(key),
		" " + key} {
		if WellFormedKey(bad) {
			t.Errorf("%q is accepted as a key", bad)
		}
	}
	if want := sha256.Sum256([]byte(key)); !bytes.Equal(HashKey(key), want[:]) {
		t.Error("HashKey is not the SHA-256 of the whole key")
	}
}

func FuzzWellFormedKey(f *testing.F) {
	f.Add(NewAPIKey(true))
	f.Add("nk_live_é")
	f.Fuzz(func(t *testing.T, key string) {
		if WellFormedKey(key) && (len(key) != 46 || crc32.ChecksumIEEE([]byte(key[8:40])) == 0 && key[40:] != "000000") {
			t.Errorf("%q is accepted as a key", key)
		}
	})
}

func TestSigningSecret(t *testing.T) {
	a, b := NewSigningSecret(), NewSigningSecret()
	random, ok := strings.CutPrefix(a, "whsec_")
	if raw, err := base64.StdEncoding.DecodeString(random); !ok || err != nil || len(raw) != 32 || a == b {
		t.Errorf("%q, %q", a, b)
	}
}

func TestSealer(t *testing.T) {
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	s, err := NewSealer(key)
	if err != nil {
		t.Fatal(err)
	}
	secret := NewSigningSecret()
	sealed := s.Seal(7, secret)
	if got, err := s.Open(7, sealed); err != nil || got != secret {
		t.Errorf("%q %v", got, err)
	}
	if bytes.Contains(sealed, []byte(secret[6:])) || bytes.Equal(sealed, s.Seal(7, secret)) {
		t.Error("the secret is visible, or two seals of it are equal")
	}
	other, err := NewSealer(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{8}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(sealed)
	flipped[len(flipped)-1] ^= 1
	for name, open := range map[string]func() (string, error){
		"another partner's row": func() (string, error) { return s.Open(8, sealed) },
		"another key":           func() (string, error) { return other.Open(7, sealed) },
		"a flipped bit":         func() (string, error) { return s.Open(7, flipped) },
		"truncated":             func() (string, error) { return s.Open(7, sealed[:5]) },
		"empty":                 func() (string, error) { return s.Open(7, nil) },
	} {
		got, err := open()
		if err == nil || got != "" || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), key) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, bad := range []string{"", "short", base64.StdEncoding.EncodeToString(make([]byte, 31)),
		base64.StdEncoding.EncodeToString(make([]byte, 33)),
		base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{255}, 32))} {
		if _, err := NewSealer(bad); err == nil || !strings.Contains(err.Error(), "NAVLOG_SECRET_KEY") || bad != "" &&
			strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// During a key rotation values of both keys can be opened and the newest key seals; values from
// before keys had ids can be opened too.
func TestSealerOfSeveralKeys(t *testing.T) {
	first, second := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)),
		base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{8}, 32))
	sealer := func(keys string) *Sealer {
		s, err := NewSealer(keys)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before, between, after := sealer(first), sealer(second+", "+first), sealer(second)
	secret := NewSigningSecret()
	old, fresh := before.Seal(7, secret), between.Seal(7, secret)
	nonce := bytes.Repeat([]byte{1}, 12)
	plain := before.keys[0].aead.Seal(bytes.Clone(nonce), nonce, []byte(secret), partnerBytes(7))
	// Random bytes of a nonce may look like the beginning of a value with an id.
	copy(nonce, sealMagic)
	lookalike := before.keys[0].aead.Seal(bytes.Clone(nonce), nonce, []byte(secret), partnerBytes(7))
	for name, sealed := range map[string][]byte{"the old key": old, "the new key": fresh, "a key without id": plain,
		"a nonce like an id": lookalike} {
		if got, err := between.Open(7, sealed); err != nil || got != secret {
			t.Errorf("sealed with %s: %v", name, err)
		}
		if between.Newest(sealed) != (name == "the new key") {
			t.Errorf("sealed with %s: Newest returns %t", name, between.Newest(sealed))
		}
	}
	if _, err := after.Open(7, fresh); err != nil {
		t.Errorf("only the new key: %v", err)
	}
	_, err := after.Open(7, old)
	if err == nil || !strings.Contains(err.Error(), before.KeyIDs()[0]) ||
		!strings.Contains(err.Error(), after.KeyIDs()[0]) {
		t.Errorf("without the old key: %v", err)
	}
	// The id is authenticated: with another id the value cannot be opened.
	forged := append(append([]byte(sealMagic), between.keys[1].id[:]...), fresh[len(sealMagic)+keyIDLen:]...)
	if _, err := between.Open(7, forged); err == nil {
		t.Error("a value with the id of another key is opened")
	}
	if ids := between.KeyIDs(); len(ids) != 2 || ids[0] != after.KeyIDs()[0] || strings.Contains(first+second, ids[0]) {
		t.Errorf("ids %v", ids)
	}
	for _, bad := range []string{first + "," + first, first + ",", "," + first, first + " " + second} {
		if _, err := NewSealer(bad); err == nil || strings.Contains(err.Error(), first) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

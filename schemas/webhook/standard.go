package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

// Headers of Standard Webhooks, which are sent in addition to our own, so that ready-made
// verifiers work.
const (
	HeaderStandardID        = "Webhook-Id"
	HeaderStandardTimestamp = "Webhook-Timestamp"
	HeaderStandardSignature = "Webhook-Signature"
)

// secretPrefix precedes the base64 of a signing secret.
const secretPrefix = "whsec_"

// SignStandard returns the value of Webhook-Signature: for each secret v1, and the base64
// HMAC-SHA256 of "<id>.<timestamp>.<body>", separated by spaces. Unlike in Sign, the key is
// the decoded base64 after whsec_. A secret of another form is an error, which does not
// contain the secret.
func SignStandard(secrets []string, id string, timestamp int64, body []byte) (string, error) {
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		text, ok := strings.CutPrefix(secret, secretPrefix)
		key, err := base64.StdEncoding.DecodeString(text)
		if !ok || err != nil {
			return "", errors.New("the signing secret must be whsec_ followed by base64, as Standard Webhooks requires")
		}
		h := hmac.New(sha256.New, key)
		h.Write([]byte(id + "." + strconv.FormatInt(timestamp, 10) + "."))
		h.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
	}
	return strings.Join(signatures, " "), nil
}

package webhook

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"

	"github.com/google/go-github/v84/github"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Host is whose words a webhook is in.
type Host string

// The hosts whose webhooks are understood.
const (
	GitHub Host = "github"
	GitLab Host = "gitlab"
)

// Signature is how the sender shows that it knows the secret: one of three ways, as headers.
type Signature struct {
	// Digest is GitHub's X-Hub-Signature-256: "sha256=" and the HMAC of the body.
	Digest string
	// Token is GitLab's X-Gitlab-Token: the secret itself.
	Token string
	// ID, Timestamp and Signatures are those of Standard Webhooks, which GitLab sends for a signing token.
	ID, Timestamp, Signatures string
}

var (
	// ErrUnsigned says that there is no signature of the kind that the host makes.
	ErrUnsigned = errors.New("the webhook has no signature of its host's kind")
	// ErrSignature says that the signature was made with another secret, or over another body.
	ErrSignature = errors.New("the signature of the webhook is wrong")
	// ErrTimestamp says that the signature is right, but too old or from the future.
	ErrTimestamp = errors.New("the time of the webhook's signature is more than five minutes from now")
)

// maxSecrets is how many secrets count: the present one and the one before.
const maxSecrets = 2

// decoy takes the place of secrets that there are not, so that the answer takes as long. It opens nothing.
const decoy = "no receiver has this secret"

// Verify checks that a body was signed with one of at most two secrets. Whichever host is expected and however many
// secrets there are, all signatures are computed, and compared in constant time: how long it takes depends on what the
// caller sent alone. GitLab may send both the secret and a signature; one of them must be right. signedID reports that
// a right signature covers the id of the delivery, too.
func Verify(host Host, s Signature, body []byte, secrets []string) (signedID bool, err error) {
	var digest, token, standard error = ErrSignature, ErrSignature, ErrSignature
	for i := range maxSecrets {
		secret := decoy
		if i < len(secrets) {
			secret = secrets[i]
		}
		d, t, st := verifyDigest(s, body, secret), verifyToken(s, secret), verifyStandard(s, body, secret)
		if i < len(secrets) {
			digest, token, standard = better(digest, d), better(token, t), better(standard, st)
		}
	}
	switch {
	case host == GitHub && s.Digest != "":
		return false, digest
	case host == GitLab && s.Signatures != "" && (s.Token == "" || token != nil || errors.Is(standard, ErrTimestamp)):
		return standard == nil, standard
	case host == GitLab && s.Token != "":
		return token == nil && standard == nil, token
	}
	return false, ErrUnsigned
}

// better returns the less wrong of two errors.
func better(a, b error) error {
	if a == nil || b == nil {
		return nil
	}
	if errors.Is(a, ErrTimestamp) {
		return a
	}
	return b
}

func verifyDigest(s Signature, body []byte, secret string) error {
	// The client would take weaker hashes too.
	if s.Digest == "" || !strings.HasPrefix(s.Digest, "sha256=") || github.ValidateSignature(s.Digest, body, []byte(secret)) != nil {
		return ErrSignature
	}
	return nil
}

// verifyToken compares hashes, so that the length does not show either.
func verifyToken(s Signature, secret string) error {
	got, want := sha256.Sum256([]byte(s.Token)), sha256.Sum256([]byte(secret))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		return ErrSignature
	}
	return nil
}

// verifyStandard takes the secret as GitLab's signing tokens are written ("whsec_…", the key in base64), and any other
// as the key itself.
func verifyStandard(s Signature, body []byte, secret string) error {
	if s.Signatures == "" {
		return ErrSignature
	}
	verifier, err := standardwebhooks.NewWebhookRaw([]byte(secret))
	if strings.HasPrefix(secret, "whsec_") {
		verifier, err = standardwebhooks.NewWebhook(secret)
	}
	if err != nil {
		return ErrSignature
	}
	headers := http.Header{}
	headers.Set(standardwebhooks.HeaderWebhookID, s.ID)
	headers.Set(standardwebhooks.HeaderWebhookTimestamp, s.Timestamp)
	headers.Set(standardwebhooks.HeaderWebhookSignature, s.Signatures)
	// In this order, since the library looks at the time first: only who knows the secret is told about the time.
	if verifier.VerifyIgnoringTimestamp(body, headers) != nil {
		return ErrSignature
	}
	if verifier.Verify(body, headers) != nil {
		return ErrTimestamp
	}
	return nil
}

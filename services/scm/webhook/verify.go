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

// Host is the kind of host that sent a webhook.
type Host string

// Hosts with supported webhooks.
const (
	GitHub Host = "github"
	GitLab Host = "gitlab"

	AzureDevOps Host = "azure"
)

// Signature holds the headers that prove the sender knows the secret, in one of four schemes.
type Signature struct {
	// Digest is GitHub's X-Hub-Signature-256: "sha256=" and the HMAC of the body.
	Digest string
	// Token is GitLab's X-Gitlab-Token: the secret itself.
	Token string
	// Basic is the header Authorization of Azure DevOps, with the secret as password.
	Basic string
	// ID, Timestamp and Signatures are the Standard Webhooks headers that GitLab sends for a signing token.
	ID, Timestamp, Signatures string
}

var (
	// ErrUnsigned: the host's signature header is missing.
	ErrUnsigned = errors.New("the webhook has no signature of its host's kind")
	// ErrSignature: the signature was made with another secret or for another body.
	ErrSignature = errors.New("the signature of the webhook is wrong")
	// ErrTimestamp: the signature is valid, but too old or from the future.
	ErrTimestamp = errors.New("the time of the webhook's signature is more than five minutes from now")
)

// maxSecrets is the number of accepted secrets: the current and the previous one.
const maxSecrets = 2

// decoy replaces missing secrets, so that verification takes the same time. It never verifies.
const decoy = "no receiver has this secret"

// Verify checks that a body was signed with one of at most two secrets. It always computes all signatures and compares
// them in constant time, for each host and number of secrets, so the duration depends only on the request. GitLab may
// send both the secret and a signature; one of them must be valid. signedID reports that a valid signature covers the
// delivery's id too.
func Verify(host Host, s Signature, body []byte, secrets []string) (signedID bool, err error) {
	var digest, token, standard, basic error = ErrSignature, ErrSignature, ErrSignature, ErrSignature
	for i := range maxSecrets {
		secret := decoy
		if i < len(secrets) {
			secret = secrets[i]
		}
		d, t, st, b := verifyDigest(s, body, secret), verifyToken(s, secret), verifyStandard(s, body, secret), verifyBasic(s, secret)
		if i < len(secrets) {
			digest, token, standard, basic = moreSpecific(digest, d), moreSpecific(token, t), moreSpecific(standard, st), moreSpecific(basic, b)
		}
	}
	switch {
	case host == AzureDevOps && s.Basic != "":
		return false, basic
	case host == GitHub && s.Digest != "":
		return false, digest
	case host == GitLab && s.Signatures != "" && (s.Token == "" || token != nil || errors.Is(standard, ErrTimestamp)):
		return standard == nil, standard
	case host == GitLab && s.Token != "":
		return token == nil && standard == nil, token
	}
	return false, ErrUnsigned
}

// moreSpecific returns the more specific of two errors.
func moreSpecific(a, b error) error {
	if a == nil || b == nil {
		return nil
	}
	if errors.Is(a, ErrTimestamp) {
		return a
	}
	return b
}

func verifyDigest(s Signature, body []byte, secret string) error {
	// The client would also accept weaker hashes.
	if s.Digest == "" || !strings.HasPrefix(s.Digest, "sha256=") || github.ValidateSignature(s.Digest, body, []byte(secret)) != nil {
		return ErrSignature
	}
	return nil
}

// verifyToken compares hashes, so that the secret's length does not leak either.
func verifyToken(s Signature, secret string) error {
	got, want := sha256.Sum256([]byte(s.Token)), sha256.Sum256([]byte(secret))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		return ErrSignature
	}
	return nil
}

// verifyStandard accepts the secret in the format of GitLab's signing tokens ("whsec_…", the key in base64). Any other
// secret is used as the key itself.
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
	// Check the signature here, because the library checks the time before it: only a caller with the secret may learn
	// that the time is wrong.
	if verifier.VerifyIgnoringTimestamp(body, headers) != nil {
		return ErrSignature
	}
	if verifier.Verify(body, headers) != nil {
		return ErrTimestamp
	}
	return nil
}

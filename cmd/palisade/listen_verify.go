package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const contractSignature = "X-Semgrep-Signature-256"

// verifySignatures checks every signature that a message carries, in constant time, over the body as it came. One is
// enough, but none may be wrong. An empty secret checks nothing. The error says what a sender has to mend.
func verifySignatures(secret string, header http.Header, body []byte) error {
	if secret == "" {
		return nil
	}
	signature, standard := header.Get(contractSignature), header.Get(webhooks.HeaderWebhookSignature)
	if signature == "" && standard == "" {
		return fmt.Errorf("the message is not signed: it has neither %s nor %s", contractSignature, webhooks.HeaderWebhookSignature)
	}
	if signature != "" {
		if err := verifyContract(secret, signature, body); err != nil {
			return err
		}
	}
	if standard == "" {
		return nil
	}
	verifier, err := webhooks.NewWebhookRaw([]byte(secret))
	if err != nil {
		return err
	}
	switch err := verifier.Verify(body, header); {
	case err == nil:
		return nil
	case errors.Is(err, webhooks.ErrRequiredHeaders):
		return fmt.Errorf("%s needs %s and %s beside it", webhooks.HeaderWebhookSignature, webhooks.HeaderWebhookID, webhooks.HeaderWebhookTimestamp)
	case errors.Is(err, webhooks.ErrMessageTooOld), errors.Is(err, webhooks.ErrMessageTooNew):
		return fmt.Errorf("%s is more than five minutes away from this machine's clock", webhooks.HeaderWebhookTimestamp)
	case errors.Is(err, webhooks.ErrInvalidHeaders):
		return fmt.Errorf("%s is no number of seconds", webhooks.HeaderWebhookTimestamp)
	}
	return fmt.Errorf("%s does not match %s, %s and body under this secret", webhooks.HeaderWebhookSignature, webhooks.HeaderWebhookID, webhooks.HeaderWebhookTimestamp)
}

// verifyContract takes the digest in the forms that senders use: bare or after "sha256=", in either case.
func verifyContract(secret, signature string, body []byte) error {
	digest, err := hex.DecodeString(strings.TrimPrefix(signature, "sha256="))
	if err != nil || len(digest) != sha256.Size {
		return fmt.Errorf("%s is no SHA-256 digest of 64 hexadecimal digits", contractSignature)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	if !hmac.Equal(digest, mac.Sum(nil)) {
		return fmt.Errorf("%s does not match the body under this secret", contractSignature)
	}
	return nil
}

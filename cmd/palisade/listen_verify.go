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

// verifySignatures checks all signatures of a message over the raw body, in constant time. At least one is required and
// all must match. An empty secret disables the check. The error says what the sender must fix.
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
		return fmt.Errorf("%s requires %s and %s", webhooks.HeaderWebhookSignature, webhooks.HeaderWebhookID, webhooks.HeaderWebhookTimestamp)
	case errors.Is(err, webhooks.ErrMessageTooOld), errors.Is(err, webhooks.ErrMessageTooNew):
		return fmt.Errorf("%s differs from this machine's clock by more than five minutes", webhooks.HeaderWebhookTimestamp)
	case errors.Is(err, webhooks.ErrInvalidHeaders):
		return fmt.Errorf("%s is not a number of seconds", webhooks.HeaderWebhookTimestamp)
	}
	return fmt.Errorf("%s does not match %s, %s and body with this secret", webhooks.HeaderWebhookSignature, webhooks.HeaderWebhookID, webhooks.HeaderWebhookTimestamp)
}

// verifyContract accepts the forms of the digest that senders use: bare or after "sha256=", in upper or lower case.
func verifyContract(secret, signature string, body []byte) error {
	digest, err := hex.DecodeString(strings.TrimPrefix(signature, "sha256="))
	if err != nil || len(digest) != sha256.Size {
		return fmt.Errorf("%s is not a SHA-256 digest of 64 hexadecimal digits", contractSignature)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	if !hmac.Equal(digest, mac.Sum(nil)) {
		return fmt.Errorf("%s does not match the body with this secret", contractSignature)
	}
	return nil
}

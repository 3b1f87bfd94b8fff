package channel

import (
	"crypto/md5"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

const s3Error = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>secret detail</Message><RequestId>1</RequestId></Error>`

func TestS3PutsASignedObject(t *testing.T) {
	r := newReceiver(t)
	r.header = map[string]string{"ETag": `"9b2cf535f27731c974343645a3985328"`}
	sender := open(t, S3, bucketConfig(config{"endpoint": r.URL, "prefix": "palisade/"}))
	for range 2 { // the second time overwrites the same object
		status, err := sender.Send(t.Context(), sample)
		if err != nil || status != 200 {
			t.Fatalf("got %d, %v", status, err)
		}
		if got := r.request.Method + " " + r.request.URL.Path; got != "PUT /acme-findings/palisade/2026-05-05/evt_1007.json" {
			t.Errorf("got %s", got)
		}
	}
	h := r.request.Header
	// The signature covers the body's MD5.
	sum := md5.Sum(sample.Payload)
	if string(r.body) != string(sample.Payload) || h.Get("Content-Md5") != base64.StdEncoding.EncodeToString(sum[:]) ||
		!strings.Contains(h.Get("Authorization"), "SignedHeaders=content-md5;") || h.Get("Content-Type") != "application/json" {
		t.Errorf("got %q, %v", r.body, h)
	}
	auth := h.Get("Authorization")
	for _, part := range []string{"AWS4-HMAC-SHA256 Credential=PALISADETESTKEY/", "/eu-central-1/s3/aws4_request", "SignedHeaders=", "host;", "Signature="} {
		if !strings.Contains(auth, part) {
			t.Errorf("Authorization %q lacks %q", auth, part)
		}
	}
	if at, err := time.Parse("20060102T150405Z", h.Get("X-Amz-Date")); err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("X-Amz-Date %q: %v", h.Get("X-Amz-Date"), err)
	}
	if strings.Contains(auth, signingSecret) {
		t.Error("the secret key was sent")
	}
}

func TestS3ObjectKeyOfTheCaller(t *testing.T) {
	r := newReceiver(t)
	m := sample
	m.ObjectKey = "scans/7.json"
	if _, err := open(t, S3, bucketConfig(config{"endpoint": r.URL})).Send(t.Context(), m); err != nil || r.request.URL.Path != "/acme-findings/scans/7.json" {
		t.Errorf("got %s, %v", r.request.URL.Path, err)
	}
}

func TestS3Failures(t *testing.T) {
	r := newReceiver(t)
	for name, c := range map[string]struct {
		status int
		code   string
		header map[string]string
		text   string
		wait   time.Duration
	}{
		"denied":     {403, "AccessDenied", nil, "the bucket's host answered HTTP 403 Forbidden (AccessDenied)", 0},
		"signature":  {403, "SignatureDoesNotMatch", nil, "(SignatureDoesNotMatch)", 0},
		"no bucket":  {404, "NoSuchBucket", nil, "HTTP 404 Not Found (NoSuchBucket)", 0},
		"region":     {301, "PermanentRedirect", nil, "redirects are not followed", 0},
		"gone":       {410, "Gone", nil, "HTTP 410", 0},
		"slow down":  {503, "SlowDown", map[string]string{"Retry-After": "30"}, "HTTP 503", 30 * time.Second},
		"too large":  {413, "EntityTooLarge", nil, "HTTP 413", 0},
		"error":      {500, "InternalError", nil, "HTTP 500", 0},
		"no S3":      {401, "<b>not S3</b>", nil, "HTTP 401 Unauthorized", 0},
		"rate limit": {429, "TooManyRequests", map[string]string{"Retry-After": "7"}, "HTTP 429", 7 * time.Second},
	} {
		r.status, r.answer, r.header = c.status, strings.Replace(s3Error, "%s", c.code, 1), c.header
		status, err := open(t, S3, bucketConfig(config{"endpoint": r.URL})).Send(t.Context(), sample)
		var e *Error
		if !errors.As(err, &e) || status != c.status || e.Permanent || e.RetryAfter != c.wait || !strings.Contains(e.Public, c.text) {
			t.Errorf("%s: got %d, %+v", name, status, e)
			continue
		}
		for _, leak := range []string{"secret detail", "<b>", signingSecret} {
			if strings.Contains(e.Error(), leak) {
				t.Errorf("%s: the text shows %q", name, leak)
			}
		}
	}
	r.status, r.answer = http.StatusForbidden, strings.Repeat("x", 4*maxAnswer)
	if status, err := open(t, S3, bucketConfig(config{"endpoint": r.URL})).Send(t.Context(), sample); err == nil || status != 403 {
		t.Errorf("a body beyond the cap: got %d, %v", status, err)
	}
}

func TestS3OfAmazonIsCalledByBucketName(t *testing.T) {
	sender, err := newBucket(bucketConfig(nil), newGuard(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	if got := sender.client.EndpointURL().String(); got != "https://s3.eu-central-1.amazonaws.com" {
		t.Errorf("got %s", got)
	}
}

package channel

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/palisade/palisade/services/internal/egress"
)

// bucket writes each message as an object. The key is derived from the event, so a retry overwrites the same object.
type bucket struct {
	name, prefix string
	client       *minio.Client
}

func newBucket(config map[string]string, guard *egress.Guard) (*bucket, error) {
	endpoint := config["endpoint"]
	lookup := minio.BucketLookupAuto
	if endpoint == "" {
		endpoint = "https://s3." + config["region"] + ".amazonaws.com"
	} else {
		lookup = minio.BucketLookupPath // few S3-compatible services support a host name and certificate per bucket
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds:        credentials.NewStaticV4(config["access_key_id"], config["secret_access_key"], ""),
		Secure:       u.Scheme == "https",
		Region:       config["region"],
		BucketLookup: lookup,
		Transport:    answerTransport{guard.Client(egress.Limits{Timeout: sendTimeout, MaxResponse: maxAnswer}).Transport},
		MaxRetries:   1, // the ledger retries
	})
	if err != nil {
		return nil, err
	}
	return &bucket{name: config["bucket"], prefix: config["prefix"], client: client}, nil
}

// checkEndpoint rejects a path: the library adds the bucket itself.
func checkEndpoint(text string) string {
	if u, err := url.Parse(text); err != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "must be an https:// URL of a host without path and query; the bucket has a key of its own"
	}
	return ""
}

// Send implements Sender.
func (b *bucket) Send(ctx context.Context, m Message) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	ctx, answer := withAnswer(ctx)
	// Without TLS the library would sign the body while streaming it. If a host answers early, it closes that stream from
	// two goroutines at once, which can crash the process. The body's MD5 is signed with the headers instead.
	_, err := b.client.PutObject(ctx, b.name, b.key(m), bytes.NewReader(m.Payload), int64(len(m.Payload)),
		minio.PutObjectOptions{ContentType: "application/json", DisableMultipart: true, SendContentMd5: true, DisableContentSha256: true})
	switch {
	case err == nil:
		return answer.status, nil
	case answer.status == 0:
		return 0, connectError(err)
	}
	e := statusError("the bucket's host", answer.status, answer.header)
	if e == nil { // the status was good, but the rest of the response was invalid
		return answer.status, connectError(err)
	}
	e.cause = err
	if answer.status == http.StatusGone {
		e.Permanent = false // says nothing about the bucket
	}
	if code := minio.ToErrorResponse(err).Code; isWord(code) {
		e.Public += " (" + code + ")"
	}
	return answer.status, e
}

func (b *bucket) key(m Message) string {
	if m.ObjectKey != "" {
		return b.prefix + m.ObjectKey
	}
	return b.prefix + m.At.UTC().Format("2006-01-02") + "/" + m.EventID + ".json"
}

// isWord reports whether a text looks like an S3 error code (AccessDenied).
func isWord(code string) bool {
	return code != "" && len(code) <= 64 && strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
}

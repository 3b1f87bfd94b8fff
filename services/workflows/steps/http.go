package steps

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/workflows/step"
)

const (
	// requestTimeout applies to one request. The step's own timeout may be shorter.
	requestTimeout = 60 * time.Second
	// defaultBody and maxBody are in bytes.
	defaultBody = 512 << 10
	maxBody     = 1 << 20
	// maxRequestBody and maxHeaders limit the request.
	maxRequestBody = 1 << 20
	maxHeaders     = 64
	maxHops        = 5
)

var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// ownHeaders are set by the HTTP connection and cannot be parameters.
var ownHeaders = []string{
	"Host", "Connection", "Content-Length", "Expect", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// requestParameters are the parameters of http.
type requestParameters struct {
	URL string `json:"url"`
	// Method defaults to GET.
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	// Body is sent unchanged if it is a string, as JSON otherwise.
	Body any `json:"body"`
	// Expect lists the statuses that count as success. The default is 2xx.
	Expect []int `json:"expect"`
	// MaxBytes is the maximum size of the response body.
	MaxBytes int64 `json:"maxBytes"`
}

func (p requestParameters) problem(open map[string]bool) string {
	switch {
	case p.URL == "" && !open["url"]:
		return "url is missing"
	case p.URL != "" && !isWebURL(p.URL):
		return "url must be an https:// URL with a host"
	case p.Method != "" && !slices.Contains(methods, p.Method):
		return fmt.Sprintf("method must be one of %s, got %q", strings.Join(methods, ", "), p.Method)
	case p.MaxBytes < 0 || p.MaxBytes > maxBody:
		return fmt.Sprintf("maxBytes must be 1 to %d, or 0 for %d; got %d", maxBody, defaultBody, p.MaxBytes)
	case p.Body != nil && p.Method == "" && !open["method"], p.Body != nil && p.Method == http.MethodGet:
		return "body is not for the method GET: set method to POST, PUT or PATCH"
	case len(p.Headers) > maxHeaders:
		return fmt.Sprintf("headers must be at most %d, got %d", maxHeaders, len(p.Headers))
	}
	for _, code := range p.Expect {
		if code < 100 || code > 599 {
			return fmt.Sprintf("expect must hold statuses of 100 to 599, got %d", code)
		}
	}
	for name, value := range p.Headers {
		if slices.Contains(ownHeaders, http.CanonicalHeaderKey(name)) {
			return fmt.Sprintf("header %s cannot be set: it belongs to the connection", http.CanonicalHeaderKey(name))
		}
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return fmt.Sprintf("headers: %.60q is not a header name, or its value is invalid", name)
		}
	}
	return ""
}

func isWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

// request calls an HTTP API.
func request(guard *egress.Guard) step.Kind {
	return step.Kind{
		Name: "http", Doc: "Calls an HTTP API; the output is {status, headers, body}, with the body parsed when it is JSON.",
		Check: checked[requestParameters](),
		Run: func(ctx context.Context, call step.Call) (step.Result, error) {
			p, err := decodeParameters[requestParameters](call)
			if err != nil {
				return step.Result{}, err
			}
			if err := guard.CheckURL(p.URL); err != nil {
				return step.Result{}, step.Permanent("url %w", err)
			}
			limit := p.MaxBytes
			if limit == 0 {
				limit = defaultBody
			}
			r, err := p.request(ctx, call)
			if err != nil {
				return step.Result{}, err
			}
			client := guard.Client(egress.Limits{Timeout: requestTimeout, MaxResponse: limit, MaxRedirects: maxHops})
			answer, err := client.Do(r)
			if err != nil {
				return step.Result{}, callError(err)
			}
			defer func() { _ = answer.Body.Close() }()
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				return step.Result{}, callError(err)
			}
			if err := p.checkStatus(answer.StatusCode); err != nil {
				return step.Result{}, err
			}
			return answerOutput(answer, body)
		},
	}
}

func (p requestParameters) request(ctx context.Context, call step.Call) (*http.Request, error) {
	method := p.Method
	if method == "" {
		method = http.MethodGet
	}
	content, kind := []byte(nil), "application/json"
	switch body := p.Body.(type) {
	case nil:
		kind = ""
	case string:
		content, kind = []byte(body), "text/plain; charset=utf-8"
	default:
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, step.Permanent("body is no JSON")
		}
		content = encoded
	}
	if len(content) > maxRequestBody {
		return nil, step.Permanent("body has %d bytes, at most %d are sent", len(content), maxRequestBody)
	}
	r, err := http.NewRequestWithContext(ctx, method, p.URL, bytes.NewReader(content))
	if err != nil {
		return nil, step.Permanent("url must be an https:// URL with a host")
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if method != http.MethodGet {
		// The key is the same for all attempts of the task, so that receivers can deduplicate.
		r.Header.Set("Idempotency-Key", fmt.Sprintf("palisade-%d-%d", call.RunID, call.TaskID))
	}
	for name, value := range p.Headers {
		r.Header.Set(name, value)
	}
	return r, nil
}

// checkStatus classifies a status: expected, temporary failure or permanent failure.
func (p requestParameters) checkStatus(code int) error {
	expected := code >= 200 && code < 300
	if len(p.Expect) > 0 {
		expected = slices.Contains(p.Expect, code)
	}
	switch {
	case expected:
		return nil
	case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
		return fmt.Errorf("the server answered with status %d", code)
	}
	return step.Permanent("the server answered with status %d", code)
}

// callError hides the request's target: its URL may contain a secret, and its address may be internal.
func callError(err error) error {
	var tooLarge *egress.TooLargeError
	text := egress.Describe(err)
	if errors.As(err, &tooLarge) || errors.Is(err, egress.ErrRefused) || errors.Is(err, egress.ErrTooManyRedirects) || errors.Is(err, egress.ErrUpgrade) {
		return step.Permanent("%s", text)
	}
	return errors.New(text)
}

func answerOutput(answer *http.Response, body []byte) (step.Result, error) {
	headers := map[string]string{}
	for name, values := range answer.Header {
		if name != "Set-Cookie" {
			headers[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
		}
	}
	var value any
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if isJSON := kind == "application/json" || strings.HasSuffix(kind, "+json"); isJSON && json.Valid(body) {
		value = json.RawMessage(body)
	} else if utf8.Valid(body) {
		value = string(body)
	} else {
		return step.Result{}, step.Permanent("the response body is not text")
	}
	result, err := output(map[string]any{"status": answer.StatusCode, "headers": headers, "body": value})
	if err == nil && len(result.Output) > step.MaxOutput {
		return step.Result{}, step.Permanent("the answer has %d bytes as JSON, at most %d are kept: set maxBytes to less, or ask for less", len(result.Output), step.MaxOutput)
	}
	return result, err
}

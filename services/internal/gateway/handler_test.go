package gateway_test

import (
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/gateway"
)

func withHealth(config *gateway.Config) {
	config.Routes = map[string]http.Handler{
		"/healthz": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }),
		"/panic":   http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret text of a panic") }),
		"/late-panic": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("half an answer ", 1000))
			_ = http.NewResponseController(w).Flush()
			panic("late")
		}),
	}
}

// TestRPCErrors pins the HTTP form of handlers' errors.
func TestRPCErrors(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		status int
		want   string
		header map[string]string
	}{
		"unauthenticated": {
			apierr.Unauthenticated("not authorized"), 401,
			`{"error":"not authorized","message":"not authorized","code":"UNAUTHENTICATED","status":"UNAUTHENTICATED","details":[],"requestId":"test-1"}`,
			map[string]string{"WWW-Authenticate": `Bearer realm="palisade"`},
		},
		"rate limited": {
			apierr.RateLimited(1500 * time.Millisecond), 429,
			`{"error":"too many requests: try again in 2 s","message":"too many requests: try again in 2 s","code":"RATE_LIMITED","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.500s"}],"requestId":"test-1"}`,
			map[string]string{"Retry-After": "2"},
		},
		"conflict": {
			apierr.Conflict("stale <version>"), 409,
			`{"error":"stale <version>","message":"stale <version>","code":"CONFLICT","status":"ABORTED","details":[],"requestId":"test-1"}`, nil,
		},
		"raw error": {
			errors.New("pq: password is hunter2"), 500,
			`{"error":"internal error","message":"internal error","code":"INTERNAL","status":"INTERNAL","details":[],"requestId":"test-1"}`, nil,
		},
		"deadline": {
			context.DeadlineExceeded, 504,
			`{"error":"the request took longer than allowed","message":"the request took longer than allowed","code":"DEADLINE_EXCEEDED","status":"DEADLINE_EXCEEDED","details":[],"requestId":"test-1"}`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &recorder{answer: func(context.Context, proto.Message) (proto.Message, error) { return nil, test.err }}
			server := start(t, s, nil)
			response, body := do(t, "GET", server.URL+"/api/v1/deployments/acme/projects", "")
			if response.StatusCode != test.status || body != test.want {
				t.Errorf("got  %d %s\nwant %d %s", response.StatusCode, body, test.status, test.want)
			}
			if got := response.Header.Get("X-Api-Maturity"); got != "Experimental" {
				t.Errorf("X-Api-Maturity %q", got)
			}
			for header, want := range test.header {
				if got := response.Header.Get(header); got != want {
					t.Errorf("%s: %q, want %q", header, got, want)
				}
			}
		})
	}
}

func TestPanics(t *testing.T) {
	const want = `{"error":"internal error","message":"internal error","code":"INTERNAL","status":"INTERNAL","details":[],"requestId":"test-1"}`
	s := &recorder{answer: func(context.Context, proto.Message) (proto.Message, error) { panic("secret text of a panic") }}
	server := start(t, s, withHealth)
	for _, path := range []string{"/api/v1/deployments/acme/projects", "/panic"} {
		for _, encoding := range []string{"identity", "gzip"} {
			response, body := do(t, "GET", server.URL+path, "", "Accept-Encoding", encoding)
			if response.StatusCode != 500 || body != want {
				t.Errorf("%s %s: %d %s", path, encoding, response.StatusCode, body)
			}
		}
	}
	response, err := http.Get(server.URL + "/late-panic")
	if err == nil {
		_, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
	}
	if err == nil {
		t.Error("a truncated response looks complete")
	}
}

func TestTimeout(t *testing.T) {
	s := &recorder{answer: func(ctx context.Context, _ proto.Message) (proto.Message, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	server := start(t, s, func(config *gateway.Config) { config.Timeout = 20 * time.Millisecond })
	response, body := do(t, "GET", server.URL+"/api/v1/deployments/acme/projects", "")
	if response.StatusCode != 504 || !strings.Contains(body, `"DEADLINE_EXCEEDED"`) {
		t.Errorf("%d %s", response.StatusCode, body)
	}
}

// TestSlowBody sends half a body and then nothing.
func TestSlowBody(t *testing.T) {
	server := start(t, &recorder{}, func(config *gateway.Config) { config.Timeout = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "POST /api/v1/deployments/7/scans/search HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"limit\":")
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") || !strings.Contains(string(answer), `"code":"DEADLINE_EXCEEDED"`) {
		t.Errorf("%s", answer)
	}
}

func TestHead(t *testing.T) {
	s := &recorder{}
	s.answer = answerEmpty(s)
	server := start(t, s, withHealth)
	for _, path := range []string{"/api/v1/deployments/acme/projects", "/healthz"} {
		response, body := do(t, "HEAD", server.URL+path, "")
		if response.StatusCode != 200 || body != "" || response.ContentLength <= 0 {
			t.Errorf("%s: %d %q, length %d", path, response.StatusCode, body, response.ContentLength)
		}
	}
}

// TestMetadata pins which headers reach handlers: a client cannot smuggle in others.
func TestMetadata(t *testing.T) {
	s := &recorder{}
	s.answer = answerEmpty(s)
	server := start(t, s, nil)
	do(t, "GET", server.URL+"/api/v1/deployments/acme/projects", "",
		"Authorization", "Bearer t", "If-Match", "7", "Traceparent", "00-1-2-01", "Tracestate", "a=b", "User-Agent", "test/1",
		"Grpc-Metadata-Admin", "true", "Grpc-Timeout", "bad", "X-Forwarded-For", "1.2.3.4", "X-Forwarded-Host", "evil",
		"Cookie", "a=b", "X-Http-Method-Override", "DELETE")
	want := metadata.Pairs("authorization", "Bearer t", "if-match", "7", "traceparent", "00-1-2-01", "tracestate", "a=b",
		"user-agent", "test/1", "x-request-id", "test-1", "x-forwarded-for", "127.0.0.1")
	if got := s.md(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestRequestID(t *testing.T) {
	s := &recorder{}
	server := start(t, s, nil)
	response, _ := do(t, "GET", server.URL+"/api/v1/ping", "", "X-Request-Id", "not sane\t")
	first := response.Header.Get("X-Request-Id")
	response, _ = do(t, "GET", server.URL+"/api/v1/ping", "", "X-Request-Id", strings.Repeat("x", 129))
	second := response.Header.Get("X-Request-Id")
	if len(first) < 20 || len(second) < 20 || first == second {
		t.Errorf("made %q and %q", first, second)
	}
}

func TestCompression(t *testing.T) {
	long := &projectsv1.ListProjectsResponse{}
	for range 100 {
		long.Projects = append(long.Projects, &projectsv1.Project{Id: 1, Name: "acme/web", Tags: []string{"a"}})
	}
	s := &recorder{answer: func(context.Context, proto.Message) (proto.Message, error) { return long, nil }}
	server := start(t, s, nil)
	_, plain := do(t, "GET", server.URL+"/api/v1/deployments/acme/projects", "", "Accept-Encoding", "identity")
	response, packed := do(t, "GET", server.URL+"/api/v1/deployments/acme/projects", "", "Accept-Encoding", "gzip")
	if response.Header.Get("Content-Encoding") != "gzip" || len(packed) >= len(plain) {
		t.Fatalf("Content-Encoding %q, %d of %d bytes", response.Header.Get("Content-Encoding"), len(packed), len(plain))
	}
	unpacked, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(unpacked); err != nil || string(text) != plain {
		t.Errorf("unpacked to something else (%v)", err)
	}
}

// TestSuccessCodes declares another success code in the rule of a route.
func TestSuccessCodes(t *testing.T) {
	for _, code := range []int{200, 201, 202, 204} {
		s := &recorder{}
		s.answer = answerEmpty(s)
		server := start(t, s, func(config *gateway.Config) {
			config.Rules = func(string) *optionsv1.MethodRule {
				return &optionsv1.MethodRule{SuccessCode: int32(code), Maturity: optionsv1.Maturity_MATURITY_BETA}
			}
			config.Services = config.Services[:7]
		})
		for _, encoding := range []string{"identity", "gzip"} {
			response, body := do(t, "GET", server.URL+"/api/v1/deployments/acme/projects", "", "Accept-Encoding", encoding)
			if response.StatusCode != code || (body == "") != (code == 204) {
				t.Errorf("%d: got %d %q", code, response.StatusCode, body)
			}
			if got := response.Header.Get("X-Api-Maturity"); got != "Beta" {
				t.Errorf("X-Api-Maturity %q", got)
			}
		}
	}
}

func TestUnknownFieldsAreCounted(t *testing.T) {
	s := &recorder{}
	s.answer = answerEmpty(s)
	server := start(t, s, nil)
	response, body := do(t, "POST", server.URL+"/api/v1/deployments/7/scans/search", `{"x":1,"total_time":{"y":2},"limit":5}`)
	if response.StatusCode != 200 {
		t.Fatalf("%d %s", response.StatusCode, body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.unknown["/palisade.scans.v1.ScansService/SearchScans"]; got != 2 {
		t.Errorf("counted %d", got)
	}
}

func TestContentTypesAndEncodings(t *testing.T) {
	s := &recorder{}
	s.answer = answerEmpty(s)
	server := start(t, s, nil)
	const path = "/api/v1/deployments/7/scans/search"
	for _, contentType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/grpc"} {
		response, body := do(t, "POST", server.URL+path, `{"limit":5}`, "Content-Type", contentType)
		if response.StatusCode != 200 {
			t.Errorf("%q: %d %s", contentType, response.StatusCode, body)
		}
	}
	response, body := do(t, "POST", server.URL+path, `{"limit":5}`, "Content-Encoding", "br")
	if response.StatusCode != 415 || !strings.Contains(body, `Content-Encoding must be identity, got \"br\"`) {
		t.Errorf("%d %s", response.StatusCode, body)
	}
}

// TestChunkedBodyTooLarge exceeds the limit while reading, because the length is unknown.
func TestChunkedBodyTooLarge(t *testing.T) {
	server := start(t, &recorder{}, nil)
	body := io.MultiReader(strings.NewReader(`{"branch":"`), strings.NewReader(strings.Repeat("x", 2<<20)))
	response, err := http.Post(server.URL+"/api/v1/deployments/7/scans/search", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != 413 {
		t.Errorf("%d", response.StatusCode)
	}
}

func TestNewRefuses(t *testing.T) {
	services := allServices()
	conn := (&recorder{}).connect(nil)
	noRule := func(string) *optionsv1.MethodRule { return nil }
	upload := func(string) *optionsv1.MethodRule { return &optionsv1.MethodRule{UploadPath: "/x/{deployment_slug}"} }
	for name, test := range map[string]struct {
		config gateway.Config
		want   string
	}{
		"no connection":       {gateway.Config{Services: services}, "Conn must be set"},
		"no rule":             {gateway.Config{Conn: conn, Services: services, Rules: noRule}, "has no rule"},
		"unknown service":     {gateway.Config{Conn: conn, Services: []gateway.Service{{Name: "a.B"}}}, "no such service"},
		"routes left out":     {gateway.Config{Conn: conn, Services: []gateway.Service{{Name: services[1].Name}}}, "is not registered"},
		"upload on unary":     {gateway.Config{Conn: conn, Services: services[1:2], Rules: upload}, "client-streaming"},
		"same route twice":    {gateway.Config{Conn: conn, Services: append(services, services[1])}, "has the route of"},
		"route without slash": {gateway.Config{Conn: conn, Routes: map[string]http.Handler{"x": nil}}, "must begin with a slash"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := gateway.New(test.config); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestHeaderLimit: an overlong request line is refused before anything parses it.
func TestHeaderLimit(t *testing.T) {
	handler := newHandler(t, &recorder{}, nil)
	server := httptest.NewUnstartedServer(handler)
	server.Config = gateway.NewHTTPServer(gateway.ServerConfig{}, handler)
	server.Start()
	t.Cleanup(server.Close)
	response, _ := do(t, "GET", server.URL+base+"/projects?x="+strings.Repeat("y", 200<<10), "")
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("long header: %d", response.StatusCode)
	}
}

// TestInProcess checks metadata, header metadata, deadlines and error details.
func TestInProcess(t *testing.T) {
	type key struct{}
	s := &recorder{}
	conn := s.connect(nil)
	client := findingsv1.NewFindingsServiceClient(conn)
	s.answer = func(ctx context.Context, _ proto.Message) (proto.Message, error) {
		if ctx.Value(key{}) != nil {
			return nil, errors.New("values of the caller's context reached the handler")
		}
		if _, ok := ctx.Deadline(); !ok {
			return nil, errors.New("the deadline did not reach the handler")
		}
		if err := grpc.SetHeader(ctx, metadata.Pairs("etag", `"1"`)); err != nil {
			return nil, err
		}
		return &findingsv1.ListFindingsResponse{Findings: []*findingsv1.Finding{{Id: 7}}}, nil
	}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), key{}, 1), time.Minute)
	defer cancel()
	var header metadata.MD
	response, err := client.ListFindings(ctx, &findingsv1.ListFindingsRequest{DeploymentSlug: "acme"}, grpc.Header(&header))
	if err != nil || len(response.GetFindings()) != 1 || response.GetFindings()[0].GetId() != 7 {
		t.Fatalf("%v %v", response, err)
	}
	if got := header.Get("etag"); len(got) != 1 || got[0] != `"1"` {
		t.Errorf("header %v", header)
	}
	_, err = client.ListFindings(ctx, &findingsv1.ListFindingsRequest{PageSize: proto.Int64(5)})
	if got := apierr.ReasonOf(err).String(); got != "REASON_PAGE_SIZE_OUT_OF_RANGE" {
		t.Errorf("reason %s of %v", got, err)
	}
	cancelled, cancelNow := context.WithCancel(ctx)
	s.answer = func(ctx context.Context, _ proto.Message) (proto.Message, error) {
		cancelNow()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	_, err = client.ListFindings(cancelled, &findingsv1.ListFindingsRequest{})
	if got := apierr.ReasonOf(apierr.Map(err)).String(); got != "REASON_CANCELLED" {
		t.Errorf("reason %s of %v", got, err)
	}
}

// selfSigned creates a certificate for 127.0.0.1.
func selfSigned(t testing.TB) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

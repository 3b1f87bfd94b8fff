package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/gateway"
	"github.com/palisade/palisade/services/internal/pace"
	"github.com/palisade/palisade/services/internal/testrun"
)

type uploadStream = grpc.ClientStreamingServer[scansv1.UploadReportRequest, scansv1.UploadReportResponse]

const uploadPath = "/api/v1/deployments/acme/reports?project=acme/web&ref=main"

// collect reads a whole upload: its first message and its bytes.
func collect(stream uploadStream) (first *scansv1.UploadReportRequest, data []byte, err error) {
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return first, data, nil
		}
		if err != nil {
			return first, data, err
		}
		if first == nil {
			first = proto.Clone(message).(*scansv1.UploadReportRequest)
		}
		data = append(data, message.GetChunk()...)
	}
}

func TestUpload(t *testing.T) {
	report := bytes.Repeat([]byte("0123456789abcdef"), 50_000) // 800 kB: three chunks and a remainder
	var first *scansv1.UploadReportRequest
	var data []byte
	s := &recorder{upload: func(stream uploadStream) (err error) {
		if first, data, err = collect(stream); err != nil {
			return err
		}
		return stream.SendAndClose(&scansv1.UploadReportResponse{Created: 7, Project: "acme/web"})
	}}
	server := start(t, s, nil)
	url := server.URL + "/api/v1/deployments/acme/reports?project=acme/web&ref=main&&commit=abc&product=&checkoutRoot="
	for encoding, want := range map[string]string{"": "", "identity": "", "gzip": "gzip", "X-GZIP": "gzip"} {
		response, body := do(t, "POST", url, string(report), "Content-Encoding", encoding, "Authorization", "Bearer t",
			"Content-Type", "application/x-www-form-urlencoded")
		if response.StatusCode != 200 || !strings.Contains(body, `"created":7`) {
			t.Fatalf("%d %s", response.StatusCode, body)
		}
		wantFirst := &scansv1.UploadReportRequest{}
		if err := prototext.Unmarshal([]byte(`deployment_slug:"acme" target:{project:"acme/web" ref:"main" commit:"abc"}`), wantFirst); err != nil {
			t.Fatal(err)
		}
		wantFirst.Target.ContentEncoding = want
		if !proto.Equal(first, wantFirst) {
			t.Errorf("%q: first message %v", encoding, first)
		}
		if !bytes.Equal(data, report) {
			t.Errorf("%q: got %d of %d bytes, or others", encoding, len(data), len(report))
		}
		if got := response.Header.Get("X-Api-Maturity"); got != "Experimental" {
			t.Errorf("X-Api-Maturity %q", got)
		}
		if got := s.md().Get("authorization"); len(got) != 1 || got[0] != "Bearer t" {
			t.Errorf("authorization %v", got)
		}
	}
}

func TestUploadEmptyBody(t *testing.T) {
	s := &recorder{upload: func(stream uploadStream) error {
		if _, data, err := collect(stream); err != nil || len(data) != 0 {
			return errors.New("not empty")
		}
		return apierr.MalformedReport("the report is empty")
	}}
	response, body := do(t, "POST", start(t, s, nil).URL+uploadPath, "")
	if response.StatusCode != 400 || !strings.Contains(body, `"code":"MALFORMED_REPORT"`) {
		t.Errorf("%d %s", response.StatusCode, body)
	}
}

func TestUploadRefusals(t *testing.T) {
	s := &recorder{upload: func(stream uploadStream) error {
		_, _, err := collect(stream)
		return err
	}}
	server := start(t, s, nil)
	big := strings.Repeat("x", 5<<20)
	chunked := func() io.Reader { return io.MultiReader(strings.NewReader(big)) }
	for name, test := range map[string]struct {
		query, encoding string
		body            io.Reader
		status          int
		want            string
	}{
		"other encoding":          {"", "br", strings.NewReader("x"), 415, `Content-Encoding must be gzip or identity, got \"br\"`},
		"two encodings":           {"", "gzip, gzip", strings.NewReader("x"), 415, `gzip or identity`},
		"announced too large":     {"", "", strings.NewReader(big), 413, `"code":"BODY_TOO_LARGE"`},
		"too large while read":    {"", "", chunked(), 413, `the body must have at most 4194304 bytes`},
		"bad escape in the query": {"&commit=%zz", "", strings.NewReader("x"), 400, `commit must be percent-encoded`},
		"unknown parameter":       {"&checkout-root=/w", "", strings.NewReader("x"), 400, `\"checkout-root\" is not a parameter of this upload; allowed are project, ref, commit, `},
		"unknown and empty":       {"&x=", "", strings.NewReader("x"), 400, `\"x\" is not a parameter`},
		"bad escape in a name":    {"&%zz=1", "", strings.NewReader("x"), 400, `\"%zz\" is not a parameter`},
		"field of a header":       {"&content_encoding=gzip", "", strings.NewReader("x"), 400, `\"content_encoding\" is not a parameter`},
	} {
		t.Run(name, func(t *testing.T) {
			request, _ := http.NewRequestWithContext(t.Context(), "POST", server.URL+uploadPath+test.query, test.body)
			if test.encoding != "" {
				request.Header.Set("Content-Encoding", test.encoding)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			body, _ := io.ReadAll(response.Body)
			if response.StatusCode != test.status || !strings.Contains(string(body), test.want) {
				t.Errorf("%d %s", response.StatusCode, body)
			}
		})
	}
	response, body := do(t, "PUT", server.URL+uploadPath, "x")
	if response.StatusCode != 405 || response.Header.Get("Allow") != "POST" {
		t.Errorf("%d %s", response.StatusCode, body)
	}
}

// TestUploadNamesParameters: errors name the query parameters of target fields.
func TestUploadNamesParameters(t *testing.T) {
	s := &recorder{upload: func(stream uploadStream) error {
		first, err := stream.Recv()
		if err != nil {
			return err
		}
		var invalid *protovalidate.ValidationError
		if err := protovalidate.Validate(first); errors.As(err, &invalid) {
			return apierr.Validation(invalid, first.ProtoReflect().Descriptor())
		}
		return errors.New("the request was valid")
	}}
	response, body := do(t, "POST", start(t, s, nil).URL+"/api/v1/deployments/acme/reports?project=a&ref=main&product=all", "x")
	const text = `"product must be one of sast, sca, secrets, ai_sast; got \"all\""`
	if response.StatusCode != 400 || body != invalid("product", text, "INVALID_ARGUMENT") {
		t.Errorf("%d %s", response.StatusCode, body)
	}
}

// TestUploadEarlyError: the server refuses while the client is still sending, and then while it is silent.
func TestUploadEarlyError(t *testing.T) {
	s := &recorder{upload: func(stream uploadStream) error {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		return apierr.Unauthenticated("not authorized")
	}}
	server := start(t, s, nil)
	response, body := do(t, "POST", server.URL+uploadPath, strings.Repeat("x", 3<<20))
	if response.StatusCode != 401 || !strings.Contains(body, `"code":"UNAUTHENTICATED"`) || response.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("%d %s", response.StatusCode, body)
	}
	conn := announce(t, server.URL, 1000, "only this")
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != 401 || !answer.Close {
		t.Errorf("silent client: %d, close %t", answer.StatusCode, answer.Close)
	}
}

// announce sends the header of an upload of size bytes, and then only text.
func announce(t *testing.T, url string, size int, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	head := "POST " + uploadPath + " HTTP/1.1\r\nHost: x\r\nContent-Length: "
	if _, err := io.WriteString(conn, head+strconv.Itoa(size)+"\r\n\r\n"+text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestUploadAborted: a truncated body must cancel the call, not end it as if it were complete.
func TestUploadAborted(t *testing.T) {
	ended := make(chan error, 1)
	s := &recorder{upload: func(stream uploadStream) error {
		_, _, err := collect(stream)
		ended <- err
		return err
	}}
	server := start(t, s, nil)
	conn := announce(t, server.URL, 1000, "only this")
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler saw %v", err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != 400 || !strings.Contains(string(body), "the body ended before its announced length") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}

// TestUploadSilence: the client sends nothing for longer than allowed.
func TestUploadSilence(t *testing.T) {
	ended := make(chan error, 1)
	s := &recorder{upload: func(stream uploadStream) error {
		_, _, err := collect(stream)
		ended <- err
		return err
	}}
	server := start(t, s, func(config *gateway.Config) { config.UploadIdleTimeout = 50 * time.Millisecond })
	answer, err := http.ReadResponse(bufio.NewReader(announce(t, server.URL, 1000, "only this")), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != 408 {
		t.Errorf("%d", answer.StatusCode)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler saw %v", err)
	}
}

// TestUploadTrickle: an upload that is too slow is ended; a fast one has no time limit.
func TestUploadTrickle(t *testing.T) {
	ended := make(chan error, 1)
	s := &recorder{upload: func(stream uploadStream) error {
		_, _, err := collect(stream)
		ended <- err
		if err != nil {
			return err
		}
		return stream.SendAndClose(&scansv1.UploadReportResponse{})
	}}
	server := start(t, s, func(config *gateway.Config) {
		config.UploadPace = pace.Rule{Rate: 1000, Window: 3 * time.Second}
	})
	const parts = 400 // takes longer than the window; three large parts in it are fast enough even on a busy machine
	for _, test := range []struct{ size, status int }{{1, 408}, {1000, 200}} {
		conn := announce(t, server.URL, parts*test.size, "")
		go func() {
			for range parts {
				time.Sleep(10 * time.Millisecond)
				if _, err := conn.Write(bytes.Repeat([]byte("x"), test.size)); err != nil {
					return
				}
			}
		}()
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != test.status || test.status == 408 && !strings.Contains(string(body), "upload-min-rate") {
			t.Errorf("%d bytes at a time: %d %s", test.size, answer.StatusCode, body)
		}
		if err := <-ended; (err != nil) != (test.status == 408) {
			t.Errorf("%d bytes at a time: the handler saw %v", test.size, err)
		}
	}
}

// TestUploadDeadline: the upload timeout passes while the client is silent.
func TestUploadDeadline(t *testing.T) {
	s := &recorder{upload: func(stream uploadStream) error {
		_, _, err := collect(stream)
		return err
	}}
	server := start(t, s, func(config *gateway.Config) { config.UploadTimeout = 50 * time.Millisecond })
	answer, err := http.ReadResponse(bufio.NewReader(announce(t, server.URL, 1000, "only this")), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != 504 {
		t.Errorf("%d", answer.StatusCode)
	}
}

func TestUploadPanic(t *testing.T) {
	s := &recorder{upload: func(uploadStream) error { panic("secret text") }}
	response, body := do(t, "POST", start(t, s, nil).URL+uploadPath, "x")
	if response.StatusCode != 500 || strings.Contains(body, "secret") {
		t.Errorf("%d %s", response.StatusCode, body)
	}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestUploadMemory sends 256 MiB and checks the live heap during the upload.
func TestUploadMemory(t *testing.T) {
	testrun.Deep(t) // measures memory
	if testing.Short() {
		t.Skip("moves 256 MiB")
	}
	const size = 256 << 20
	var received int
	var peak uint64
	s := &recorder{upload: func(stream uploadStream) error {
		for i := 0; ; i++ {
			message, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return stream.SendAndClose(&scansv1.UploadReportResponse{})
			}
			if err != nil {
				return err
			}
			received += len(message.GetChunk())
			if i%100 == 0 {
				var stats runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&stats)
				peak = max(peak, stats.HeapAlloc)
			}
		}
	}}
	server := start(t, s, func(config *gateway.Config) { config.MaxUpload = size })
	request, _ := http.NewRequestWithContext(t.Context(), "POST", server.URL+uploadPath, io.LimitReader(zeros{}, size))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != 200 || received != size {
		t.Fatalf("%d, %d bytes", response.StatusCode, received)
	}
	if peak > 48<<20 {
		t.Errorf("%d MiB of live heap on the way", peak>>20)
	}
}

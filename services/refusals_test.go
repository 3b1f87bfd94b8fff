package services_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// A request without a valid credential is refused before its body arrives, over both transports.
func TestNoBodyIsReadWithoutACredential(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, nil)
	for _, token := range []string{"", "sgp_unknown"} {
		response := begin(t, s, http.MethodPost, "/api/v1/deployments/acme/triage", token, 10_000_000)
		if response.StatusCode != http.StatusUnauthorized || !response.Close {
			t.Errorf("%q: %s, close %v, want 401 and the end of the connection", token, response.Status, response.Close)
		}
	}
	for _, token := range []string{"", "sgp_unknown"} {
		ctx, cancel := context.WithTimeout(s.Context(t, token), time.Minute) // if the server waited for the request, the test would hang
		defer cancel()
		stream, err := s.Conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, findingsv1.TriageService_BulkTriage_FullMethodName)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.RecvMsg(&findingsv1.BulkTriageResponse{}); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%q: %v, want UNAUTHENTICATED before the request is sent", token, err)
		}
	}
}

// begin sends the header of a request over HTTP/1 and one byte of its body, and returns the response.
func begin(t *testing.T, s *apitest.Server, method, path, token string, size int) *http.Response {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addresses.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if token != "" {
		token = "Authorization: Bearer " + token + "\r\n"
	}
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: test\r\n%sContent-Length: %d\r\n\r\n{", method, path, token, size)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// Unauthenticated callers may send small bodies only, where they may send any.
func TestUnauthenticatedCallersSendSmallBodies(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, nil)
	if response := begin(t, s, http.MethodPost, "/api/agent/tokens/requests", "", 65<<10); response.StatusCode != http.StatusRequestEntityTooLarge || !response.Close {
		t.Errorf("%s, close %v, want 413 and the end of the connection", response.Status, response.Close)
	}
	if answer := s.Do(t, "", http.MethodPost, "/api/agent/tokens/requests", `{"unknown":"`+strings.Repeat("x", 60<<10)+`"}`); answer.Status == http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s", answer.Status, answer.Body)
	}
}

// A caller over its rate limit is refused before its body arrives.
func TestNoBodyIsReadBeyondTheLimit(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, func(c *config.Config) { c.RateLimit, c.RequestTimeout = 0.0001, time.Hour }) // if the server waited for the body, the test would hang
	token := s.AddToken(t, s.Tenant, access.TokenSpec{})
	s.Do(t, token, http.MethodGet, "/api/v1/deployments/acme/projects", "")
	if response := begin(t, s, http.MethodPost, "/api/v1/deployments/acme/triage", token, 1<<20); response.StatusCode != http.StatusTooManyRequests || !response.Close {
		t.Errorf("%s, close %v, want 429 and the end of the connection", response.Status, response.Close)
	}
}

// A slow body counts.
func TestSlowBodiesAreCounted(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, func(c *config.Config) { c.RateLimit, c.RequestTimeout = 0.0001, 2*time.Second })
	token := s.AddToken(t, s.Tenant, access.TokenSpec{})
	response := begin(t, s, http.MethodPost, "/api/v1/deployments/acme/triage", token, 1<<20)
	if response.StatusCode != http.StatusRequestTimeout || response.Header.Get("RateLimit-Remaining") != "0" {
		t.Errorf("%s %v, want 408 and nothing left", response.Status, response.Header)
	}
}

// Refusals count like other calls: by address without a valid credential, otherwise for the credential.
func TestRefusalsAreCounted(t *testing.T) {
	// So slow that no token returns while the test runs.
	s := apitest.Start(t, func(c *config.Config) { c.RateLimit = 0.0001 })
	admin := func() string { return s.AddToken(t, s.Tenant, access.TokenSpec{}) }
	refused := func(name, token, slug, body string, first int) {
		t.Helper()
		for i, want := range []int{first, http.StatusTooManyRequests, http.StatusTooManyRequests} {
			answer := s.Do(t, token, http.MethodPatch, "/api/v1/deployments/"+slug+"/projects/web", body)
			limited := want == http.StatusTooManyRequests
			if answer.Status != want || (answer.Header.Get("Retry-After") != "") != limited || answer.Header.Get("RateLimit-Remaining") != "0" {
				t.Errorf("%s, call %d: %d %v %s, want %d", name, i+1, answer.Status, answer.Header, answer.Body, want)
			}
		}
	}
	refused("no credential", "", "acme", "{}", http.StatusUnauthorized)
	// It is the same address, and the response does not reveal whether the token exists.
	if answer := s.Do(t, "sgp_unknown", http.MethodGet, "/api/v1/deployments", ""); answer.Status != http.StatusTooManyRequests {
		t.Errorf("a bad token: %d %s, want 429", answer.Status, answer.Body)
	}
	refused("another's deployment", admin(), "globex", "{}", http.StatusNotFound)
	refused("role", s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleReadOnly}), "acme", "{}", http.StatusForbidden)
	refused("no JSON", admin(), "acme", "{", http.StatusBadRequest)
	refused("no JSON, another's deployment", admin(), "globex", "{", http.StatusNotFound)
	refused("broken rule", admin(), "acme", `{"tags":["`+strings.Repeat("x", 10_000)+`"]}`, http.StatusBadRequest)
	// None of this affects a valid token at the same address.
	if answer := s.Do(t, admin(), http.MethodGet, "/api/v1/deployments/acme/projects", ""); answer.Status != http.StatusOK {
		t.Errorf("a good token: %d %s", answer.Status, answer.Body)
	}
	for _, c := range []struct {
		token string
		want  []codes.Code
	}{
		{"", []codes.Code{codes.ResourceExhausted}}, // HTTP and gRPC share the address's bucket
		{admin(), []codes.Code{codes.NotFound, codes.ResourceExhausted}},
	} {
		for i, want := range c.want {
			var header metadata.MD
			_, err := projectsv1.NewProjectsServiceClient(s.Conn).ListProjects(s.Context(t, c.token),
				&projectsv1.ListProjectsRequest{DeploymentSlug: "globex"}, grpc.Header(&header))
			if left := header.Get("ratelimit-remaining"); status.Code(err) != want || len(left) != 1 || left[0] != "0" {
				t.Errorf("gRPC, call %d: %v %v, want %v", i+1, err, header, want)
			}
		}
	}
}

package services_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// quotaFields reads the RateLimit fields of a response by name: limit, remaining, reset, policy.
func quotaFields(get func(name string) string) (fields [4]string) {
	for i, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy"} {
		fields[i] = get(name)
	}
	return fields
}

// soon returns want if got is at most a minute less, because time passes between calls.
func soon(got, want string) string {
	seconds, err := strconv.Atoi(strings.Trim(got, "[]"))
	most, unwanted := strconv.Atoi(strings.Trim(want, "[]"))
	if err == nil && unwanted == nil && seconds <= most && seconds > most-60 {
		return want
	}
	return got
}

// Each response of an operation has the caller's quota, regardless of its status, over both transports.
func TestResponsesHaveTheQuota(t *testing.T) {
	// So slow that no token returns while the test runs.
	s := apitest.Start(t, func(c *config.Config) { c.RateLimit = 0.0001 })
	const policy = `1;w=10000;comment="credential"`
	tokens := map[string]string{}
	for _, name := range []string{"http", "other", "grpc"} {
		tokens[name] = s.AddTenant(t, "tenant-"+name).Token
	}
	list := "/api/v1/deployments/tenant-http/projects"
	for _, c := range []struct {
		token, path string
		status      int
		want        [4]string
	}{
		{"", list, http.StatusUnauthorized, [4]string{"1", "0", "10000", policy}},
		{"", list, http.StatusTooManyRequests, [4]string{"1", "0", "10000", policy}},
		{tokens["other"], list, http.StatusNotFound, [4]string{"1", "0", "10000", policy}},
		{tokens["other"], list, http.StatusTooManyRequests, [4]string{"1", "0", "10000", policy}},
		{tokens["http"], list + "?page_size=100000", http.StatusBadRequest, [4]string{"1", "0", "10000", policy}},
		{tokens["http"], list, http.StatusTooManyRequests, [4]string{"1", "0", "10000", policy}},
	} {
		answer := s.Do(t, c.token, http.MethodGet, c.path, "")
		got := quotaFields(answer.Header.Get)
		if got[2] = soon(got[2], c.want[2]); answer.Status != c.status || got != c.want {
			t.Errorf("GET %s: %d %q, want %d %q", c.path, answer.Status, got, c.status, c.want)
		}
		if retry := answer.Header.Get("Retry-After"); (answer.Status == http.StatusTooManyRequests) != (soon(retry, "10000") == "10000") {
			t.Errorf("GET %s: %d with Retry-After %q", c.path, answer.Status, retry)
		}
	}
	for _, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
		var header metadata.MD
		_, err := deploymentsv1.NewDeploymentsServiceClient(s.Conn).ListDeployments(s.Context(t, tokens["grpc"]),
			&deploymentsv1.ListDeploymentsRequest{}, grpc.Header(&header))
		got := quotaFields(func(name string) string { return fmt.Sprint(header.Get(name)) })
		got[2] = soon(got[2], "[10000]")
		if status.Code(err) != want || got != [4]string{"[1]", "[0]", "[10000]", "[" + policy + "]"} {
			t.Errorf("gRPC: %v %q, want %v", err, got, want)
		}
	}
	if answer := s.Do(t, "", http.MethodGet, "/healthz", ""); answer.Header.Get("RateLimit-Limit") != "" {
		t.Errorf("a probe is no operation: %v", answer.Header)
	}
}

// The limit of a deployment covers all its credentials together. A node has only its part of it. Other deployments are
// not affected.
func TestDeploymentsHaveTheirOwnLimit(t *testing.T) {
	s := apitest.Start(t, func(c *config.Config) {
		c.RateLimit, c.RateLimitDeployment, c.RateLimitNodes = 1000, 0.4, 100 // 0.004 a second: a burst of one call
	})
	other := s.AddTenant(t, "other")
	for i, c := range []struct {
		slug, token string
		status      int
	}{
		{s.Slug, s.Token, http.StatusOK},
		{s.Slug, s.AddToken(t, s.Tenant, access.TokenSpec{}), http.StatusTooManyRequests},
		{other.Slug, other.Token, http.StatusOK},
	} {
		answer := s.Do(t, c.token, http.MethodGet, "/api/v1/deployments/"+c.slug+"/projects", "")
		if answer.Status != c.status {
			t.Errorf("call %d: %d %s, want %d", i, answer.Status, answer.Body, c.status)
		}
		want := [4]string{"1", "0", "250", `1000;w=1;comment="credential", 1;w=250;comment="deployment"`}
		got := quotaFields(answer.Header.Get)
		if got[2] = soon(got[2], want[2]); got != want {
			t.Errorf("call %d: %q, want %q", i, got, want)
		}
	}
}

// Without limits there are no fields.
func TestNoLimitNoQuota(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		answer := s.Do(t, s.Token, http.MethodGet, "/api/v1/deployments/acme/projects", "")
		if fields := quotaFields(answer.Header.Get); answer.Status != http.StatusOK || fields != [4]string{} {
			t.Errorf("%d %q", answer.Status, fields)
		}
	})
}

package host_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

const (
	enterprise  = scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE
	selfManaged = scmv1.ScmType_SCM_TYPE_GITLAB_SELFMANAGED
	azureDevOps = scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS
)

// client is the server's client with the egress guard.
func client(t *testing.T, l egress.Limits) *http.Client {
	t.Helper()
	guard, err := egress.New(egress.Config{Allow: "127.0.0.1", UserAgent: "Palisade/test"})
	if err != nil {
		t.Fatal(err)
	}
	return guard.Client(l)
}

func open(t *testing.T, kind scmv1.ScmType, url, token string) host.Host {
	t.Helper()
	h, err := host.Open(kind, url, token, client(t, egress.Limits{Timeout: time.Minute, MaxResponse: 1 << 20, MaxRedirects: 3}))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// each runs a test on each kind of hosts.
func each(t *testing.T, test func(t *testing.T, h host.Host, s *hosttest.Server, namespace, repository string)) {
	t.Run("github", func(t *testing.T) {
		s := hosttest.NewGitHub(t)
		test(t, open(t, enterprise, s.URL, s.Token), &s.Server, "acme", "acme/web")
	})
	t.Run("gitlab", func(t *testing.T) {
		s := hosttest.NewGitLab(t)
		test(t, open(t, selfManaged, s.URL, s.Token), &s.Server, "acme/platform", "acme/platform/api")
	})
	t.Run("azure", func(t *testing.T) {
		s := hosttest.NewAzure(t)
		test(t, open(t, azureDevOps, s.URL, s.Token), &s.Server, "acme/tools", "acme/tools/web")
	})
}

func TestFailuresOfEveryCall(t *testing.T) {
	reset := time.Now().Add(17 * time.Minute).Truncate(time.Second)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   host.Kind
		text   string
	}{
		"unauthorized": {hosttest.Status(401, `{"message":"Bad credentials","status":"401"}`), host.Unauthorized, "set a new accessToken"},
		"forbidden":    {hosttest.Status(403, `{"message":"Must have admin rights to Repository."}`), host.Forbidden, "Must have admin rights"},
		"failed":       {hosttest.Status(502, `<html>Bad gateway</html>`), host.Failed, "status 502"},
		"refused":      {hosttest.Status(422, `{"message":"Validation Failed"}`), host.Refused, "Validation Failed"},
		"malformed":    {hosttest.Status(200, `<!DOCTYPE html><title>Log in</title>`), host.Malformed, "check type and baseUrl"},
		"cut":          {hosttest.Status(200, `{"id": 42, "login": "ac`), host.Malformed, "check type and baseUrl"},
		"too large":    {hosttest.Status(200, `"`+strings.Repeat("x", 2<<20)+`"`), host.Malformed, "too large"},
		"rate limited": {hosttest.Status(429, `{"message":"slow down"}`, "Retry-After", "1020"), host.RateLimited, "try again after"},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, h host.Host, s *hosttest.Server, namespace, repository string) {
				s.Answer(c.answer)
				for call, do := range calls(t.Context(), h, namespace, repository) {
					_, err := do()
					if call == "Unsubscribe" && c.want == host.Malformed || host.Is(err, host.Unsupported) && offline(call) {
						continue // its answer is not read; some hosts have no such things
					}
					if !host.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
						t.Errorf("%s: %v", call, err)
						continue
					}
					if e, _ := err.(*host.Error); c.want == host.RateLimited && (e.Reset.Before(reset.Add(-time.Minute)) || e.Reset.After(reset.Add(time.Minute))) {
						t.Errorf("%s: the limit ends at %s, want about %s", call, e.Reset, reset)
					}
					if strings.Contains(err.Error(), s.Token) || strings.Contains(err.Error(), "127.0.0.1") {
						t.Errorf("%s: the text tells too much: %v", call, err)
					}
				}
			})
			t.Run("application", func(t *testing.T) {
				s := hosttest.NewGitHub(t)
				s.Answer(c.answer)
				for call, do := range appCalls(t.Context(), openApp(t, s, client(t, egress.Limits{Timeout: time.Minute, MaxResponse: 1 << 20}))) {
					if _, err := do(); !host.Is(err, c.want) || c.want != host.Unauthorized && !strings.Contains(err.Error(), c.text) {
						t.Errorf("%s: %v", call, err)
					}
				}
			})
		})
	}
}

func TestRateLimitsInEachHostsOwnWords(t *testing.T) {
	reset := time.Unix(4102444800, 0) // 2100
	for name, answer := range map[string]http.HandlerFunc{
		"primary": hosttest.Status(403, `{"message":"API rate limit exceeded for user ID 7002.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"}`,
			"X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "4102444800"),
		"secondary": hosttest.Status(403, `{"message":"You have exceeded a secondary rate limit.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`,
			"Retry-After", "60"),
	} {
		s := hosttest.NewGitHub(t)
		s.Answer(answer)
		_, err := open(t, enterprise, s.URL, s.Token).Check(t.Context(), "acme")
		e, ok := err.(*host.Error)
		if !ok || e.Kind != host.RateLimited || e.Reset.IsZero() || name == "primary" && !e.Reset.Equal(reset) {
			t.Errorf("GitHub %s: %#v", name, err)
		}
	}
	s := hosttest.NewGitLab(t)
	s.Answer(hosttest.Status(429, "Retry later\n", "RateLimit-Limit", "600", "RateLimit-Remaining", "0", "RateLimit-Reset", "4102444800"))
	begun := time.Now()
	_, err := open(t, selfManaged, s.URL, s.Token).Check(t.Context(), "acme/platform")
	if e, ok := err.(*host.Error); !ok || e.Kind != host.RateLimited || !e.Reset.Equal(reset) || strings.Contains(e.Text, "Retry later") {
		t.Errorf("GitLab: %#v", err)
	}
	if took := time.Since(begun); took > 30*time.Second || len(s.Requests()) != 1 {
		t.Errorf("the client tried again by itself: %d calls in %s", len(s.Requests()), took)
	}
}

func TestTimeOut(t *testing.T) {
	each(t, func(t *testing.T, h host.Host, s *hosttest.Server, namespace, _ string) {
		s.Answer(hosttest.Hang)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := h.Check(ctx, namespace); !host.Is(err, host.TimedOut) || !strings.Contains(err.Error(), "could not be reached") {
			t.Errorf("caller's limit: %v", err)
		}
	})
	s := hosttest.NewGitHub(t)
	s.Answer(hosttest.Hang)
	h, err := host.Open(enterprise, s.URL, s.Token, client(t, egress.Limits{Timeout: 50 * time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Check(t.Context(), "acme"); !host.Is(err, host.TimedOut) {
		t.Errorf("client's limit: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, kind := range []scmv1.ScmType{enterprise, selfManaged, azureDevOps} {
		for _, url := range []string{closed.URL, "http://10.1.2.3"} { // no listener; the address is not allowed
			h, err := host.Open(kind, url, "t", client(t, egress.Limits{Timeout: time.Minute}))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Check(t.Context(), "acme"); !host.Is(err, host.Unreachable) || err.Error() != "the host could not be reached: check baseUrl, or try again later" {
				t.Errorf("%v at %s: %v", kind, url, err)
			}
		}
	}
}

// TestCredentialStaysAtItsHost: redirects and links of a host to another host are rejected.
func TestCredentialStaysAtItsHost(t *testing.T) {
	var visits atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		visits.Add(1)
		_, _ = w.Write([]byte("[]"))
	}))
	t.Cleanup(thief.Close)
	each(t, func(t *testing.T, h host.Host, s *hosttest.Server, namespace, repository string) {
		s.Answer(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusMovedPermanently)
		})
		for call, do := range calls(t.Context(), h, namespace, repository) {
			if _, err := do(); err == nil {
				t.Errorf("%s followed a redirect to another host", call)
			}
		}
	})
	s := hosttest.NewGitHub(t)
	s.LinkHost = thief.URL
	for i := range 101 {
		s.Repositories = append(s.Repositories, hosttest.Repository{ID: int64(i + 1), Name: "acme/web-" + string(rune('a'+i%26)) + strings.Repeat("x", i/26)})
	}
	n := 0
	for _, err := range open(t, enterprise, s.URL, s.Token).Repositories(t.Context(), "acme") {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 101 || visits.Load() != 0 {
		t.Errorf("%d repositories; the other host was called %d times", n, visits.Load())
	}
}

func TestListsThatDoNotEnd(t *testing.T) {
	s := hosttest.NewGitLab(t)
	h := open(t, selfManaged, s.URL, s.Token)
	s.Answer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Next-Page", "1")
		if strings.HasSuffix(r.URL.Path, "/projects") {
			_, _ = w.Write([]byte(`[{"id":1,"path_with_namespace":"acme/a"}]`))
			return
		}
		_, _ = w.Write([]byte(`{"id":42,"full_path":"acme/platform"}`))
	})
	var last error
	for _, err := range h.Repositories(t.Context(), "acme/platform") {
		last = err
	}
	if !host.Is(last, host.Malformed) {
		t.Errorf("got %v", last)
	}
}

func TestAddresses(t *testing.T) {
	for kind, want := range map[scmv1.ScmType]string{
		scmv1.ScmType_SCM_TYPE_GITHUB: "https://api.github.com/users/acme", scmv1.ScmType_SCM_TYPE_GITLAB: "https://gitlab.com/api/v4/personal_access_tokens/self",
		azureDevOps: "https://dev.azure.com/acme/_apis/connectionData?api-version=7.1-preview",
	} {
		if got := firstCall(t, kind, host.CloudURL(kind)); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %s, want %s", kind, got, want)
		}
	}
	for url, want := range map[string]string{
		"https://acme.ghe.com":            "https://api.acme.ghe.com/users/acme",
		"https://git.acme.test/":          "https://git.acme.test/api/v3/users/acme",
		"https://git.acme.test:8443/code": "https://git.acme.test:8443/code/api/v3/users/acme",
	} {
		if got := firstCall(t, enterprise, url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
	for _, kind := range []scmv1.ScmType{scmv1.ScmType_SCM_TYPE_BITBUCKET, scmv1.ScmType_SCM_TYPE_HARNESS, scmv1.ScmType_SCM_TYPE_UNKNOWN} {
		_, err := host.Open(kind, "https://git.acme.test", "t", http.DefaultClient)
		if !host.Is(err, host.Unsupported) || !strings.Contains(err.Error(), kind.String()) || !strings.Contains(err.Error(), "SCM_TYPE_GITHUB_ENTERPRISE") {
			t.Errorf("%v: %v", kind, err)
		}
	}
}

// firstCall returns the URL of the first request of a check.
func firstCall(t *testing.T, kind scmv1.ScmType, url string) (called string) {
	t.Helper()
	h, err := host.Open(kind, url, "t", &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		called = r.URL.String()
		return nil, context.Canceled
	})})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = h.Check(t.Context(), "acme")
	return called
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func TestNamesStayNames(t *testing.T) {
	s := hosttest.NewGitHub(t)
	h := open(t, enterprise, s.URL, s.Token)
	for _, name := range []string{"", "..", "../user", "acme/hooks", "acme?x=1", "acme#", "acme%2fx", "a b", strings.Repeat("a", 101)} {
		if _, err := h.Check(t.Context(), name); !host.Is(err, host.NotFound) {
			t.Errorf("namespace %q: %v", name, err)
		}
		if _, err := h.CanWrite(t.Context(), "acme/"+name, "grace"); !host.Is(err, host.NotFound) {
			t.Errorf("repository %q: %v", name, err)
		}
	}
	if len(s.Requests()) != 0 {
		t.Errorf("the host was asked: %q", s.Requests())
	}
}

package gateway_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzQuery: every query gives 200 or a 400 with the error body, and never mentions our parsers.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"", "&&", "page_size=100", "repos[0]=a&repos[]=b,c", "dedup=True&is_malicious=0", "since=1e3", "since=NaN",
		"page=9223372036854775808", "severities=high,,low", "ref=%ff", "ref=%00", "ref=%zz", "a;b=c", "repository_ids=1,x",
		"page_size=0x10", "[]=1", "repos[=1", "deployment_slug=x", "page=1.0&page=1",
	} {
		f.Add(seed)
	}
	s := &recorder{}
	s.answer = answerEmpty(s)
	handler := newHandler(f, s, nil)
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{"/api/v1/deployments/acme/findings", "/api/v1/deployments/7/secrets"} {
			request := httptest.NewRequest(http.MethodGet, path, nil)
			request.URL.RawQuery = query
			checkFuzzed(t, handler, request)
		}
	})
}

// FuzzBody is FuzzQuery for JSON bodies.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", "[]", `{"limit":5}`, `{"limit":"5"}`, `{"limit":1e400}`, `{"limit":-1.0}`, `{"since":"0001-01-01T00:00:00Z"}`,
		`{"since":0}`, `{"since":1e300}`, `{"since":"2020-11-18 23:28:12.391807+00:00"}`, `{"total_time":{"min":"1"}}`,
		`{"total_time":[]}`, `{"products":"sast"}`, `{"products":[null,1,"x"]}`, `{"a":{"b":[1,{}]}}`, `{"branch":"\u0000"}`,
		`{"branch":"\ud800"}`, strings.Repeat("[", 100), "\xef\xbb\xbf{}", `{"limit":5} {}`, `{"repository_id":9223372036854775808}`,
		`{"tags":"a","managed_scan_config":{"full_scan":{"enabled":"True"}},"updateMask":"tags,primaryBranch"}`,
	} {
		f.Add([]byte(seed))
	}
	s := &recorder{}
	s.answer = answerEmpty(s)
	handler := newHandler(f, s, nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		post := httptest.NewRequest(http.MethodPost, "/api/v1/deployments/7/scans/search", strings.NewReader(string(body)))
		checkFuzzed(t, handler, post)
		patch := httptest.NewRequest(http.MethodPatch, "/api/v1/deployments/acme/projects/acme/web", strings.NewReader(string(body)))
		checkFuzzed(t, handler, patch)
	})
}

// FuzzPath: every path gives 200 or 404, and a project's name arrives unchanged.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"acme/web", "100%", "%2F", "a b", "日本", "..", "./x", "a//b", "a:b", "tags", "\x00", "\xff", "a?b#c"} {
		f.Add(seed)
	}
	s := &recorder{}
	s.answer = answerEmpty(s)
	handler := newHandler(f, s, nil)
	f.Fuzz(func(t *testing.T, name string) {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		target, err := url.Parse("http://x/api/v1/deployments/acme/projects/" + url.PathEscape(name))
		if err != nil {
			t.Skip()
		}
		request.URL = target
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code != http.StatusOK {
			if answer.Code != http.StatusNotFound {
				t.Fatalf("%d %s", answer.Code, answer.Body)
			}
			return
		}
		_, got := s.last()
		if field := got.ProtoReflect().Descriptor().Fields().ByName("project_name"); got.ProtoReflect().Get(field).String() != name {
			t.Fatalf("%q arrived as %v", name, got)
		}
	})
}

func checkFuzzed(t *testing.T, handler http.Handler, request *http.Request) {
	t.Helper()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	body := answer.Body.String()
	var parsed map[string]any
	if err := json.Unmarshal(answer.Body.Bytes(), &parsed); err != nil {
		t.Fatalf("%d with a body that is no JSON: %q", answer.Code, body)
	}
	switch answer.Code {
	case http.StatusOK:
	case http.StatusBadRequest:
		for _, key := range []string{"error", "message", "code", "status", "requestId"} {
			if text, _ := parsed[key].(string); text == "" {
				t.Fatalf("no %s in %s", key, body)
			}
		}
		if strings.Contains(body, "strconv") || strings.Contains(body, "parsing field") || strings.Contains(body, "protojson") {
			t.Fatalf("a parser's own text: %s", body)
		}
	default:
		t.Fatalf("%d %s", answer.Code, body)
	}
}

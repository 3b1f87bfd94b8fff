package server_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/internal/apitest"
)

const loginKey = "0b2c9a3e-7d41-4f5e-9a63-1c8e5f2d7a90"

// send returns an answer and its body.
func send(t *testing.T, method, url, token, body string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return exchange(t, request)
}

func exchange(t *testing.T, request *http.Request) (*http.Response, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(content)
}

// The page runs only its own script, shows what people have to compare, and repeats nothing that is not a key.
func TestLoginPage(t *testing.T) {
	s, _ := apitest.StartConfigured(t, apitest.EmptyConfig(t))
	base := "http://" + s.Addresses().HTTP + "/login"
	response, page := send(t, http.MethodGet, base+"?cli-token="+loginKey+"&docker=False&gha=False", "", "")
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %v", response.StatusCode, response.Header)
	}
	for _, want := range []string{"<p>A scanner asks for a token", "<code>2d7a90</code>", "palisade console-link", `data-key="` + loginKey + `"`, "SEMGREP_APP_TOKEN"} {
		if !strings.Contains(page, want) {
			t.Errorf("%s is not in the page:\n%s", want, page)
		}
	}
	policy := response.Header.Get("Content-Security-Policy")
	for _, tag := range []string{"script", "style"} {
		content := regexp.MustCompile(`(?s)<`+tag+`[^>]*>(.*?)</`+tag+`>`).FindAllStringSubmatch(page, -1)
		if len(content) != 1 {
			t.Fatalf("%d times %s", len(content), tag)
		}
		sum := sha256.Sum256([]byte(content[0][1]))
		if !strings.Contains(policy, tag+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
			t.Errorf("the %s is not allowed by %s", tag, policy)
		}
	}
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'", "connect-src 'self'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("%s is not in %s", want, policy)
		}
	}
	if regexp.MustCompile(`(?i)\bon[a-z]+=|\b(src|href|style)=|https?://`).MatchString(page) {
		t.Error("the page has an inline handler, or loads something")
	}
	for name, want := range map[string]string{
		"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
	} {
		if got := response.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for query, want := range map[string]string{"docker=true": "in a container", "gha=True&docker=1": "in a GitHub Actions workflow", "docker=%3Cb%3E": "A scanner asks"} {
		if _, page := send(t, http.MethodGet, base+"?cli-token="+loginKey+"&"+query, "", ""); !strings.Contains(page, want) {
			t.Errorf("%s: %s is not in the page", query, want)
		}
	}
	for _, key := range []string{"", "1234", "%22%3E%3Cscript%3Ealert(1)%3C/script%3E", loginKey + "x", "../../api"} {
		response, page := send(t, http.MethodGet, base+"?cli-token="+key, "", "")
		if response.StatusCode != http.StatusBadRequest || strings.Contains(page, "<script") || strings.Contains(page, "alert") || !strings.Contains(page, "not complete") {
			t.Errorf("key %q: %d %s", key, response.StatusCode, page)
		}
	}
	if response, _ := send(t, http.MethodPost, base, "", "{}"); response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", response.StatusCode)
	}
}

// The page's request gives the scanner its token. The token is only in the response.
func TestLoginLeavesNoTrace(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	cfg.LogLevel = "debug"
	s, out := apitest.StartConfigured(t, cfg)
	base := "http://" + s.Addresses().HTTP
	const requests = "/api/agent/tokens/requests"
	ask := `{"token_request_key":"` + loginKey + `"}`
	if response, body := send(t, http.MethodPost, base+requests, "", ask); response.StatusCode != http.StatusNotFound {
		t.Fatalf("before: %d %s", response.StatusCode, body)
	}
	send(t, http.MethodGet, base+"/login?cli-token="+loginKey, "", "")
	jwt, err := services.MintJWT(t.Context(), cfg, "admin@localhost", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if response, body := send(t, http.MethodPost, base+requests+"/confirm", out.Token(), ask); response.StatusCode != http.StatusForbidden {
		t.Errorf("an API token confirms: %d %s", response.StatusCode, body)
	}
	if response, body := send(t, http.MethodPost, base+requests+"/confirm", jwt, ask); response.StatusCode != http.StatusOK {
		t.Fatalf("confirm: %d %s", response.StatusCode, body)
	}
	waiting := stored(t, cfg.Data)
	response, body := send(t, http.MethodPost, base+requests, "", ask)
	token := regexp.MustCompile(`sgp_[A-Za-z0-9]+`).FindString(body)
	if response.StatusCode != http.StatusOK || token == "" || response.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("pick up: %d %v", response.StatusCode, response.Header)
	}
	if response, body := send(t, http.MethodPost, base+requests, "", ask); response.StatusCode != http.StatusNotFound {
		t.Errorf("again: %d %s", response.StatusCode, body)
	}
	if err := s.FlushLog(); err != nil {
		t.Error(err)
	}
	for place, content := range map[string][]byte{"log": []byte(out.String()), "data while it waits": waiting, "data": stored(t, cfg.Data)} {
		if !strings.Contains(string(content), "ConfirmTokenRequest") {
			t.Errorf("the %s says nothing of the confirmation: this test looks at the wrong place", place)
		}
		for name, secret := range map[string]string{"token": token, "key": loginKey} {
			if bytes.Contains(content, []byte(secret)) {
				t.Errorf("the %s is in the %s", name, place)
			}
		}
	}
}

// stored concatenates all files of a directory.
func stored(t *testing.T, dir string) (all []byte) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		all = append(all, content...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

const watchedChange = `{"id":7,"kind":"triaged","at":"2026-05-04T10:20:30.123456Z","from_status":"open","to_status":"ignored","reason":"no_time","note":"",` +
	`"actor_kind":"user","actor_id":3,"actor_name":"","finding":{"id":90017,"issue_type":"sast","status":"ignored","project_id":1,"project":"acme/web",` +
	`"ref":"refs/heads/main","rule_name":"py.sqli","severity":"high","path":"app/db.py","line":42}}`

// watchServer answers each connection with the next stream, and the last with 410.
func watchServer(t *testing.T, streams ...string) (env []string, asked *atomic.Pointer[[]string]) {
	t.Helper()
	asked = &atomic.Pointer[[]string]{}
	asked.Store(&[]string{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/deployments") {
			_, _ = fmt.Fprint(w, `{"deployments":[{"id":5,"slug":"acme"}]}`)
			return
		}
		list := append(*asked.Load(), r.Header.Get("Last-Event-ID")+" "+r.URL.RawQuery)
		asked.Store(&list)
		if r.Header.Get("Accept") != "text/event-stream" || r.URL.Path != "/api/v1/deployments/5/findings/changes" {
			t.Errorf("%s with %v", r.URL, r.Header)
		}
		if len(list) > len(streams) {
			w.WriteHeader(http.StatusGone)
			_, _ = fmt.Fprint(w, `{"error":"the token is too old","message":"the token is too old","code":"RESUME_TOKEN_EXPIRED"}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, streams[len(list)-1])
	}))
	t.Cleanup(server.Close)
	return []string{urlEnv + "=" + server.URL, tokenEnv + "=" + testToken}, asked
}

// The command prints changes, connects again where it was, keeps its position in the file, and ends when it cannot
// continue.
func TestWatchFindings(t *testing.T) {
	message := func(token string) string {
		return "id: " + token + "\ndata: {\"changes\":[" + watchedChange + "],\"resume_token\":\"" + token + "\"}\n\n"
	}
	env, asked := watchServer(t, "id: t1\n\n"+message("t2"), message("t3")+"event: error\ndata: {\"error\":\"stopping\",\"message\":\"stopping\",\"status\":\"UNAVAILABLE\"}\n\n")
	state := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(state, []byte("t0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := palisade(t, "", env, "findings", "watch", "--json", "--state", state, "--repos", "acme/web", "--filter", "categories=security")
	if got.status == exitOK || strings.Count(got.out, watchedChange+"\n") != 2 {
		t.Errorf("status %d, %s\n%s", got.status, got.out, got.err)
	}
	wantParts(t, got.err, "RESUME_TOKEN_EXPIRED", "stopping", "the server ended it")
	query := "filter.categories=security&filter.repositoryNames=acme%2Fweb"
	if list := fmt.Sprintf("%q", *asked.Load()); list != fmt.Sprintf("%q", []string{"t0 " + query, "t2 " + query, "t3 " + query}) {
		t.Errorf("asked %s", list)
	}
	if kept, err := os.ReadFile(state); err != nil || string(kept) != "t3\n" {
		t.Errorf("the file has %q %v", kept, err)
	}
	for line := range strings.Lines(got.out) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

func TestWatchFindingsAsText(t *testing.T) {
	env, _ := watchServer(t, "id: t1\ndata: {\"changes\":["+watchedChange+"]}\n\n")
	got := palisade(t, "", env, "findings", "watch")
	want := "2026-05-04 10:20:30  triaged (open -> ignored)  90017 high py.sqli  acme/web main app/db.py:42  by user 3  no_time\n"
	if got.out != want {
		t.Errorf("got %q, want %q", got.out, want)
	}
	if got := palisade(t, "", env, "findings", "watch", "--filter", "categories"); got.status == exitOK || !strings.Contains(got.err, "NAME=VALUE") {
		t.Errorf("%d %s", got.status, got.err)
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// ciJob is a checkout with a scanner, and the server that it uses.
type ciJob struct {
	path   string // PATH
	server string
	store  []string
	admin  []string
}

// startCI starts a server, and makes the current directory a checkout with a workflow.
func startCI(t *testing.T) *ciJob {
	t.Helper()
	dir := t.TempDir()
	admin := startReadyServer(t, dir)
	job := &ciJob{server: strings.TrimPrefix(admin[0], "PALISADE_URL="), store: []string{"PALISADE_DATA=" + dir}, admin: admin}
	job.path = checkout(t)
	return job
}

// checkout changes into a new repository with one commit and a workflow, and returns a PATH with a scanner.
func checkout(t *testing.T) (path string) {
	t.Helper()
	t.Chdir(t.TempDir())
	write(t, ".github/workflows/palisade.yml", "steps:\n  # semgrep ci\n  - name: semgrep ci\n    run: semgrep ci --oss-only --no-suppress-errors\n")
	gitCI(t, "init", "-q", "-b", "main")
	gitCI(t, "commit", "-q", "--allow-empty", "-m", "first")
	bin := t.TempDir()
	write(t, filepath.Join(bin, "semgrep"), "#!/bin/sh\necho 1.97.0\n")
	if err := os.Chmod(filepath.Join(bin, "semgrep"), 0o700); err != nil {
		t.Fatal(err)
	}
	return bin + string(filepath.ListSeparator) + os.Getenv("PATH")
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func gitCI(t *testing.T, args ...string) string {
	t.Helper()
	args = append([]string{"-c", "user.name=ci", "-c", "user.email=ci@acme.test", "-c", "protocol.file.allow=always"}, args...)
	out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// token creates an API token next to the server.
func (j *ciJob) token(t *testing.T, name string, flags ...string) string {
	t.Helper()
	made := palisade(t, "", j.store, append([]string{"token", "create", "--name", name}, flags...)...)
	if made.status != exitOK {
		t.Fatal(made.err)
	}
	return strings.TrimSpace(made.out)
}

// quiet are the variables of a job that has nothing to complain about, without address and token.
func (j *ciJob) quiet() []string {
	return []string{"PATH=" + j.path, "HOME=" + os.TempDir(), "SEMGREP_ENABLE_VERSION_CHECK=0", "SEMGREP_SEND_METRICS=off"}
}

// doctor runs doctor --ci with the time of now.
func (j *ciJob) doctor(t *testing.T, environ []string, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	status := run(t.Context(), append([]string{"doctor", "--ci"}, args...), streams{
		in: strings.NewReader(""), out: &out, err: &errs, environ: append(slices.Clone(environ), j.quiet()...), now: time.Now,
	})
	for _, variable := range environ {
		if value, found := strings.CutPrefix(variable, "SEMGREP_APP_TOKEN="); found && len(value) > 30 && strings.Contains(out.String()+errs.String(), value) {
			t.Errorf("the token was printed:\n%s", out.String())
		}
	}
	return outcome{status, out.String(), errs.String()}
}

func at(url, token string) []string {
	return []string{"SEMGREP_URL=" + url, "SEMGREP_APP_TOKEN=" + token}
}

// TestDoctorCI checks a job with each thing wrong that opens a gate, against a real server.
func TestDoctorCI(t *testing.T) {
	job := startCI(t)
	agent := job.token(t, "ci", "--scopes", "agent")
	if got := palisade(t, "", job.admin, "rules", "mode", "block", "*"); got.status != exitOK {
		t.Fatal(got.err)
	}
	expired := job.token(t, "old", "--scopes", "agent", "--expires-in", "1ms")
	good := at(job.server+"/", agent)
	for name, c := range map[string]struct {
		environ []string
		status  int
		want    []string
	}{
		"all is well": {good, exitOK, []string{
			"ok       address", "from SEMGREP_URL", "ok       server", "ok       clock", `for the deployment "`, "ok       scope        the token may fetch rules",
			"ok       rules", "ok       upload size", "1073741824", "semgrep 1.97.0", "ok       errors", "ok       git",
		}},
		"palisade upload": {[]string{"PALISADE_URL=" + job.server, "PALISADE_TOKEN=" + agent}, exitOK, []string{"from PALISADE_URL"}},
		"no address":      {[]string{"SEMGREP_APP_TOKEN=" + agent}, exitNo, []string{"FAILED   address", "its vendor", "to do: set SEMGREP_URL"}},
		"address of upload only": {[]string{"PALISADE_URL=" + job.server, "SEMGREP_APP_TOKEN=" + agent}, exitNo,
			[]string{"SEMGREP_URL is not set"}},
		"no URL":            {at("palisade.acme.test", agent), exitNo, []string{"which is no URL"}},
		"nothing listens":   {at("http://127.0.0.1:1", agent), exitNo, []string{"FAILED   server", "nothing listens", "may reach it"}},
		"path too long":     {at(job.server+"/api", agent), exitNo, []string{"not at this path: /api", "without /api"}},
		"two servers":       {append(at(job.server, agent), "PALISADE_URL=http://127.0.0.2:9"), exitOK, []string{"warning  address", "is another server"}},
		"no token":          {[]string{"SEMGREP_URL=" + job.server}, exitNo, []string{"FAILED   token", "protected variables", "token create --name ci --scopes agent"}},
		"fork":              {[]string{"SEMGREP_URL=" + job.server, "GITHUB_EVENT_NAME=pull_request"}, exitNo, []string{"from forks get no secrets"}},
		"unexpanded":        {at(job.server, "$PALISADE_TOKEN"), exitNo, []string{`not expanded: "$PALISADE_TOKEN"`}},
		"quoted":            {at(job.server, `"sgp_x"`), exitNo, []string{"blanks, quotes"}},
		"expired":           {at(job.server, expired), exitNo, []string{"ends in " + expired[len(expired)-4:] + ": it is mistyped, expired or revoked, or a token of another server"}},
		"expired JWT":       {at(job.server, oldJWT), exitNo, []string{"a JSON Web Token that expired at 2020-01-01T00:00:00Z"}},
		"wrong scope":       {at(job.server, job.token(t, "worker", "--scopes", "workflow-tasks")), exitNo, []string{"FAILED   scope", "the scope agent or web-api", "this token has workflow-tasks"}},
		"agent, reads only": {at(job.server, job.token(t, "agent-reader", "--scopes", "agent", "--role", "readonly")), exitNo, []string{"FAILED   rules", "HTTP 403", "the role ORG_ROLE_READONLY may not do this"}},
		"reads only":        {at(job.server, job.token(t, "reader", "--scopes", "web-api")), exitNo, []string{"FAILED   rules", "the role ORG_ROLE_READONLY may not do this", "warning  scope"}},
		"errors suppressed": {append(slices.Clone(good), "SEMGREP_SUPPRESS_ERRORS=false"), exitOK, []string{"(SEMGREP_SUPPRESS_ERRORS)"}},
		"calls the vendor":  {append(slices.Clone(good), "SEMGREP_SEND_METRICS=auto", "SEMGREP_ENABLE_VERSION_CHECK=1"), exitOK, []string{"asks its vendor for new versions", "send metrics"}},
		"no scanner":        {append([]string{"PATH=" + os.Getenv("PATH")}, good...), exitOK, []string{"warning  scanner", "ok       token"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := job.doctor(t, c.environ)
			if got.status != c.status {
				t.Errorf("status %d, want %d", got.status, c.status)
			}
			wantParts(t, got.out, c.want...)
			if strings.Contains(got.out, "FAILED   rules") && strings.Contains(got.out, "may fetch rules") {
				t.Errorf("the checks contradict each other:\n%s", got.out)
			}
		})
	}
	job.isEmpty(t)

	var parsed struct {
		Holds  bool `json:"gate_holds"`
		Checks []ciCheck
	}
	if err := json.Unmarshal([]byte(job.doctor(t, good, "-o", "json").out), &parsed); err != nil || !parsed.Holds || len(parsed.Checks) < 9 || parsed.Checks[0].Status != ciOK {
		t.Errorf("JSON: %v %+v", err, parsed)
	}
	write(t, "rules/new.yml", "rules:\n  - {id: new, languages: [python], severity: ERROR, message: m, pattern: eval(...), min-version: 1.98.0}\n")
	if got := palisade(t, "", job.admin, "rules", "import", "rules"); got.status != exitOK {
		t.Fatal(got.err)
	}
	wantParts(t, job.doctor(t, good).out, "warning  rules", "semgrep 1.97.0 is too old for 1 of", "use a newer semgrep")
	if got := palisade(t, "", job.admin, "rules", "mode", "off", "*"); got.status != exitOK {
		t.Fatal(got.err)
	}
	wantParts(t, job.doctor(t, good).out, "FAILED   rules", "there are no rules for this scanner")
	job.api(t, http.MethodPut, "/api/agent/deployments/1/products", `{"sast":{"enabled":false},"sca":{"enabled":false},"secrets":{"enabled":false}}`)
	wantParts(t, job.doctor(t, good).out, "FAILED   rules", "the deployment has no product enabled")
}

// oldJWT expired in 2020. Its signature is none.
const oldJWT = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE1Nzc4MzY4MDB9.c2ln"

// isEmpty fails if a check has stored a scan or a project.
func (j *ciJob) isEmpty(t *testing.T) {
	t.Helper()
	for _, body := range []string{
		j.api(t, http.MethodGet, "/api/v1/deployments/default/projects", ""),
		j.api(t, http.MethodPost, "/api/v1/deployments/1/scans/search", "{}"),
	} {
		if strings.Contains(body, `"id"`) || !strings.Contains(body, "[]") {
			t.Errorf("stored by the checks: %s", body)
		}
	}
}

// api calls the API as an administrator.
func (j *ciJob) api(t *testing.T, method, path, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, j.server+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+testToken)
	answer, err := exchangeCI(http.DefaultClient, request)
	if err != nil || answer.status != http.StatusOK {
		t.Fatalf("%s: %v %d %s", path, err, answer.status, answer.body)
	}
	return string(answer.body)
}

// TestDoctorCIBehindProxies checks a job whose way to the server is broken.
func TestDoctorCIBehindProxies(t *testing.T) {
	job := startCI(t)
	agent := job.token(t, "ci", "--scopes", "agent")
	target, err := url.Parse(job.server)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(target)
	refuseLarge := func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 1<<20 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			_, _ = fmt.Fprint(w, "<html><title>413 Request Entity Too Large</title></html>")
			return
		}
		pass.ServeHTTP(w, r)
	}
	old := httputil.NewSingleHostReverseProxy(target)
	old.ModifyResponse = func(r *http.Response) error {
		r.Header.Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		return nil
	}
	for name, c := range map[string]struct {
		handler http.Handler
		status  int
		want    []string
	}{
		"page": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, "<html><title>Acme\n&amp; Co\x1b[31m</title></html>")
		}), exitNo, []string{"FAILED   server", `something else answers: HTTP 200 with a page with the title "Acme`, "behind a proxy"}},
		"sign-in":   {http.RedirectHandler("https://sso.acme.test/oauth2/start?rd=x", http.StatusFound), exitNo, []string{"sign-in page: https://sso.acme.test/oauth2/start", "/api/"}},
		"to https":  {http.HandlerFunc(toHTTPS), exitNo, []string{"redirects to https", "to do: set SEMGREP_URL to https://127.0.0.1"}},
		"elsewhere": {http.RedirectHandler("http://other.test/x", http.StatusMovedPermanently), exitNo, []string{"redirects to http://other.test/x"}},
		"502":       {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }), exitNo, []string{"HTTP 502", "/readyz"}},
		"small":     {http.HandlerFunc(refuseLarge), exitOK, []string{"warning  upload size", "a proxy before the server refuses results of 64 MiB", "client_max_body_size"}},
		"own limit": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength > 1<<20 {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				_, _ = fmt.Fprint(w, `{"error":"the body must have at most 1048576 bytes"}`)
				return
			}
			pass.ServeHTTP(w, r)
		}), exitOK, []string{"warning  upload size", "at most 1048576 bytes", "--max-upload"}},
		"clock": {old, exitOK, []string{"warning  clock", "by 1h0m", "NTP"}},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := httptest.NewServer(c.handler)
			defer proxy.Close()
			got := job.doctor(t, at(proxy.URL, agent))
			if got.status != c.status || strings.Contains(got.out, "\x1b") {
				t.Errorf("status %d, want %d", got.status, c.status)
			}
			wantParts(t, got.out, c.want...)
		})
	}
	t.Run("TLS", func(t *testing.T) { job.checkTLSRoots(t, pass, agent) })
}

func toHTTPS(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "https://127.0.0.1"+r.URL.Path, http.StatusMovedPermanently)
}

// checkTLSRoots checks a server whose certificate no public root signed.
func (j *ciJob) checkTLSRoots(t *testing.T, pass http.Handler, token string) {
	server := httptest.NewUnstartedServer(pass)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	root := filepath.Join(t.TempDir(), "root.pem")
	write(t, root, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	job := at(server.URL, token)
	for name, c := range map[string]struct {
		environ []string
		status  int
		want    []string
	}{
		"unknown root":       {job, exitNo, []string{"FAILED   TLS", "unknown authority", "REQUESTS_CA_BUNDLE (semgrep)", "SSL_CERT_FILE (palisade", "GIT_SSL_CAINFO"}},
		"only SSL_CERT_FILE": {append(slices.Clone(job), "SSL_CERT_FILE="+root), exitNo, []string{"FAILED   TLS", "REQUESTS_CA_BUNDLE"}},
		"only the scanner":   {append(slices.Clone(job), "REQUESTS_CA_BUNDLE="+root), exitOK, []string{"warning  TLS", "set SSL_CERT_FILE, too", "ok       token"}},
		"both":               {append(slices.Clone(job), "REQUESTS_CA_BUNDLE="+root, "SSL_CERT_FILE="+root), exitOK, []string{"ok       TLS", "ok       server", "warning  rules"}},
		"no such file":       {append(slices.Clone(job), "REQUESTS_CA_BUNDLE="+root+".none"), exitNo, []string{"no such file"}},
		"no certificate":     {append(slices.Clone(job), "REQUESTS_CA_BUNDLE=.github/workflows/palisade.yml"), exitNo, []string{"has no certificate in PEM"}},
		"other name":         {append(at(strings.Replace(server.URL, "127.0.0.1", "localhost", 1), token), "REQUESTS_CA_BUNDLE="+root), exitNo, []string{"use a host name that the certificate names"}},
		"plain HTTP":         {at("http"+strings.TrimPrefix(server.URL, "https"), token), exitNo, []string{"the port speaks TLS", "use https://"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := j.doctor(t, c.environ)
			if got.status != c.status {
				t.Errorf("status %d, want %d", got.status, c.status)
			}
			wantParts(t, got.out, c.want...)
		})
	}
	wantParts(t, j.doctor(t, at("https"+strings.TrimPrefix(j.server, "http"), token)).out, "the port speaks plain HTTP")
}

// TestDoctorCIJob checks what a job's own files and variables say. There is no server.
func TestDoctorCIJob(t *testing.T) {
	job := &ciJob{path: checkout(t)}
	says := func(environ []string, want ...string) {
		t.Helper()
		wantParts(t, job.doctor(t, environ).out, want...)
	}
	write(t, ".gitlab-ci.yml", "script:\n  - semgrep ci --oss-only\n")
	says(nil, "FAILED   errors", ".gitlab-ci.yml runs semgrep ci without --no-suppress-errors: an expired token or a dead server passes")
	write(t, ".gitlab-ci.yml", "")
	write(t, ".github/workflows/palisade.yml", "")
	says(nil, "warning  errors", "unknown")

	origin, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	gitCI(t, "commit", "-q", "--allow-empty", "-m", "second")
	head := gitCI(t, "rev-parse", "HEAD")
	says(nil, "a complete checkout")
	says([]string{"GITHUB_BASE_REF=main"}, "compared with "+head[:12], "(GITHUB_BASE_REF)")
	says([]string{"CHANGE_TARGET=$(reboot)"}, "FAILED   git", "no merge base", "git fetch origin BRANCH")
	says([]string{"GITHUB_EVENT_NAME=pull_request_target", "GITHUB_SHA=" + head}, "FAILED   git", "the change is not scanned")

	t.Chdir(t.TempDir())
	gitCI(t, "clone", "-q", "--depth=1", "file://"+origin, ".")
	gitCI(t, "checkout", "-q", "--detach")
	says(nil, "warning  git", "the checkout is shallow", "HEAD is detached, and no variable names the branch", "set SEMGREP_BRANCH")
	says([]string{"GITHUB_REF=refs/pull/7/merge", "GITHUB_BASE_REF=release"}, "no merge base with release", "fetch-depth: 0", "the branch is refs/pull/7/merge (GITHUB_REF)")

	t.Chdir(t.TempDir())
	says(nil, "FAILED   git", "no checkout of a repository")
	write(t, filepath.Join(strings.SplitN(job.path, string(filepath.ListSeparator), 2)[0], "semgrep"), "#!/bin/sh\necho broken; exit 1\n")
	says(nil, "FAILED   scanner", "broken")
	job.path = os.TempDir()
	says(nil, "warning  scanner", "not in PATH", "FAILED   git")
}

package console_test

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// builtDex is the program of the provider. Go's cache has it unless its version has changed.
var builtDex = sync.OnceValues(func() (string, error) {
	program, err := filepath.Abs(filepath.FromSlash("../../bin/tools/dex"))
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, ".") //nolint:noctx // all tests share it
	build.Dir = filepath.FromSlash("../../.ci/tools/dex")
	build.Env = append(os.Environ(), "GOFLAGS=")
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build dex: %w\n%s", err, out)
	}
	return program, nil
})

// startDex runs a real provider on this machine, and returns its issuer.
func startDex(t *testing.T, redirect, secret, password string) (issuer string) {
	t.Helper()
	program, err := builtDex()
	if err != nil {
		t.Fatal(err)
	}
	dex := exec.CommandContext(t.Context(), program, "--client", clientID, "--redirect", redirect,
		"--users", "ada@acme.test:developers:acme,eve@acme.test,!mallory@acme.test:developers")
	dex.Env = append(os.Environ(), "CLIENT_SECRET="+secret, "PASSWORD="+password)
	dex.Stderr = os.Stderr
	out, err := dex.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := dex.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = dex.Process.Kill()
		_ = dex.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("dex did not start: %v", err)
	}
	return strings.TrimSpace(line)
}

var formAction = regexp.MustCompile(`<form[^>]*action="([^"]+)"`)

// logIn signs a person in at dex, starting with an authorization request, and returns the address that dex sends the
// browser back to.
func logIn(t *testing.T, address, email, password string) string {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	back := ""
	client := &http.Client{Jar: jar, CheckRedirect: func(request *http.Request, _ []*http.Request) error {
		if request.URL.Path == "/auth/callback" {
			back = request.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}}
	page, err := client.Get(address) //nolint:noctx // a test on this machine
	if err != nil {
		t.Fatal(err)
	}
	form := formAction.FindStringSubmatch(read(t, page))
	if form == nil {
		t.Fatalf("dex shows no form: %s", page.Status)
	}
	target, err := page.Request.URL.Parse(strings.ReplaceAll(form[1], "&amp;", "&"))
	if err != nil {
		t.Fatal(err)
	}
	done, err := client.PostForm(target.String(), url.Values{"login": {email}, "password": {password}}) //nolint:noctx // as above
	if err != nil {
		t.Fatal(err)
	}
	if text := read(t, done); back == "" {
		t.Fatalf("dex does not send the browser back: %s %s", done.Status, text)
	}
	return back
}

func read(t *testing.T, response *http.Response) string {
	t.Helper()
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// A real provider: people sign in with a password there, and their groups decide what they are here.
func TestSignInWithDex(t *testing.T) {
	testrun.Deep(t) // builds another program
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) { checkDex(t, on, rand.Text()) })
	t.Run("a public client", func(t *testing.T) { checkDex(t, func(*config.Config) {}, "") })
}

func checkDex(t *testing.T, on func(*config.Config), secret string) {
	t.Helper()
	base, password := "http://"+apitest.FreeAddress(t), rand.Text()
	issuer := startDex(t, base+"/auth/callback", secret, password)
	cfg := apitest.EmptyConfig(t)
	on(&cfg)
	cfg.HTTP, cfg.PublicURL = strings.TrimPrefix(base, "http://"), base
	cfg.OIDCIssuer, cfg.OIDCAudience, cfg.OIDCClientID, cfg.OIDCClientSecret = issuer, "palisade", clientID, secret
	cfg.OIDCMembership, cfg.OIDCClaim, cfg.OIDCClaimMap, cfg.OIDCScopes = "claim", "groups", "developers=member", "openid email profile groups"
	apitest.StartConfigured(t, cfg)
	server := &apitest.Server{URL: base}

	ada := newBrowser(t, server)
	back := logIn(t, ada.get("/auth/login?return=/console/default/scans").location(), "ada@acme.test", password)
	got := ada.get(back)
	if got.Status != http.StatusSeeOther || got.location() != "/console/default/scans" {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	if me := ada.get(mine); !strings.Contains(me.Body, `"email":"ada@acme.test"`) || !strings.Contains(me.Body, `"orgRole":"ORG_ROLE_MEMBER"`) {
		t.Errorf("the user is %s", me.Body)
	}
	replayed := newBrowser(t, server)
	replayed.get("/auth/login")
	replayed.get(back).wantPage(t, http.StatusBadRequest, "This sign-in is not valid")

	eve := newBrowser(t, server)
	eve.get(logIn(t, eve.get("/auth/login").location(), "eve@acme.test", password)).wantPage(t, http.StatusForbidden, "You are not a member")
}

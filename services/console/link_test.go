package console_test

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

var printedLink = regexp.MustCompile(`http://\S+/auth/link\?code=\S+`)

// The first start prints a link that signs the administrator in: once, also after a restart, and not when a program
// only looks at it. On plain HTTP on this machine the cookie has no prefix and is not Secure.
func TestFirstStart(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		cfg := apitest.EmptyConfig(t)
		on(&cfg)
		first, out := apitest.StartConfigured(t, cfg)
		link := printedLink.FindString(out.String())
		if link == "" || !strings.HasPrefix(link, "http://"+first.Addresses().HTTP+"/") || out.Token() == "" {
			t.Fatalf("the first start prints %s", out)
		}
		first.Stop()
		if err := first.Wait(); err != nil {
			t.Fatal(err)
		}
		again, out := apitest.StartConfigured(t, cfg)
		if printedLink.MatchString(out.String()) {
			t.Errorf("the second start prints %s", out)
		}
		b := newBrowser(t, &apitest.Server{URL: "http://" + again.Addresses().HTTP})
		code := codeOf(t, link)
		for range 3 { // previews
			got := b.get("/auth/link?code=" + code)
			if got.Status != http.StatusOK || !strings.Contains(got.Body, "admin@localhost") || len(got.cookies) != 0 {
				t.Fatalf("%d %v %s", got.Status, got.cookies, got.Body)
			}
		}
		got := b.post("/auth/link", url.Values{"code": {code}})
		if got.Status != http.StatusSeeOther || got.location() != "/console/" || len(got.cookies) != 1 {
			t.Fatalf("%d %v %s", got.Status, got.Header, got.Body)
		}
		wantCookie(t, got.cookies[0], "palisade", false)
		checkAlive(t, b, true)
		other := newBrowser(t, b.server)
		other.post("/auth/link", url.Values{"code": {code}}).wantPage(t, http.StatusGone, "palisade console-link")
		other.get("/auth/link?code="+code).wantPage(t, http.StatusGone, "palisade console-link")
	})
}

// With a client at an issuer, people sign in there: nothing is printed.
func TestFirstStartWithAnIssuer(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	cfg.OIDCIssuer, cfg.OIDCAudience, cfg.OIDCClientID = "https://id.acme.test", "palisade", clientID
	_, out := apitest.StartConfigured(t, cfg)
	if printedLink.MatchString(out.String()) || out.Token() == "" {
		t.Errorf("printed %s", out)
	}
}

func TestConsoleLink(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, on)
		s.AddUser(t, s.Tenant, "ada@acme.test", access.RoleMember)
		s.AddUser(t, s.Tenant, "nobody@acme.test", "")
		link, err := services.NewConsoleLink(t.Context(), s.Config, "ada@acme.test")
		if err != nil || !strings.HasPrefix(link, "https://palisade.acme.test/auth/link?code=") {
			t.Fatalf("%q, %v", link, err)
		}
		entry := s.Store.Reader.AuditEntry.Query().Where(auditentry.Method("console_link.create")).OnlyX(tenant.NewContext(t.Context(), s.DeploymentID))
		if entry.ActorKind != "operator" || !strings.Contains(entry.Request, "ada@acme.test") || strings.Contains(entry.Request, codeOf(t, link)) {
			t.Errorf("the audit entry is %+v", entry)
		}
		if _, err := services.NewConsoleLink(t.Context(), s.Config, "unknown@acme.test"); err == nil || !strings.Contains(err.Error(), "not found") {
			t.Errorf("a link for nobody: %v", err)
		}
		checkOneUse(t, s, codeOf(t, link))
		if rows := sessions(t, s); len(rows) != 1 || rows[0].Method != "link" {
			t.Errorf("the sessions are %v", rows)
		}
		signIn := s.Store.Reader.AuditEntry.Query().Where(auditentry.Method("console/sign-in")).OnlyX(tenant.NewContext(t.Context(), s.DeploymentID))
		if signIn.ActorName != "ada@acme.test" {
			t.Errorf("the audit entry is %+v", signIn)
		}
		checkDeadLinks(t, s)
	})
}

// checkOneUse uses a link several times at once.
func checkOneUse(t *testing.T, s *apitest.Server, code string) {
	t.Helper()
	var group sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		group.Go(func() {
			response, err := http.DefaultTransport.RoundTrip(mustRequest(t, s.URL+"/auth/link", url.Values{"code": {code}}))
			if err == nil {
				statuses[i] = response.StatusCode
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		})
	}
	group.Wait()
	used := 0
	for _, status := range statuses {
		switch status {
		case http.StatusSeeOther:
			used++
		case http.StatusGone:
		default:
			t.Errorf("status %d", status)
		}
	}
	if used != 1 {
		t.Errorf("%d of %d uses succeeded: %v", used, len(statuses), statuses)
	}
}

func mustRequest(t *testing.T, address string, form url.Values) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return request
}

// checkDeadLinks: a link ends after 15 minutes, and wrong ones and people outside of every deployment get a page.
func checkDeadLinks(t *testing.T, s *apitest.Server) {
	t.Helper()
	link, err := services.NewConsoleLink(t.Context(), s.Config, "ada@acme.test")
	if err != nil {
		t.Fatal(err)
	}
	row := s.Store.Reader.ConsoleLink.Query().Order(ent.Desc("id")).FirstX(s.System(t))
	if row.ExpiresAt-row.CreatedAt != access.ConsoleLinkTTL.Microseconds() {
		t.Errorf("the link lives for %d µs", row.ExpiresAt-row.CreatedAt)
	}
	_, writer := s.Store.DB()
	if _, err := writer.ExecContext(t.Context(), "UPDATE console_links SET expires_at = $1", ago(0)); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, s)
	for _, code := range []string{codeOf(t, link), "", "x", strings.Repeat("A", 43)} {
		b.get("/auth/link?code="+code).wantPage(t, http.StatusGone, "This link does not work any more")
		b.post("/auth/link", url.Values{"code": {code}}).wantPage(t, http.StatusGone, "This link does not work any more")
	}
	if got := b.post("/auth/link", url.Values{"code": {strings.Repeat("A", 10_000)}}); got.Status != http.StatusGone {
		t.Errorf("a large form: %d", got.Status)
	}
	if link, err = services.NewConsoleLink(t.Context(), s.Config, "nobody@acme.test"); err != nil {
		t.Fatal(err)
	}
	b.post("/auth/link", url.Values{"code": {codeOf(t, link)}}).wantPage(t, http.StatusForbidden, "belongs to no organization here")
}

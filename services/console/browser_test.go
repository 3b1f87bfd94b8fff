package console_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/internal/apitest"
)

// browser is one browser of a person. It sends cookies as over TLS, although tests use plain HTTP.
type browser struct {
	t       *testing.T
	server  *apitest.Server
	cookies map[string]string
}

func newBrowser(t *testing.T, s *apitest.Server) *browser {
	t.Helper()
	return &browser{t: t, server: s, cookies: map[string]string{}}
}

// answer is what the browser gets. It follows no redirects.
type answer struct {
	apitest.Answer
	cookies []*http.Cookie
}

// location is where a redirect leads.
func (a answer) location() string { return a.Header.Get("Location") }

// do sends a request to an address or a path of the server. header alternates names and values.
func (b *browser) do(method, address string, body io.Reader, header ...string) answer {
	b.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = b.server.URL + address
	}
	request, err := http.NewRequestWithContext(b.t.Context(), method, address, body)
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("User-Agent", "Test/1.0 (Browser)")
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	if strings.HasPrefix(address, b.server.URL) {
		for name, value := range b.cookies {
			request.AddCookie(&http.Cookie{Name: name, Value: value})
		}
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	a := answer{apitest.Answer{Status: response.StatusCode, Header: response.Header, Body: string(content)}, response.Cookies()}
	for _, c := range a.cookies {
		if c.MaxAge < 0 || c.Value == "" {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
	}
	return a
}

func (b *browser) get(address string, header ...string) answer {
	b.t.Helper()
	return b.do(http.MethodGet, address, nil, header...)
}

// post sends a form, as a page of the console does.
func (b *browser) post(path string, form url.Values, header ...string) answer {
	b.t.Helper()
	header = append([]string{"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin"}, header...)
	return b.do(http.MethodPost, path, strings.NewReader(form.Encode()), header...)
}

// signInAs signs in with a one-time link.
func (b *browser) signInAs(email string) *browser {
	b.t.Helper()
	link, err := services.NewConsoleLink(b.t.Context(), b.server.Config, email)
	if err != nil {
		b.t.Fatal(err)
	}
	if a := b.post("/auth/link", url.Values{"code": {codeOf(b.t, link)}}); a.Status != http.StatusSeeOther {
		b.t.Fatalf("sign-in: %d %s", a.Status, a.Body)
	}
	return b
}

// codeOf is the secret in a link.
func codeOf(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil || u.Path != "/auth/link" || len(u.Query().Get("code")) != 43 {
		t.Fatalf("the link is %q, %v", link, err)
	}
	return u.Query().Get("code")
}

// wantPage requires a page of the sign-in with a text, that leads back to the sign-in page.
func (a answer) wantPage(t *testing.T, status int, text string) {
	t.Helper()
	if a.Status != status || !strings.Contains(a.Body, text) || !strings.Contains(a.Body, `href="/console/sign-in"`) ||
		a.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("got %d %s\nwant %d, a page with %q", a.Status, a.Body, status, text)
	}
}

// sessions are all rows of the table, by id.
func sessions(t *testing.T, s *apitest.Server) []*ent.Session {
	t.Helper()
	return s.Store.Reader.Session.Query().Order(ent.Asc("id")).AllX(s.System(t))
}

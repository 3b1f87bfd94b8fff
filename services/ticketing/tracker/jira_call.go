package tracker

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/palisade/palisade/services/scm/host"
)

// maxAnswer limits an answer, in bytes.
const maxAnswer = 1 << 20

// calls sends requests to the API of a Jira.
type calls struct {
	api    string
	client *http.Client
	// secrets must not appear in errors, even if a server repeats them.
	secrets []string
}

func newCalls(c Config) calls {
	version, authorization := "2", "Bearer "+c.Token
	if c.Kind == Jira {
		version, authorization = "3", "Basic "+base64.StdEncoding.EncodeToString([]byte(c.User+":"+c.Token))
	}
	api, _ := url.Parse(c.BaseURL + "/rest/api/" + version + "/") // Open has parsed the base
	client := host.Confine(c.Client, api, authorization)
	follow := client.CheckRedirect
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if next.Method != via[0].Method { // it would read instead of write
			return http.ErrUseLastResponse
		}
		if follow == nil {
			return nil
		}
		return follow(next, via)
	}
	_, credential, _ := strings.Cut(authorization, " ")
	return calls{api: api.String(), client: client, secrets: []string{c.Token, credential}}
}

// call sends a request and reads the answer into a value, which is nil for answers without a body. path is below the
// API and may have a query.
func (c *calls) call(ctx context.Context, method, path string, body, into any) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return refused("the fields of the issue cannot be sent: %v", err)
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.api+path, content)
	if err != nil {
		return host.Connection(err)
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "Palisade")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.client.Do(request)
	if err != nil {
		return host.Connection(err)
	}
	defer func() { _ = response.Body.Close() }()
	return c.read(response, into)
}

func (c *calls) read(response *http.Response, into any) error {
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case response.StatusCode < 200 || response.StatusCode > 299:
		return c.refusal(response, data)
	case err != nil:
		return host.Connection(err)
	case len(data) > maxAnswer:
		return &host.Error{Kind: host.Malformed, Text: "Jira's answer is too large: check the URL"}
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return notJira(err)
	}
	return nil
}

// notJira explains an answer in another format, such as a sign-in page.
func notJira(cause error) error {
	e := host.Connection(cause)
	e.Kind, e.Text = host.Malformed, "the answer is not from Jira: check the kind and the URL of the tracker"
	return e
}

// refusal explains an error status. The body may be HTML.
func (c *calls) refusal(response *http.Response, data []byte) error {
	status, header := response.StatusCode, response.Header
	if strings.HasPrefix(header.Get("X-Authentication-Denied-Reason"), "CAPTCHA") {
		return &host.Error{
			Kind: host.Unauthorized, Text: "Jira demands a CAPTCHA after failed sign-ins: sign in once with a browser as the token's account",
		}
	}
	reason := header.Get("X-Seraph-Loginreason")
	if strings.Contains(reason, "AUTHENTICATED_FAILED") || strings.Contains(reason, "AUTHENTICATION_DENIED") {
		status = http.StatusUnauthorized // Jira continues without a user, who then sees nothing
	}
	if reset, err := resetTime(header.Get("X-Ratelimit-Reset")); err == nil && header.Get("Retry-After") == "" {
		header.Set("Retry-After", reset.UTC().Format(http.TimeFormat))
	}
	detail := c.detail(data)
	e := host.Refusal(status, header, detail, nil)
	switch e.Kind {
	case host.Unauthorized:
		e.Text = "Jira does not accept the token: it is wrong, expired or revoked, or it belongs to another account"
	case host.NotFound:
		e.Text = "Jira has no such issue or project, or does not show it to this account"
	}
	return e
}

// resetTime parses the end of a rate limit. Jira leaves out the seconds.
func resetTime(text string) (time.Time, error) {
	if at, err := time.Parse("2006-01-02T15:04Z07:00", text); err == nil {
		return at, nil
	}
	return time.Parse(time.RFC3339, text)
}

// detail is Jira's own text, with the names of the fields; empty if the body is not JSON.
func (c *calls) detail(data []byte) string {
	var answer struct {
		ErrorMessages []string
		Errors        map[string]any
	}
	if json.Unmarshal(data, &answer) != nil {
		return ""
	}
	texts := answer.ErrorMessages
	for _, field := range slices.Sorted(maps.Keys(answer.Errors)) {
		texts = append(texts, fmt.Sprintf("%s: %v", field, answer.Errors[field]))
	}
	text := strings.Join(texts, "; ")
	for _, secret := range c.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return text
}

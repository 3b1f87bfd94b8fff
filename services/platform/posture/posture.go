// Package posture tries the credentials of cloud-posture tools: tokens of the OAuth 2.0 client-credentials grant (RFC
// 6749, section 4.4), and a GraphQL API.
package posture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/palisade/palisade/services/internal/egress"
)

// Client is an OAuth 2.0 client at a tool.
type Client struct {
	ID, Secret string
	// TokenURL is the token endpoint, APIURL the GraphQL API.
	TokenURL, APIURL string
	// Audience is sent to the token endpoint; empty for none.
	Audience string
}

// Limits of each call.
const (
	timeout   = 15 * time.Second
	maxAnswer = 64 << 10
	// question is valid for every GraphQL API, and reads no data.
	question = `{"query":"query { __typename }"}`
)

// Check requests a token and uses it once. problem is for the tenant: it contains nothing that a host answered but its
// status and the error codes of RFC 6749. It is empty if the credential is valid. err is the end of ctx.
func Check(ctx context.Context, guard *egress.Guard, c Client) (problem string, err error) {
	client := guard.Client(egress.Limits{Timeout: timeout, MaxResponse: maxAnswer}) // follows no redirects
	config := clientcredentials.Config{ClientID: c.ID, ClientSecret: c.Secret, TokenURL: c.TokenURL}
	if c.Audience != "" {
		config.EndpointParams = url.Values{"audience": {c.Audience}}
	}
	token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
	if err != nil {
		return tokenProblem(err), ctx.Err()
	}
	return apiProblem(ctx, client, c.APIURL, token)
}

// errorCodes are the codes of RFC 6749, section 5.2. A host may answer any text as a code.
var errorCodes = []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope"}

func tokenProblem(err error) string {
	var refused *oauth2.RetrieveError
	var failed *url.Error
	switch {
	case errors.As(err, &refused) && slices.Contains(errorCodes, refused.ErrorCode):
		return fmt.Sprintf("tokenUrl refused the credential: %s (HTTP %d)", refused.ErrorCode, refused.Response.StatusCode)
	case errors.As(err, &refused) && refused.Response.StatusCode >= 300:
		return "tokenUrl answered " + statusText(refused.Response.StatusCode)
	case errors.As(err, &failed):
		return "tokenUrl: " + egress.Describe(err)
	}
	return "tokenUrl answered without a token that can be read"
}

// apiProblem asks the API for the name of its query type.
func apiProblem(ctx context.Context, client *http.Client, address string, token *oauth2.Token) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(question))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	token.SetAuthHeader(request)
	response, err := client.Do(request)
	if err != nil {
		return "apiUrl: " + egress.Describe(err), ctx.Err()
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // the status tells whether the API accepts the token
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "apiUrl refused the token of tokenUrl: it answered " + statusText(status), nil
	case status != http.StatusOK:
		return "apiUrl answered " + statusText(status) + ", not as a GraphQL API does", nil
	}
	return "", ctx.Err()
}

func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, http.StatusText(status)))
}

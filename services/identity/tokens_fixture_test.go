package identity_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// requester sends requests with any credential.
type requester struct{ *apitest.Server }

// tokensPath is the path of a deployment's tokens.
func tokensPath(deploymentID int64) string {
	return fmt.Sprintf("/api/tokens/v1/deployments/%d/tokens", deploymentID)
}

var (
	changing   = regexp.MustCompile(`"(requestId|value|hint)":"[^"]+"`)
	tokenValue = regexp.MustCompile(`"value":"(sgp_[a-zA-Z0-9]{43})"`)
	tokenID    = regexp.MustCompile(`"token":\{"id":(\d+),`)
)

// golden compares a body without values that differ each time.
func golden(t *testing.T, name, body string) {
	t.Helper()
	apitest.Golden(t, name, changing.ReplaceAllString(body, `"$1":"R"`))
}

// newToken creates a token and returns its value and the path to delete it.
func (r requester) newToken(t *testing.T, token, body string) (value, path string) {
	t.Helper()
	answer := r.Body(t, token, http.MethodPost, tokensPath(r.DeploymentID), body, 200)
	found, id := tokenValue.FindStringSubmatch(answer), tokenID.FindStringSubmatch(answer)
	if found == nil || id == nil {
		t.Fatalf("no token in %s", answer)
	}
	return found[1], tokensPath(r.DeploymentID) + "/" + id[1]
}

// has requires all words in a text.
func has(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%s is not in %s", word, text)
		}
	}
}

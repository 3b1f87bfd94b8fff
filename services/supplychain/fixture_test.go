package supplychain_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/services/internal/apitest"
)

// caller sends requests as the first administrator.
type caller struct{ *apitest.Server }

// path is the path of the first deployment's configurations.
func (c caller) path() string {
	return fmt.Sprintf("/api/agent/deployments/%d/packagemanagerauthconfigs", c.DeploymentID)
}

// mustDo requires 200 and returns the body.
func (c caller) mustDo(t *testing.T, method, path, body string) string {
	t.Helper()
	return c.Body(t, c.Token, method, path, body, 200)
}

// create requires 200 and returns the body.
func (c caller) create(t *testing.T, body string) string {
	t.Helper()
	return c.mustDo(t, http.MethodPost, c.path(), `{"packageManagerConfigForInsert":`+body+`}`)
}

// mustContain requires all words in an answer.
func mustContain(t *testing.T, answer string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(answer, word) {
			t.Errorf("%s is not in %s", word, answer)
		}
	}
}

// same requires that a gRPC call gives the same answer as HTTP.
func same(t *testing.T, body string) func(proto.Message, error) {
	return func(response proto.Message, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, body)
	}
}

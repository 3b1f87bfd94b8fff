package rules_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	rulesv1 "github.com/palisade/palisade/gen/palisade/rules/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// caller sends requests as the first administrator.
type caller struct{ *apitest.Server }

// path is a path below a deployment's rules.
func path(of apitest.Tenant, more string) string {
	return fmt.Sprintf("/api/rules/v1/deployments/%d/%s", of.DeploymentID, more)
}

// mustDo requires 200 and returns the body.
func (c caller) mustDo(t *testing.T, method, path, body string) string {
	t.Helper()
	return c.Body(t, c.Token, method, path, body, 200)
}

// text encodes a JSON string.
func text(s string) string {
	out, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// importBody is a request that imports files, given as alternating names and texts; more is added to it.
func importBody(more string, files ...string) string {
	var list []string
	for i := 0; i+1 < len(files); i += 2 {
		list = append(list, `{"name":`+text(files[i])+`,"text":`+text(files[i+1])+`}`)
	}
	return `{"files":[` + strings.Join(list, ",") + `]` + more + `}`
}

// python is a rule in YAML.
func python(name, pattern string) string {
	return fmt.Sprintf("- id: %s\n  languages: [py]\n  severity: ERROR\n  message: Do not.\n  pattern: %s\n  metadata: {category: security, cvss: 7.50}\n", name, pattern)
}

// few are three rules, one per product.
const few = `rules:
- id: acme.python.eval
  languages: [python]
  severity: ERROR
  message: Do not evaluate <input> & such.
  pattern: eval($X)
  metadata: {category: security, cvss: 7.50, dev.semgrep.actions: [block], semgrep.dev: {rule: {origin: pro_rules}}}
- id: acme/web/lodash
  languages: [js, ts]
  severity: HIGH
  message: Upgrade lodash.
  min-version: 1.50.0
  max-version: 1.99.0
  r2c-internal-project-depends-on: {namespace: npm, package: lodash, version: < 4.17.21}
- id: acme.token
  languages: [regex]
  severity: CRITICAL
  message: A token.
  pattern-regex: acme_[0-9a-f]{32}
  metadata: {product: secrets, dev.semgrep.validation_state.actions: {valid: block}}
`

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

func (c caller) grpc() rulesv1.RulesServiceClient { return rulesv1.NewRulesServiceClient(c.Conn) }

// changes counts the audit entries by kind.
func (c caller) changes(t *testing.T) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, entry := range c.Store.Reader.AuditEntry.Query().AllX(c.System(t)) {
		for _, change := range entry.Changes {
			found[change.Kind]++
		}
	}
	return found
}

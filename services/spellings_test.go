package services_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/server"
)

// spelledBodies are the bodies of requests that succeed, by the contract's path.
var spelledBodies = map[string]string{"/api/agent/deployments/{}/has_deep_engine": `{"has_deepsemgrep":true}`}

// contractPaths reads all operations of the contract: method, path, and the path that clients were written for.
func contractPaths(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/contract_paths.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(text)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	if len(rows) != 248 {
		t.Fatalf("%d operations, want 248", len(rows))
	}
	return rows
}

var requestID = regexp.MustCompile(`"requestId":"[^"]*"`)

var pathVariable = regexp.MustCompile(`\{[^}]*\}`)

// TestSpellings walks the table of paths with two spellings: it has exactly the operations of the contract whose path
// differs from the clients', and both paths have the same answer.
func TestSpellings(t *testing.T) {
	t.Parallel()
	var differing, table []string
	for _, row := range contractPaths(t) {
		if row[1] != row[2] {
			differing = append(differing, strings.Join(row, " "))
		}
	}
	for _, one := range server.Spellings() {
		table = append(table, one.Method+" "+one.Contract+" "+one.Original)
	}
	slices.Sort(differing)
	slices.Sort(table)
	if !slices.Equal(differing, table) {
		t.Errorf("the table has\n%s\nwant\n%s", strings.Join(table, "\n"), strings.Join(differing, "\n"))
	}
	served := map[string]bool{}
	for _, rpc := range operations() {
		served[rpc.method+" "+pathVariable.ReplaceAllString(rpc.path, "{}")] = true
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		chief := s.AddUser(t, s.Tenant, "chief@acme.test", access.RoleAdmin)
		for _, one := range server.Spellings() {
			if !served[one.Method+" "+one.Contract] {
				t.Errorf("%s %s is not served", one.Method, one.Contract)
			}
			fill := func(path string) string { return strings.ReplaceAll(path, "{}", "1") }
			if strings.Contains(one.Contract, "/cloud-posture") || strings.Contains(one.Contract, "/chat-app/") { // for users only, and the deployment has nothing
				answer := func(path string) string {
					got := s.Do(t, chief, one.Method, fill(path), "{}")
					return fmt.Sprint(got.Status, requestID.ReplaceAllString(got.Body, ""))
				}
				if want, got := answer(one.Contract), answer(one.Original); got != want {
					t.Errorf("%s answers %s, %s answers %s", one.Contract, want, one.Original, got)
				}
				continue
			}
			want := s.Body(t, s.Token, one.Method, fill(one.Contract), spelledBodies[one.Contract], 200)
			if got := s.Body(t, s.Token, one.Method, fill(one.Original), spelledBodies[one.Contract], 200); got != want {
				t.Errorf("%s answers %s, %s answers %s", one.Contract, want, one.Original, got)
			}
			if wrong := s.Do(t, s.Token, "PUT", fill(one.Original), ""); one.Method == "POST" && wrong.Status != 405 {
				t.Errorf("PUT %s: %d, want 405", one.Original, wrong.Status)
			}
		}
	})
}

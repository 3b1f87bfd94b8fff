package ignores_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// caller sends requests as an administrator of the first deployment.
type caller struct {
	*apitest.Server
	admin  string
	client policiesv1.IgnoresServiceClient
}

func each(t *testing.T, test func(t *testing.T, s caller)) {
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		test(t, caller{
			Server: server, admin: server.AddUser(t, server.Tenant, "kim@acme.test", access.RoleAdmin),
			client: policiesv1.NewIgnoresServiceClient(server.Conn),
		})
	})
}

func pathOf(of apitest.Tenant) string {
	return fmt.Sprintf("/api/agent/deployments/%d/ignores", of.DeploymentID)
}

func (s caller) do(t testing.TB, method, more, body string, status int) string {
	t.Helper()
	return s.Body(t, s.admin, method, pathOf(s.Tenant)+more, body, status)
}

// set replaces the patterns of code, and waits until they are applied.
func (s caller) set(t testing.TB, patterns ...string) {
	t.Helper()
	s.do(t, http.MethodPatch, "", `{"productIgnores":[`+listOf("SAST", patterns...)+`]}`, 200)
	s.applied(t)
}

func listOf(product string, patterns ...string) string {
	quoted := make([]string, len(patterns))
	for i, pattern := range patterns {
		quoted[i] = fmt.Sprintf("%q", pattern)
	}
	return fmt.Sprintf(`{"product":"PRODUCT_%s","ignores":[%s]}`, product, strings.Join(quoted, ","))
}

// applied waits until no job waits or runs.
func (s caller) applied(t testing.TB) {
	t.Helper()
	apitest.Eventually(t, "the patterns are applied", func() bool {
		var left int
		err := pool(s).QueryRowContext(t.Context(),
			"SELECT COUNT(*) FROM river_job WHERE kind = 'apply_path_ignores' AND state NOT IN ('completed', 'cancelled')").Scan(&left)
		if err != nil {
			t.Fatal(err)
		}
		return left == 0
	})
}

// pool is a pool that reads the job queue.
func pool(s caller) *sql.DB {
	pools := s.Store.Pools()
	if pools["main"] != nil {
		return pools["main"]
	}
	return pools["reader"]
}

// report has a result for each file. A file that begins with # is suppressed in the code.
func report(files ...string) []byte {
	var results []string
	for _, file := range files {
		path, suppressed := strings.CutPrefix(file, "#")
		extra := ""
		if suppressed {
			extra = `,"suppressions":[{"kind":"inSource","justification":"checked"}]`
		}
		results = append(results, fmt.Sprintf(`{"ruleId":"go.sqli","level":"error","message":{"text":"about %s"},"locations":[{"physicalLocation":{
			"artifactLocation":{"uri":%q},"region":{"startLine":1,"startColumn":2,"snippet":{"text":"query(%s)"}}}}]%s}`, path, path, path, extra))
	}
	return []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"gosec","version":"2.21"}},"results":[` + strings.Join(results, ",") + `]}]}`)
}

func (s caller) upload(t testing.TB, name string, files ...string) {
	t.Helper()
	s.Upload(t, name, "main", report(files...))
}

func (s caller) own(t testing.TB) context.Context {
	return tenant.NewContext(t.Context(), s.DeploymentID)
}

// findings are the stored findings of a project, by path.
func (s caller) findings(t testing.TB, name string) map[string]*ent.Finding {
	t.Helper()
	ctx := s.own(t)
	of := s.Store.Reader.Project.Query().Where(project.Name(name)).OnlyX(ctx)
	found := map[string]*ent.Finding{}
	for _, f := range s.Store.Reader.Finding.Query().Where(finding.ProjectID(of.ID)).AllX(ctx) {
		found[*f.FilePath] = f
	}
	return found
}

// states are lines "path state status pattern" of a project's findings.
func (s caller) states(t testing.TB, name string) string {
	t.Helper()
	var lines []string
	for path, f := range s.findings(t, name) {
		pattern := "-"
		if f.IgnoredByPattern != nil {
			pattern = *f.IgnoredByPattern
		}
		lines = append(lines, strings.Join([]string{path, f.State, f.Status, pattern}, " "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (s caller) wantStates(t testing.TB, name string, want ...string) {
	t.Helper()
	if got := s.states(t, name); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// history are lines "kind from to actor: reason" of a finding.
func (s caller) history(t testing.TB, id int64) (lines []string) {
	t.Helper()
	for _, e := range s.Store.Reader.FindingEvent.Query().Where(findingevent.FindingID(id)).Order(ent.Asc(findingevent.FieldID)).AllX(s.own(t)) {
		lines = append(lines, fmt.Sprintf("%s %s %s %s: %s", e.Kind, e.FromStatus, e.ToStatus, e.ActorKind, e.Reason))
	}
	return lines
}

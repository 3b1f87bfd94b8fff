package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/workflowversion"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows"
	"github.com/palisade/palisade/services/workflows/steps"
)

const small = "name: small\ndescription: Does nothing.\nsteps: [{name: only}]\n"

// registry sends requests to the catalog of a deployment.
type registry struct {
	*apitest.Server
	path string
}

func registryOf(s *apitest.Server) registry {
	return registry{s, fmt.Sprintf("/api/workflows/v1/deployments/%d/registry", s.DeploymentID)}
}

func (r registry) send(t *testing.T, token, method, path, body string, want int) string {
	t.Helper()
	return r.Body(t, token, method, r.path+path, body, want)
}

func (r registry) publish(t *testing.T, source string) string {
	t.Helper()
	return r.send(t, r.Token, http.MethodPut, "", quoted(source), http.StatusOK)
}

func quoted(source string) string {
	body, err := json.Marshal(map[string]string{"definition": source})
	if err != nil {
		panic(err)
	}
	return string(body)
}

func everyType(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile("testdata/catalog_every-type.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

func sameAs(t *testing.T, body string) func(proto.Message, error) {
	return func(response proto.Message, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, body)
	}
}

// eachEquipped runs a test on both databases, with a server that lacks nothing to run workflows: nobody asks its model.
func eachEquipped(t *testing.T, test func(t *testing.T, s *apitest.Server)) {
	t.Helper()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) {
			on(c)
			c.EgressAllow, c.AIURL, c.AIModel = "127.0.0.1", "http://127.0.0.1:9/v1", "test-model"
		})
		connect(t, s)
		test(t, s)
	})
}

// connect adds a connection to a source-code host.
func connect(t *testing.T, s *apitest.Server) {
	t.Helper()
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return tx.ScmConfig.Create().SetDeploymentID(s.DeploymentID).SetType("SCM_TYPE_GITLAB_SELFMANAGED").SetNamespace("acme").
			SetBaseURL("https://git.acme.test").SetCreatedAt(1).SetUpdatedAt(1).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The catalog shows workflows that cannot run as not enabled, with what the server lacks: a run is refused for it.
func TestCatalogSaysWhatCannotRun(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		r := registryOf(s)
		const noHost, noModel = "no source-code host is connected", "no model is configured: set ai-url and ai-model"
		list := s.Get(t, r.path)
		if strings.Count(list, `"enabled":false`) != 2 || strings.Count(list, noModel) != 2 || strings.Count(list, noHost) != 1 {
			t.Errorf("shipped: %.400s", list)
		}
		client, ctx := workflowsv1.NewWorkflowCatalogServiceClient(s.Conn), s.Context(t, s.Token)
		sameAs(t, list)(client.ListWorkflowTypes(ctx, &workflowsv1.ListWorkflowTypesRequest{DeploymentId: s.DeploymentID}))
		for _, body := range []string{
			s.Get(t, r.path+"/triage-backlog"), r.send(t, s.Token, http.MethodPatch, "/triage-backlog", `{"enabled":true}`, 200),
			r.publish(t, "name: asks\ntargetType: deployment\nsteps: [{name: only, uses: llm, with: {prompt: hello}}]\n"),
		} {
			if !strings.Contains(body, `"enabled":false`) || !strings.Contains(body, `"disabledReason":"`+noModel) {
				t.Errorf("%.400s", body)
			}
		}
		if small := r.publish(t, small); !strings.Contains(small, `"enabled":true`) || strings.Contains(small, "disabledReason") {
			t.Errorf("a workflow that needs nothing: %s", small)
		}
		const off = `"disabledReason":"workflow %s is disabled: an administrator can enable it%s`
		for name, lacks := range map[string]string{"small": `"`, "asks": "; " + noModel} {
			want := fmt.Sprintf(off, name, lacks)
			if body := r.send(t, s.Token, http.MethodPatch, "/"+name, `{"enabled":false}`, 200); !strings.Contains(body, want) || !strings.Contains(s.Get(t, r.path), want) {
				t.Errorf("disabled: %.400s", body)
			}
			if body := r.send(t, s.Token, http.MethodPatch, "/"+name, `{"enabled":true}`, 200); strings.Contains(body, "is disabled") {
				t.Errorf("enabled again: %.400s", body)
			}
		}
		jobs := fmt.Sprintf("/api/workflows/v1/deployments/%d/jobs", s.DeploymentID)
		if answer := s.Do(t, s.Token, http.MethodPost, jobs, `{"workflowType":"asks"}`); answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, noModel) {
			t.Errorf("a run: %d %s", answer.Status, answer.Body)
		}
		connect(t, s)
		if list := s.Get(t, r.path); strings.Contains(list, noHost) || strings.Count(list, noModel) != 3 {
			t.Errorf("connected: %.400s", list)
		}
	})
}

func TestCatalogGolden(t *testing.T) {
	t.Parallel()
	eachEquipped(t, func(t *testing.T, s *apitest.Server) {
		r, id := registryOf(s), s.DeploymentID
		client, ctx := workflowsv1.NewWorkflowCatalogServiceClient(s.Conn), s.Context(t, s.Token)
		fresh := s.Get(t, r.path)
		apitest.Golden(t, "catalog_shipped", fresh)
		published := r.publish(t, everyType(t))
		apitest.Golden(t, "catalog_publish", published)
		sameAs(t, published)(client.PublishWorkflowType(ctx, &workflowsv1.PublishWorkflowTypeRequest{DeploymentId: id, Definition: everyType(t)}))

		list := s.Get(t, r.path)
		sameAs(t, list)(client.ListWorkflowTypes(ctx, &workflowsv1.ListWorkflowTypesRequest{DeploymentId: id}))
		if !strings.Contains(list, strings.TrimSuffix(strings.TrimPrefix(published, `{"workflow":`), "}")) {
			t.Errorf("the list has another entry: %s", list)
		}
		one := s.Get(t, r.path+"/every-type")
		apitest.Golden(t, "catalog_get", one)
		sameAs(t, one)(client.GetWorkflowType(ctx, &workflowsv1.GetWorkflowTypeRequest{DeploymentId: id, Name: "every-type"}))

		disabled := r.send(t, s.Token, http.MethodPatch, "/every-type", `{"enabled":false}`, 200)
		want := strings.TrimSuffix(strings.Replace(published, `"enabled":true`, `"enabled":false`, 1), "}}") +
			`,"disabledReason":"workflow every-type is disabled: an administrator can enable it"}}`
		if disabled != want {
			t.Errorf("disabled: %s\nwant %s", disabled, want)
		}
		sameAs(t, disabled)(client.UpdateWorkflowType(ctx, &workflowsv1.UpdateWorkflowTypeRequest{DeploymentId: id, Name: "every-type"}))
		if !strings.Contains(s.Get(t, r.path), `"displayName":"Every type of step","enabled":false`) {
			t.Error("a disabled workflow is not in the list as such")
		}

		broken := quoted("name: Broken\nstep: []\nsteps:\n- {name: a, type: split, next: [b]}\n- {name: b, uses: nothing}\n")
		lint := r.send(t, s.Token, http.MethodPost, "/lint", broken, 200)
		apitest.Golden(t, "catalog_lint", lint)
		apitest.Golden(t, "catalog_refused", r.send(t, s.Token, http.MethodPut, "", broken, 400))
		if got := r.send(t, s.Token, http.MethodPost, "/lint", quoted(small), 200); got != `{"problems":[]}` {
			t.Errorf("a good definition: %s", got)
		}

		if got := r.send(t, s.Token, http.MethodDelete, "/every-type", "", 200); got != `{}` {
			t.Errorf("deleted: %s", got)
		}
		apitest.Golden(t, "catalog_not_found", r.send(t, s.Token, http.MethodGet, "/every-type", "", 404))
		if got := s.Get(t, r.path); got != fresh {
			t.Errorf("after deleting: %s", got)
		}
	})
}

func TestCatalogVersions(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		r := registryOf(s)
		for _, c := range []struct{ source, version string }{
			{small, "1"}, {small, "1"}, {small + "# changed", "2"}, {small, "3"},
		} {
			if got := r.publish(t, c.source); !strings.Contains(got, `"version":"`+c.version+`"`) {
				t.Errorf("%s, want version %s", got, c.version)
			}
		}
		r.send(t, s.Token, http.MethodPatch, "/small", `{"enabled":false}`, 200)
		if got := r.publish(t, small+"# again"); !strings.Contains(got, `"version":"4","displayName":"small","enabled":false`) {
			t.Errorf("publishing enabled it: %s", got)
		}
		r.send(t, s.Token, http.MethodDelete, "/small", "", 200)
		if got := r.publish(t, small+"# again"); !strings.Contains(got, `"version":"5","displayName":"small","enabled":true`) {
			t.Errorf("a name that is used again: %s", got)
		}
		var one struct {
			Definition string
			Versions   []struct {
				Version, PublishedBy, Sha256 string
				Current                      bool
			}
		}
		if err := json.Unmarshal([]byte(s.Get(t, r.path+"/small")), &one); err != nil {
			t.Fatal(err)
		}
		if len(one.Versions) != 1 || one.Versions[0].Version != "5" || !one.Versions[0].Current || one.Versions[0].PublishedBy != "bootstrap" || one.Definition != small+"# again" {
			t.Errorf("got %+v", one)
		}
		rows := s.Store.Reader.WorkflowVersion.Query().Where(workflowversion.Name("small"), workflowversion.Published(false)).CountX(s.System(t))
		if rows != 4 {
			t.Errorf("%d versions of the deleted one are left, want 4: runs need them", rows)
		}
		changes := map[string]int{}
		for _, entry := range s.Store.Reader.AuditEntry.Query().Where(auditentry.DeploymentID(s.DeploymentID)).AllX(s.System(t)) {
			for _, change := range entry.Changes {
				if change.Kind == "workflow" {
					changes[entry.ActorName+" "+entry.Method[strings.LastIndexAny(entry.Method, "/.")+1:]]++
				}
			}
		}
		want := map[string]int{"bootstrap PublishWorkflowType": 5, "bootstrap UpdateWorkflowType": 1, "bootstrap DeleteWorkflowType": 1, "palisade shipped": 2}
		if fmt.Sprint(changes) != fmt.Sprint(want) {
			t.Errorf("audited %v, want %v", changes, want)
		}
	})
}

func TestCatalogRefuses(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		r := registryOf(s)
		r.publish(t, small)
		other := s.AddTenant(t, "rival")
		reader := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "reader", Role: access.RoleReadOnly})
		for _, c := range []struct {
			token, method, path, body string
			status                    int
			text                      string
		}{
			{s.Token, http.MethodPut, "", `{}`, 400, "definition"},
			{s.Token, http.MethodPut, "", quoted(strings.Repeat("#", 256<<10+1)), 400, "definition"},
			{s.Token, http.MethodPut, "", quoted("name: a\nsteps: []"), 400, "definition: line 2: there is no step"},
			{s.Token, http.MethodPut, "", quoted("name: a\nsteps: [{name: a, next: [b]}, {name: b, next: [a]}]"), 400, "(and 2 more problems)"},
			{s.Token, http.MethodPut, "", `{"definition": 7}`, 400, "definition"},
			{s.Token, http.MethodGet, "/none", "", 404, `workflow \"none\" not found`},
			{s.Token, http.MethodPatch, "/none", `{"enabled":true}`, 404, `workflow \"none\" not found`},
			{s.Token, http.MethodPatch, "/small", `{"enabled":"maybe"}`, 400, "enabled"},
			{s.Token, http.MethodDelete, "/none", "", 404, `workflow \"none\" not found`},
			{s.Token, http.MethodGet, "/" + strings.Repeat("n", 64), "", 400, "name"},
			{other.Token, http.MethodGet, "", "", 404, ""},
			{other.Token, http.MethodGet, "/small", "", 404, ""},
			{other.Token, http.MethodPut, "", quoted(small), 404, ""},
			{other.Token, http.MethodPatch, "/small", `{"enabled":false}`, 404, ""},
			{other.Token, http.MethodDelete, "/small", "", 404, ""},
			{reader, http.MethodPut, "", quoted(small), 403, ""},
			{reader, http.MethodDelete, "/small", "", 403, ""},
		} {
			if got := r.send(t, c.token, c.method, c.path, c.body, c.status); !strings.Contains(got, c.text) {
				t.Errorf("%s %s %.60s: %s, want %s", c.method, c.path, c.body, got, c.text)
			}
		}
		r.send(t, reader, http.MethodPost, "/lint", quoted(small), 200)
		theirs := registry{s, fmt.Sprintf("/api/workflows/v1/deployments/%d/registry", other.DeploymentID)}
		theirs.send(t, other.Token, http.MethodGet, "/small", "", 404)
		if got := theirs.send(t, other.Token, http.MethodPut, "", quoted(small), 200); !strings.Contains(got, `"version":"1"`) {
			t.Errorf("the other deployment has its own numbers: %s", got)
		}
		if got := r.send(t, s.Token, http.MethodGet, "/small", "", 200); !strings.Contains(got, `"enabled":true`) {
			t.Errorf("got %s", got)
		}
	})
}

func TestCatalogIsBounded(t *testing.T) {
	s := apitest.Start(t, nil)
	r := registryOf(s)
	s.Get(t, r.path)
	for i := range 198 {
		r.publish(t, fmt.Sprintf("name: w%d\nsteps: [{name: only}]\n", i))
	}
	if got := r.send(t, s.Token, http.MethodPut, "", quoted(small), 400); !strings.Contains(got, "200 workflows") {
		t.Errorf("got %s", got)
	}
	r.publish(t, "name: w7\nsteps: [{name: another}]\n")
	r.send(t, s.Token, http.MethodGet, "/small", "", 404)
}

// current calls Current as a background job does.
func current(t *testing.T, c *workflows.Catalog, deploymentID int64, name string) (*ent.WorkflowVersion, error) {
	t.Helper()
	return c.Current(tenant.NewContext(t.Context(), deploymentID), name)
}

func TestCatalogCurrent(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		r, c := registryOf(s), workflows.NewCatalog(s.Store, steps.Registry(steps.Needs{}))
		if version, err := current(t, c, s.DeploymentID, "code-audit"); err != nil || version.Number != 1 || version.PublishedBy != "palisade" {
			t.Errorf("%v, %v", version, err)
		}
		r.publish(t, small)
		r.publish(t, small+"#")
		version, err := current(t, c, s.DeploymentID, "small")
		if err != nil || version.Number != 2 || string(version.Source) != small+"#" {
			t.Errorf("%v, %v", version, err)
		}
		r.send(t, s.Token, http.MethodPatch, "/small", `{"enabled":false}`, 200)
		if _, err := current(t, c, s.DeploymentID, "small"); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("a disabled one: %v", err)
		}
		r.send(t, s.Token, http.MethodDelete, "/small", "", 200)
		if _, err := current(t, c, s.DeploymentID, "small"); status.Code(err) != codes.NotFound {
			t.Errorf("a deleted one: %v", err)
		}
	})
}

// An administrator's change of a shipped workflow stays, also after a restart.
func TestShippedWorkflowsAreTheAdministrators(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		r := registryOf(s)
		mine := strings.Replace(small, "name: small", "name: code-audit", 1)
		if got := r.publish(t, mine); !strings.Contains(got, `"version":"2"`) {
			t.Errorf("got %s", got)
		}
		r.send(t, s.Token, http.MethodDelete, "/triage-backlog", "", 200)
		later := workflows.NewCatalog(s.Store, steps.Registry(steps.Needs{}))
		if version, err := current(t, later, s.DeploymentID, "code-audit"); err != nil || string(version.Source) != mine {
			t.Errorf("%v, %v", version, err)
		}
		if _, err := current(t, later, s.DeploymentID, "triage-backlog"); status.Code(err) != codes.NotFound {
			t.Errorf("the deleted one is back: %v", err)
		}
	})
}

// A new release publishes new versions of unmodified shipped workflows, and an old server that still runs does not undo
// that.
func TestShippedWorkflowsAreRenewed(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ctx := tenant.NewContext(t.Context(), s.DeploymentID)
		err := s.Store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			now := store.Now()
			version, err := tx.WorkflowVersion.Create().SetName("code-audit").SetNumber(1).SetCatalogEntry([]byte{}).SetPlan([]byte{}).SetSource([]byte("old")).
				SetSourceHash("00").SetPublishedBy("palisade").SetPublishedAt(now).Save(ctx)
			if err != nil {
				return err
			}
			return tx.Workflow.Create().SetName("code-audit").SetVersionID(version.ID).SetEnabled(false).SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Get(t, registryOf(s).path+"/code-audit"); !strings.Contains(got, `"version":"2","displayName":"Audit the code","enabled":false`) {
			t.Errorf("got %.300s", got)
		}
		later := workflows.NewCatalog(s.Store, steps.Registry(steps.Needs{}))
		if _, err := current(t, later, s.DeploymentID, "triage-backlog"); err != nil {
			t.Error(err)
		}
		if n := s.Store.Reader.WorkflowVersion.Query().Where(workflowversion.Name("code-audit")).CountX(ctx); n != 2 {
			t.Errorf("%d versions, want 2", n)
		}
	})
}

// With two servers and many concurrent callers, shipped workflows are published once, and each publication gets its own
// version number.
func TestCatalogTogether(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ctx := tenant.NewContext(t.Context(), s.DeploymentID)
		var all sync.WaitGroup
		for range 6 {
			c := workflows.NewCatalog(s.Store, steps.Registry(steps.Needs{}))
			all.Go(func() {
				if _, err := c.ListWorkflowTypes(ctx, &workflowsv1.ListWorkflowTypesRequest{}); err != nil {
					t.Error(err)
				}
			})
		}
		r := registryOf(s)
		for i := range 8 {
			all.Go(func() {
				answer := s.Do(t, s.Token, http.MethodPut, r.path, quoted(fmt.Sprintf("%s# %d\n", small, i)))
				if answer.Status != http.StatusOK {
					t.Errorf("%d %s", answer.Status, answer.Body)
				}
			})
		}
		all.Wait()
		for name, want := range map[string]int{"small": 8, "code-audit": 1, "triage-backlog": 1} {
			rows := s.Store.Reader.WorkflowVersion.Query().Where(workflowversion.Name(name)).Order(ent.Asc(workflowversion.FieldNumber)).AllX(ctx)
			if len(rows) != want {
				t.Errorf("%s has %d versions, want %d", name, len(rows), want)
			}
			for i, row := range rows {
				if row.Number != int64(i+1) {
					t.Errorf("%s: version %d has number %d", name, i+1, row.Number)
				}
			}
		}
	})
}

package projects_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// report is a small realistic report: one result of one tool.
const report = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"gosec","version":"2.21"}},"results":[
	{"ruleId":"G104","message":{"text":"Errors unhandled"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.go"},"region":{"startLine":3,"snippet":{"text":"f()"}}}}]}]}]}`

const base = "/api/v1/deployments/acme/projects"

func TestProjectGolden(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		client := projectsv1.NewProjectsServiceClient(s.Conn)
		ctx := s.Context(t, s.Token)
		s.Upload(t, "acme/web", "main", []byte(report))
		s.Upload(t, "acme/api", "dev", []byte(report))

		list := s.Get(t, base)
		apitest.Golden(t, "list", list)
		same(t, list)(client.ListProjects(ctx, &projectsv1.ListProjectsRequest{DeploymentSlug: "acme"}))

		one := s.Get(t, base+"/acme/web")
		apitest.Golden(t, "get", one)
		same(t, one)(client.GetProject(ctx, &projectsv1.GetProjectRequest{DeploymentSlug: "acme", ProjectName: "acme/web"}))

		apitest.Golden(t, "add_tags", s.mustDo(t, http.MethodPut, base+"/acme/web/tags", `{"tags":["frontend","backend","backend"," "]}`))
		tagged := s.Get(t, base+"/acme/web")
		same(t, tagged)(client.AddProjectTags(ctx, &projectsv1.AddProjectTagsRequest{DeploymentSlug: "acme", ProjectName: "acme/web", Tags: []string{"backend"}}))
		apitest.Golden(t, "delete_tags", s.mustDo(t, http.MethodDelete, base+"/acme/web/tags?tags=frontend,unknown", ""))

		s.mustDo(t, http.MethodPut, base+"/acme/web/tags", `{"tags":["one","two","three"]}`)
		fewer := s.mustDo(t, http.MethodDelete, base+"/acme/web/tags?tags=one", `{"tags":["two"]}`)
		if !strings.Contains(fewer, `"three"`) || strings.Contains(fewer, `"one"`) || strings.Contains(fewer, `"two"`) {
			t.Errorf("tags in the query and in the body: %s", fewer)
		}
		fewer = s.mustDo(t, http.MethodDelete, base+"/acme/web/tags", `{"tags":["three"]}`)
		same(t, fewer)(client.DeleteProjectTags(ctx, &projectsv1.DeleteProjectTagsRequest{DeploymentSlug: "acme", ProjectName: "acme/web", Tags: []string{"three"}}))
		if strings.Contains(fewer, "three") {
			t.Errorf("tags in the body: %s", fewer)
		}

		patched := s.mustDo(t, http.MethodPatch, base+"/acme/web",
			`{"deploymentSlug":"acme","projectName":"ignored","primary_branch":"release/2","tags":["x"],"managed_scan_config":{"diff_scan":{"enabled":true}},"unknown":1}`)
		apitest.Golden(t, "patch", patched)
		same(t, patched)(client.UpdateProject(ctx, &projectsv1.UpdateProjectRequest{DeploymentSlug: "acme", ProjectName: "acme/web",
			Tags: []string{"x"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"tags"}}}))
		apitest.Golden(t, "managed_scan", s.mustDo(t, http.MethodPatch, base+"/acme/web/managed-scan", `{"full_scan":{"enabled":true},"diff_scan":{"enabled":false}}`))

		apitest.Golden(t, "delete", s.mustDo(t, http.MethodDelete, base+"/acme/web", ""))
		apitest.Golden(t, "not_found", s.Body(t, s.Token, http.MethodGet, base+"/acme/web", "", 404))
		if _, err := client.DeleteProject(ctx, &projectsv1.DeleteProjectRequest{DeploymentSlug: "acme", ProjectName: "acme/api"}); err != nil {
			t.Fatal(err)
		}
		if got := s.Get(t, base); got != `{"projects":[]}` {
			t.Errorf("after deleting all: %s", got)
		}
	})
}

// Tags may contain commas. A value with some is a list only if the deployment has no such tag.
func TestDeleteTagsWithCommas(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		client := projectsv1.NewProjectsServiceClient(s.Conn)
		s.Upload(t, "acme/web", "main", []byte(report))
		path := base + "/acme/web/tags"
		for _, c := range []struct {
			query, body string
			tags        []string // the same over gRPC
			want        string
		}{
			{"?tags=a%2Cb", "", []string{"a,b"}, `["a","b","c","x,y"]`},
			{"?tags[0]=a,b", "", []string{"a,b"}, `["a","b","c","x,y"]`},
			{"", `{"tags":["a,b"]}`, []string{"a,b"}, `["a","b","c","x,y"]`},
			{"?tags=x%2Cy&tags=c", "", []string{"x,y", "c"}, `["a","a,b","b"]`},
			{"?tags=x,y", "", []string{"x,y"}, `["a","a,b","b","c"]`},
			{"?tags=a,c", "", []string{"a,c"}, `["a,b","b","x,y"]`},
			{"?tags=a%2C+c,,unknown&tags[]=b", "", []string{"a, c,,unknown", "b"}, `["a,b","x,y"]`},
			{"?tags=a,b,c", "", []string{"a,b,c"}, `["a,b","x,y"]`},
		} {
			all := `{"tags":["a","b","c","a,b","x,y"]}`
			s.mustDo(t, http.MethodPut, path, all)
			got := s.mustDo(t, http.MethodDelete, path+c.query, c.body)
			again := s.mustDo(t, http.MethodDelete, path+c.query, c.body)
			if !strings.Contains(got, `"tags":`+c.want) || again != got {
				t.Errorf("%s%s: got %s, then %s, want the tags %s", c.query, c.body, got, again, c.want)
			}
			s.mustDo(t, http.MethodPut, path, all)
			same(t, got)(client.DeleteProjectTags(s.Context(t, s.Token), &projectsv1.DeleteProjectTagsRequest{
				DeploymentSlug: "acme", ProjectName: "acme/web", Tags: c.tags,
			}))
		}
		many := s.Body(t, s.Token, http.MethodDelete, path+"?tags="+strings.Repeat("t,", 101), "", 400)
		if !strings.Contains(many, "tags must have at most 100 items, got 101") {
			t.Error(many)
		}
	})
}

func TestUpdateProject(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		s.Upload(t, "acme/web", "main", []byte(report))
		s.mustDo(t, http.MethodPatch, base+"/acme/web", `{"primary_branch":"dev","tags":["a","b"]}`)
		for _, step := range []struct{ body, contains string }{
			{`{"primary_branch":"None"}`, `"primary_branch":"refs/heads/main"`},
			{`{"url":"git@git.acme.test:acme/web.git"}`, `"url":"https://git.acme.test/acme/web"`},
			{`{"url":""}`, `"url":""`},
			{`{"url":"","update_mask":"url"}`, `"url":""`},
			{`{"url":"https://kim:pw@git.acme.test/acme/web"}`, `"url":"https://git.acme.test/acme/web"`},
			{`{}`, `"tags":["a","b"]`},
			{`{"tags":null,"primary_branch":""}`, `"tags":["a","b"]`},
			{`{"tags":["c"]}`, `"tags":["c"]`},
			{`{"tags":[]}`, `"tags":[]`},
		} {
			if got := s.mustDo(t, http.MethodPatch, base+"/acme/web", step.body); !strings.Contains(got, step.contains) {
				t.Errorf("after %s: %s, want %s", step.body, got, step.contains)
			}
		}
	})
}

func TestUpdateMaskDecides(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		client := projectsv1.NewProjectsServiceClient(s.Conn)
		s.Upload(t, "acme/web", "main", []byte(report))
		update := func(paths ...string) (*projectsv1.UpdateProjectResponse, error) {
			return client.UpdateProject(s.Context(t, s.Token), &projectsv1.UpdateProjectRequest{
				DeploymentSlug: "acme", ProjectName: "acme/web", Tags: []string{"a"}, PrimaryBranch: "dev",
				ManagedScanConfig: &projectsv1.ManagedScanConfig{
					DiffScan: &projectsv1.DiffScan{Enabled: true}, FullScan: &projectsv1.FullScan{Enabled: true},
				},
				UpdateMask: &fieldmaskpb.FieldMask{Paths: paths},
			})
		}
		for _, step := range []struct {
			path string
			want string
		}{
			{"tags", `[a] refs/heads/main false false`},
			{"managed_scan_config.diff_scan", `[a] refs/heads/main true false`},
			{"managed_scan_config", `[a] refs/heads/main true true`},
			{"primary_branch", `[a] refs/heads/dev true true`},
		} {
			answer, err := update(step.path)
			if err != nil {
				t.Fatal(err)
			}
			p := answer.GetProject()
			got := fmt.Sprint(p.GetTags(), " ", p.GetPrimaryBranch(), " ", p.GetManagedScanConfig().GetDiffScan().GetEnabled(), " ",
				p.GetManagedScanConfig().GetFullScan().GetEnabled())
			if got != step.want {
				t.Errorf("after a mask of %s: %s, want %s", step.path, got, step.want)
			}
		}
		_, err := update("tags", "name")
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), `update_mask must name only primary_branch, tags`) ||
			!strings.Contains(err.Error(), `got "name"`) {
			t.Errorf("a mask of what cannot be changed: %v", err)
		}
	})
}

func TestPrimaryBranchIsARef(t *testing.T) {
	s := caller{apitest.Start(t, nil)}
	s.Upload(t, "acme/web", "main", []byte(report))
	for _, branch := range []string{"a b", " main", `a\tb`, `refs/heads/a\nb`} {
		got := s.Body(t, s.Token, http.MethodPatch, base+"/acme/web", `{"primary_branch":"`+branch+`","tags":["x"]}`, 400)
		if !strings.Contains(got, `primary_branch must have no spaces and no control characters`) {
			t.Errorf("%q: %s", branch, got)
		}
	}
	if got := s.Get(t, base+"/acme/web"); !strings.Contains(got, `"tags":[]`) || !strings.Contains(got, `"primary_branch":"refs/heads/main"`) {
		t.Errorf("a refused change was made in part: %s", got)
	}
}

func TestProjectNamesInPaths(t *testing.T) {
	s := caller{apitest.Start(t, nil)}
	for _, name := range []string{"plain", "acme/web", "acme/tools/deep/er", "acme/with space", "acme/100%", "acme/ümlaut", "acme/a:b", "acme/q?x=1"} {
		s.Upload(t, name, "main", []byte(report))
		escapedParts := make([]string, 0, 4)
		for part := range strings.SplitSeq(name, "/") {
			escapedParts = append(escapedParts, url.PathEscape(part))
		}
		for form, path := range map[string]string{"literal": strings.Join(escapedParts, "/"), "%2F": strings.Join(escapedParts, "%2F")} {
			got := s.Get(t, base+"/"+path)
			if !strings.Contains(got, fmt.Sprintf(`"name":%q`, name)) {
				t.Errorf("%s form of %q: %s", form, name, got)
			}
			answer := s.Do(t, s.Token, http.MethodPut, base+"/"+path+"/tags", `{"tags":["t"]}`)
			if answer.Status != 200 || !strings.Contains(answer.Body, `"tags":["t"]`) {
				t.Errorf("tags of the %s form of %q: %d %s", form, name, answer.Status, answer.Body)
			}
		}
	}
	// The path of the tags never means a project to delete.
	s.mustDo(t, http.MethodDelete, base+"/acme/web/tags", "")
	s.Get(t, base+"/acme/web")
}

func TestListProjectsPaging(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		seedProjects(t, s, 250)
		seen := map[string]bool{}
		for page, want := range []int{100, 100, 50, 0} {
			body := s.Get(t, fmt.Sprintf("%s?page=%d&page_size=100", base, page))
			if got := strings.Count(body, `"name":`); got != want {
				t.Errorf("page %d has %d projects, want %d", page, got, want)
			}
			for part := range strings.SplitSeq(body, `"name":"`) {
				name, _, _ := strings.Cut(part, `"`)
				if strings.HasPrefix(name, "team/") && seen[name] {
					t.Errorf("%s is on two pages", name)
				}
				seen[name] = true
			}
		}
		if got := strings.Count(s.Get(t, base+"?page_size=3000"), `"name":`); got != 250 {
			t.Errorf("one large page has %d projects", got)
		}
		for _, query := range []string{"page_size=99", "page_size=3001", "page_size=0"} {
			apitest.Golden(t, "bad_"+query, s.Body(t, s.Token, http.MethodGet, base+"?"+query, "", 400))
		}
	})
}

func TestProjectsOfOthers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		other := s.AddTenant(t, "umbrella")
		s.Upload(t, "acme/web", "main", []byte(report))
		absent := s.Body(t, other.Token, http.MethodGet, "/api/v1/deployments/nobody/projects/acme/web", "", 404)
		for _, call := range []struct{ method, path, body string }{
			{http.MethodGet, "", ""}, {http.MethodGet, "/acme/web", ""}, {http.MethodPatch, "/acme/web", `{"tags":["x"]}`},
			{http.MethodDelete, "/acme/web", ""}, {http.MethodPut, "/acme/web/tags", `{"tags":["x"]}`},
			{http.MethodDelete, "/acme/web/tags?tags=x", ""}, {http.MethodPatch, "/acme/web/managed-scan", `{"full_scan":{"enabled":true}}`},
		} {
			if got := s.Body(t, other.Token, call.method, base+call.path, call.body, 404); got != absent {
				t.Errorf("%s %s of another tenant: %s, want what an absent deployment gets: %s", call.method, call.path, got, absent)
			}
		}
		// In this deployment the other's project is not found.
		s.Body(t, other.Token, http.MethodGet, "/api/v1/deployments/umbrella/projects/acme/web", "", 404)
		s.Body(t, other.Token, http.MethodDelete, "/api/v1/deployments/umbrella/projects/acme/web", "", 404)
		if got := s.Get(t, base+"/acme/web"); !strings.Contains(got, `"tags":[]`) {
			t.Errorf("another tenant changed the project: %s", got)
		}
	})
}

func TestDeleteProjectLeavesNothing(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		s.Upload(t, "acme/web", "main", []byte(report))
		s.Upload(t, "acme/api", "main", []byte(report))
		s.mustDo(t, http.MethodPut, base+"/acme/web/tags", `{"tags":["x"]}`)
		gone := s.Store.Reader.Project.Query().Where(project.Name("acme/web")).OnlyX(s.System(t))
		s.mustDo(t, http.MethodDelete, base+"/acme/web", "")
		ctx := s.System(t)
		left := map[string]int{
			"findings": s.Store.Reader.Finding.Query().Where(finding.ProjectID(gone.ID)).CountX(ctx),
			"scans":    s.Store.Reader.Scan.Query().Where(scan.ProjectID(gone.ID)).CountX(ctx),
			"tags":     s.Store.Reader.ProjectTag.Query().CountX(ctx),
			"events":   s.Store.Reader.FindingEvent.Query().Where(findingevent.KindNEQ("created")).CountX(ctx),
		}
		for what, n := range left {
			if n != 0 {
				t.Errorf("%d %s are left", n, what)
			}
		}
		if n := s.Store.Reader.FindingEvent.Query().CountX(ctx); n != 1 {
			t.Errorf("%d events are left, want the other project's one", n)
		}
	})
}

// TestPrimaryBranchWithoutScans: a branch that no scan has is accepted, and the answer says what it means.
func TestPrimaryBranchWithoutScans(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		s.Upload(t, "acme/web", "main", []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"results":[]}]}`))
		for _, call := range []struct{ path, body string }{
			{"/api/v1/deployments/acme/projects/acme/web", `{"primary_branch":%q}`}, {fmt.Sprintf("/api/agent/deployments/%d/repos/acme/web", s.DeploymentID), `{"primaryBranch":%q}`},
		} {
			for branch, want := range map[string]string{
				"later/ö": `no scan has the branch "refs/heads/later/\u00f6": findings of the primary branch are empty until one does`, "main": "", "None": "",
			} {
				answer := s.Do(t, s.Token, http.MethodPatch, call.path, fmt.Sprintf(call.body, branch))
				if got := answer.Header.Get("X-Warning"); answer.Status != http.StatusOK || got != want {
					t.Errorf("%s %s: %d %q %s", call.path, branch, answer.Status, got, answer.Body)
				}
			}
		}
	})
}

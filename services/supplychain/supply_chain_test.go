package supplychain_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/supplychain/dependencies"
)

// All operations return the documented bytes, over HTTP and gRPC and in v1 and v2.
func TestSupplyChainGoldens(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s, in := caller{server}, standard(t, server, server.Tenant)
		client, ctx := supplychainv1.NewSupplyChainServiceClient(s.Conn), s.Context(t, s.Token)
		jwt := s.AddUser(t, s.Tenant, "dev@acme.test", access.RoleMember)

		body := s.mustDo(t, http.MethodPost, in.v1(""), `{}`)
		apitest.Golden(t, "dependencies", body)
		mustContain(t, body, `"committedAt":"2026-05-04T09:20:30.123456Z"`) // the time of the commit, not of the scan
		same(t, body)(client.ListDependenciesV1(ctx, &supplychainv1.ListDependenciesV1Request{DeploymentId: s.DeploymentID}))
		same(t, body)(client.ListDependencies(ctx, &supplychainv1.ListDependenciesRequest{DeploymentId: s.DeploymentID}))
		for _, again := range []string{
			s.mustDo(t, http.MethodPost, in.v2("/dependencies"), fmt.Sprintf(`{"deploymentId":"%d","pageSize":10000,"cursor":"0"}`, s.DeploymentID)),
			s.Body(t, jwt, http.MethodGet, in.v2("/dependencies"), "", 200),
		} {
			if again != body {
				t.Errorf("got %s, want %s", again, body)
			}
		}

		body = s.mustDo(t, http.MethodPost, in.v1("/repositories"), `{"dependencyFilter":{"includeArchived":true},"pageSize":2}`)
		apitest.Golden(t, "dependencies_repositories", body)
		filter, two := &supplychainv1.DependencyFilter{IncludeArchived: true}, int32(2)
		same(t, body)(client.ListRepositoriesForDependenciesV1(ctx, &supplychainv1.ListRepositoriesForDependenciesV1Request{
			DeploymentId: s.DeploymentID, DependencyFilter: filter, PageSize: &two,
		}))
		if again := s.Body(t, jwt, http.MethodPost, in.v2("/repositories"), `{"dependencyFilter":{"includeArchived":true},"pageSize":2}`, 200); again != body {
			t.Errorf("got %s, want %s", again, body)
		}

		id := in.projects["acme/web"]
		body = s.mustDo(t, http.MethodPost, in.v1(fmt.Sprintf("/repositories/%d/lockfiles", id)), `{"page_size":1}`)
		apitest.Golden(t, "dependencies_lockfiles", body)
		one := int32(1)
		same(t, body)(client.ListLockfilesForDependenciesV1(ctx, &supplychainv1.ListLockfilesForDependenciesV1Request{
			DeploymentId: s.DeploymentID, RepositoryId: id, PageSize: &one,
		}))
		if again := s.Body(t, jwt, http.MethodPost, in.v2(fmt.Sprintf("/%d/lockfiles", id)), `{"pageSize":1}`, 200); again != body {
			t.Errorf("got %s, want %s", again, body)
		}

		apitest.Golden(t, "dependencies_none", s.mustDo(t, http.MethodPost, in.v1(""), `{"dependencyFilter":{"name":"nothing"},"cursor":"3"}`)+
			s.mustDo(t, http.MethodPost, in.v1("/repositories"), `{"dependencyFilter":{"name":"nothing"}}`)+
			s.mustDo(t, http.MethodPost, in.v1(fmt.Sprintf("/repositories/%d/lockfiles", id)), `{"dependencyFilter":{"name":"nothing"}}`))
	})
}

// Each field of the filter works, alone and combined, in all three lists.
func TestDependencyFilter(t *testing.T) {
	t.Parallel()
	const all = "github.com/acme/kit@v1.2.0 golang.org/x/text@v0.14.0 @acme/kit@2.10.0 left-pad@1.3.0 left-pad@1.9.1 100%_sure@1.0rc1"
	cases := []struct{ name, filter, want, repositories string }{
		{"nothing", `{}`, all, "acme/api:2 acme/web:4"},
		{"archived", `{"includeArchived":true}`, all + " rake@13.0.6", "acme/api:2 acme/web:4 acme/attic:1"},
		{"part of a name", `{"name":"KIT"}`, "github.com/acme/kit@v1.2.0 @acme/kit@2.10.0", "acme/api:1 acme/web:1"},
		{"a name with wildcards", `{"name":"%_S"}`, "100%_sure@1.0rc1", "acme/web:1"},
		{"wildcards alone", `{"name":"l%p"}`, "", ""},
		{"version", `{"version":"1.3.0"}`, "left-pad@1.3.0", "acme/web:1"},
		{"version in part", `{"version":"1.3"}`, "", ""},
		{"name and version", `{"name":"left","version":"1.9.1"}`, "left-pad@1.9.1", "acme/web:1"},
		{"repository", `{"repositoryId":[API]}`, "github.com/acme/kit@v1.2.0 golang.org/x/text@v0.14.0", "acme/api:2"},
		{"repositories", `{"repositoryId":["API",WEB,999999]}`, all, "acme/api:2 acme/web:4"},
		{"transitivity", `{"transitivity":["DIRECT"]}`, "github.com/acme/kit@v1.2.0 @acme/kit@2.10.0", "acme/api:1 acme/web:1"},
		{"transitivities", `{"transitivity":["UNKNOWN_TRANSITIVITY","DIRECT"],"ecosystem":["npm","pypi"]}`, "@acme/kit@2.10.0 100%_sure@1.0rc1", "acme/web:2"},
		{"ecosystem", `{"ecosystem":["gomod","cargo"]}`, "github.com/acme/kit@v1.2.0 golang.org/x/text@v0.14.0", "acme/api:2"},
		{"ecosystem without rows", `{"ecosystem":["no_package_manager"]}`, "", ""},
		{"lockfile", `{"lockfilePath":"tools/requirements.txt"}`, "100%_sure@1.0rc1", "acme/web:1"},
		{"license", `{"license":["MIT"]}`, "@acme/kit@2.10.0 left-pad@1.9.1", "acme/web:2"},
		{"licenses", `{"license":["WTFPL","BSD-3-Clause"]}`, "golang.org/x/text@v0.14.0 left-pad@1.3.0", "acme/api:1 acme/web:1"},
		{"part of a license", `{"license":["BSD-3"]}`, "", ""},
		{"package", `{"packageFilters":[{"name":"kit"}]}`, "github.com/acme/kit@v1.2.0 @acme/kit@2.10.0", "acme/api:1 acme/web:1"},
		{"exact name", `{"packageFilters":[{"name":"@acme/kit","exactNameMatch":true},{"name":"left","exactNameMatch":true}]}`, "@acme/kit@2.10.0", "acme/web:1"},
		{"exact version", `{"packageFilters":[{"name":"left","exactVersion":"1.3.0"},{"name":"TEXT"}]}`, "golang.org/x/text@v0.14.0 left-pad@1.3.0", "acme/api:1 acme/web:1"},
		{"lower bound", `{"packageFilters":[{"name":"kit","versionLowerBound":"2.9.0"}]}`, "@acme/kit@2.10.0", "acme/web:1"},
		{"upper bound", `{"packageFilters":[{"name":"l","versionUpperBound":"1.3.0"}]}`, "golang.org/x/text@v0.14.0 left-pad@1.3.0", "acme/api:1 acme/web:1"},
		{"both bounds", `{"packageFilters":[{"name":"left-pad","exactNameMatch":true,"versionLowerBound":"1.3.1","versionUpperBound":"1.10"}]}`, "left-pad@1.9.1", "acme/web:1"},
		{"bounds of Python", `{"packageFilters":[{"name":"sure","versionLowerBound":"0.9","versionUpperBound":"1.0"}]}`, "100%_sure@1.0rc1", "acme/web:1"},
		{"no version", `{"packageFilters":[{"name":"left-pad","versionLowerBound":"new"}]}`, "", ""},
		{"bounds around nothing", `{"packageFilters":[{"name":"left-pad","versionLowerBound":"1.5","versionUpperBound":"1.2"}]}`, "", ""},
		{"from nothing on", `{"packageFilters":[{"name":"left","versionLowerBound":"0"}]}`, "left-pad@1.3.0 left-pad@1.9.1", "acme/web:2"},
		{"up to nothing", `{"packageFilters":[{"name":"left","versionUpperBound":"0"}]}`, "", ""},
		{"the same twice", `{"packageFilters":[{"name":"kit","versionLowerBound":"2.9.0"},{"name":"kit","versionLowerBound":"2.9.0"}]}`, "@acme/kit@2.10.0", "acme/web:1"},
		{"all together", `{"name":"left","version":"1.9.1","repositoryId":[WEB],"transitivity":["TRANSITIVE"],"ecosystem":["npm"],` +
			`"lockfilePath":"package-lock.json","license":["MIT"],"packageFilters":[{"name":"pad","versionLowerBound":"1"}],"includeArchived":true}`, "left-pad@1.9.1", "acme/web:1"},
	}
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s, in := caller{server}, standard(t, server, server.Tenant)
		standard(t, server, s.AddTenant(t, "rival"))
		ids := strings.NewReplacer("API", fmt.Sprint(in.projects["acme/api"]), "WEB", fmt.Sprint(in.projects["acme/web"]))
		for _, c := range cases {
			body := ids.Replace(`{"dependencyFilter":` + c.filter + `}`)
			if _, got := read(t, s, s.Token, in.v1(""), body); got != c.want {
				t.Errorf("%s: got %q, want %q", c.name, got, c.want)
			}
			if _, got := read(t, s, s.Token, in.v1("/repositories"), body); got != c.repositories {
				t.Errorf("repositories by %s: got %q, want %q", c.name, got, c.repositories)
			}
			want := ""
			for part := range strings.FieldsSeq(c.repositories) {
				if count, ok := strings.CutPrefix(part, "acme/web:"); ok {
					want = count
				}
			}
			_, got := read(t, s, s.Token, in.v1(fmt.Sprintf("/repositories/%d/lockfiles", in.projects["acme/web"])), body)
			sum := 0
			for part := range strings.FieldsSeq(got) {
				var n int
				_, _ = fmt.Sscan(part[strings.LastIndexByte(part, ':')+1:], &n)
				sum += n
			}
			if want == "" && got != "" || want != "" && fmt.Sprint(sum) != want {
				t.Errorf("lockfiles by %s: got %q, want %q in all", c.name, got, want)
			}
		}
		query := fmt.Sprintf("?dependencyFilter.name=kit&dependencyFilter.ecosystem=npm,gomod&dependencyFilter.repositoryId=%d&dependencyFilter.transitivity=DIRECT"+
			"&dependencyFilter.includeArchived=True&pageSize=1", in.projects["acme/web"])
		mustContain(t, s.mustDo(t, http.MethodGet, in.v2("/dependencies"+query), ""), `"name":"@acme/kit"`, `"hasMore":false`)

		in.scan(t, server, "acme/api", map[string][]dependencies.Dependency{"go.mod": {
			{Ecosystem: "gomod", Package: "two", Version: "1", Licenses: []string{"Apache License, Version 2.0"}},
			{Ecosystem: "gomod", Package: "one", Version: "1", Licenses: []string{"Apache License, Version 1.1", "MIT"}},
		}})
		client := supplychainv1.NewSupplyChainServiceClient(server.Conn)
		for license, want := range map[string]string{
			"Apache License, Version 2.0": "two",
			"WTFPL, MIT":                  "@acme/kit left-pad left-pad one",
			"MIT,Apache-2.0":              "@acme/kit left-pad one", // also the licences of one package
			"Unknown, Apache-2.0":         "@acme/kit",
		} {
			for _, key := range []string{"dependencyFilter.license", "dependencyFilter.license[0]"} {
				body := s.mustDo(t, http.MethodGet, in.v2("/dependencies?"+url.Values{key: {license}}.Encode()), "")
				response, err := client.ListDependencies(s.Context(t, s.Token), &supplychainv1.ListDependenciesRequest{
					DeploymentId: s.DeploymentID, DependencyFilter: &supplychainv1.DependencyFilter{License: []string{license}},
				})
				if err != nil {
					t.Fatal(err)
				}
				apitest.Same(t, response, body)
				var found []string
				for _, d := range response.GetDependencies() {
					found = append(found, d.GetPackage().GetName())
				}
				slices.Sort(found)
				if got := strings.Join(found, " "); got != want {
					t.Errorf("%s=%s: got %s, want %s", key, license, got, want)
				}
			}
		}
	})
}

// Names may have letters without case folding in SQLite; a lockfile has a name.
func TestDependenciesOfOddNames(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s, in := caller{server}, newInventory(t, server, server.Tenant, "acme/api")
		in.scan(t, server, "acme/api", map[string][]dependencies.Dependency{
			"go.sum": {{Ecosystem: "npm", Package: "Ärger-Kit", Version: "1.0.0", Transitivity: "direct"}},
			" ":      {{Ecosystem: "npm", Package: "lost", Version: "1.0.0", Transitivity: "direct"}},
		})
		for _, filter := range []string{`{}`, `{"name":"Ärger"}`, `{"name":"Ärger-kit"}`, `{"packageFilters":[{"name":"Ärger"}]}`, `{"packageFilters":[{"name":"-KIT","versionLowerBound":"1"}]}`} {
			if _, got := read(t, s, s.Token, in.v1(""), `{"dependencyFilter":`+filter+`}`); got != "Ärger-Kit@1.0.0" {
				t.Errorf("%s: got %q", filter, got)
			}
		}
		if _, got := read(t, s, s.Token, in.v1("/repositories"), `{}`); got != "acme/api:1" {
			t.Errorf("repositories: %s", got)
		}
	})
}

func TestDependencyPages(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		names := []string{"acme/a", "acme/b", "acme/c", "acme/d", "acme/e", "acme/f", "acme/g"}
		in := newInventory(t, server, s.Tenant, names...)
		for _, name := range names {
			byLockfile := map[string][]dependencies.Dependency{}
			for _, dir := range []string{"a", "B", "c", "d/e", "ä", "z", "_"} {
				byLockfile[dir+"/go.mod"] = []dependencies.Dependency{
					{Ecosystem: "gomod", Package: "x", Version: "v1"}, {Ecosystem: "gomod", Package: "y", Version: "v1"},
				}
			}
			in.scan(t, server, name, byLockfile)
		}
		lockfiles := fmt.Sprintf("/repositories/%d/lockfiles", in.projects["acme/c"])
		for path, total := range map[string]int{"": 98, "/repositories": 7, lockfiles: 7} {
			for _, size := range []int{1, 3, 5, 7, 100} {
				seen, cursor := map[string]int{}, "0"
				if path == lockfiles {
					cursor = `""`
				}
				for pages := 0; ; pages++ {
					page, got := read(t, s, s.Token, in.v1(path), fmt.Sprintf(`{"pageSize":%d,"cursor":%s}`, size, cursor))
					items := strings.Fields(got)
					for _, item := range items {
						seen[item]++
					}
					if *page.HasMore && len(items) != size || pages > total {
						t.Fatalf("%s by %d: page %d has %d items, hasMore %v", path, size, pages, len(items), *page.HasMore)
					}
					if cursor = fmt.Sprintf("%q", page.Cursor); path == "/repositories" {
						cursor = fmt.Sprint(page.Cursor)
					}
					if !*page.HasMore {
						if page.Cursor != "" && page.Cursor != "0" && page.Cursor != float64(0) {
							t.Errorf("%s by %d: the last page has the cursor %v", path, size, page.Cursor)
						}
						break
					}
				}
				sum := 0
				for item, n := range seen {
					sum += n
					if path != "" && n != 1 {
						t.Errorf("%s by %d: %s came %d times", path, size, item, n)
					}
				}
				if sum != total {
					t.Errorf("%s by %d: %d items, want %d", path, size, sum, total)
				}
				// A cursor after the end returns an empty page.
				page, got := read(t, s, s.Token, in.v1(path), `{"cursor":"1000000"}`)
				if path == lockfiles {
					page, got = read(t, s, s.Token, in.v1(path), `{"cursor":"ö"}`)
				}
				if got != "" || *page.HasMore {
					t.Errorf("%s behind the end: %q", path, got)
				}
			}
		}
		// The default page size is the documented one.
		for path, size := range map[string]int{"": 98, "/repositories": 5, lockfiles: 5} {
			if _, got := read(t, s, s.Token, in.v1(path), `{}`); len(strings.Fields(got)) != size {
				t.Errorf("%s: %d items, want %d", path, len(strings.Fields(got)), size)
			}
		}
	})
}

func TestDependencyRefusals(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s, in := caller{server}, standard(t, server, server.Tenant)
		rival := s.AddTenant(t, "rival")
		theirs := newInventory(t, server, rival, "acme/api")
		for _, c := range []struct{ path, body, word string }{
			{in.v1(""), `{"pageSize":-1}`, "pageSize"},
			{in.v1(""), `{"page_size":10001}`, "10000"},
			{in.v1(""), `{"cursor":"-1"}`, "cursor"},
			{in.v1(""), `{"cursor":"abc"}`, "cursor"},
			{in.v1("/repositories"), `{"pageSize":101}`, "100"},
			{in.v1("/repositories"), `{"cursor":"x"}`, "cursor"},
			{in.v1(fmt.Sprintf("/repositories/%d/lockfiles", in.projects["acme/api"])), `{"pageSize":101}`, "100"},
			{in.v1(""), `{"dependencyFilter":{"ecosystem":["brew"]}}`, "ecosystem"},
			{in.v1(""), `{"dependencyFilter":{"transitivity":["SIDEWAYS"]}}`, "transitivity"},
			{in.v1(""), `{"dependencyFilter":{"license":[""]}}`, "license"},
			{in.v1(""), `{"dependencyFilter":{"repositoryId":["web"]}}`, "repositoryId"},
			{in.v1(""), `{"dependencyFilter":{"packageFilters":[{"exactVersion":"1"}]}}`, "name"},
			{in.v1("/repositories"), `{"dependencyFilter":{"licensePolicySettings":["LICENSE_POLICY_SETTING_BLOCK"]}}`, "there are no licence policies"},
			{in.v1(""), `{"dependencyFilter":{"licensePolicySettings":["MAYBE"]}}`, "licensePolicySettings"},
		} {
			mustContain(t, s.Body(t, s.Token, http.MethodPost, c.path, c.body, 400), c.word)
		}
		absent := s.Body(t, s.Token, http.MethodPost, in.v1("/repositories/999999/lockfiles"), `{}`, 404)
		mustContain(t, absent, "repository 999999 not found")
		id := fmt.Sprint(theirs.projects["acme/api"])
		if foreign := s.Body(t, s.Token, http.MethodPost, in.v1("/repositories/"+id+"/lockfiles"), `{}`, 404); strings.ReplaceAll(foreign, id, "999999") != absent {
			t.Errorf("a foreign repository: %s, an absent one %s", foreign, absent)
		}
		for _, path := range []string{in.v1(""), in.v2("/dependencies"), in.v1("/repositories"), in.v2("/repositories")} {
			mustContain(t, s.Body(t, rival.Token, http.MethodPost, path, `{}`, 404), "deployment not found")
		}
		jwt := s.AddUser(t, s.Tenant, "dev@acme.test", access.RoleMember)
		mustContain(t, s.Body(t, jwt, http.MethodPost, in.v1(""), `{}`, 403), "accepts only an API token")
		if _, got := read(t, s, rival.Token, theirs.v1(""), `{}`); got != "" {
			t.Errorf("a tenant without dependencies sees %s", got)
		}
		client := supplychainv1.NewSupplyChainServiceClient(s.Conn)
		zero := int32(0)
		_, err := client.ListDependencies(s.Context(t, s.Token), &supplychainv1.ListDependenciesRequest{DeploymentId: s.DeploymentID, PageSize: &zero})
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("gRPC with page size 0: %v", err)
		}
	})
}

// Team members see the dependencies of their projects.
func TestDependenciesOfTeams(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s, in := caller{server}, standard(t, server, server.Tenant)
		dev, outsider := s.AddUser(t, s.Tenant, "dev@acme.test", access.RoleMember), s.AddUser(t, s.Tenant, "new@acme.test", access.RoleMember)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			id, err := tx.User.Query().Where(user.Email("dev@acme.test")).OnlyID(ctx)
			if err != nil {
				return err
			}
			ctx = tenant.NewContext(ctx, s.DeploymentID)
			team, err := tx.Team.Create().SetName("Web").SetSlug("web").SetCreatedAt(1).SetUpdatedAt(1).Save(ctx)
			if err != nil {
				return err
			}
			if err := tx.TeamMember.Create().SetTeamID(team.ID).SetUserID(id).SetRole("TEAM_ROLE_MEMBER").SetCreatedAt(1).Exec(ctx); err != nil {
				return err
			}
			return tx.TeamProject.Create().SetTeamID(team.ID).SetProjectID(in.projects["acme/web"]).SetCreatedAt(1).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, got := read(t, s, dev, in.v2("/repositories"), `{"dependencyFilter":{"includeArchived":true}}`); got != "acme/web:4" {
			t.Errorf("repositories of the team: %s", got)
		}
		if _, got := read(t, s, dev, in.v2("/dependencies"), `{"dependencyFilter":{"packageFilters":[{"name":"kit","versionLowerBound":"0.1"}]}}`); got != "@acme/kit@2.10.0" {
			t.Errorf("dependencies of the team: %s", got)
		}
		if _, got := read(t, s, dev, in.v2(fmt.Sprintf("/%d/lockfiles", in.projects["acme/web"])), `{}`); got != "package-lock.json:3 tools/requirements.txt:1" {
			t.Errorf("lockfiles of the team: %s", got)
		}
		s.Body(t, dev, http.MethodPost, in.v2(fmt.Sprintf("/%d/lockfiles", in.projects["acme/api"])), `{}`, 404)
		if _, got := read(t, s, outsider, in.v2("/dependencies"), `{}`); got != "" {
			t.Errorf("without a team: %s", got)
		}
	})
}
